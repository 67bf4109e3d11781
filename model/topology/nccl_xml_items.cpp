#include "model/topology/nccl_xml_items.hpp"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_rates.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_forms.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_elements = std::size_t{256} * 72;  // NCCL's own bound for the largest clique
constexpr std::size_t max_cpus = 64;                         // of one host; every pair is joined

/// A `pci` of which nothing else is known, or what hangs below it.
struct PciChildren {
  std::vector<pugi::xml_node> gpus, nets, bridges;
};

class Walk {
 public:
  Walk(const NcclXmlDocument& document, XmlSystem& system) : document_(document), system_(system) {}

  void read() {
    const pugi::xml_node root = document_.root();
    check_forms(document_, root);
    if (!NcclXmlDocument::text(root, "version")) add_finding("no-version", "system", "no version");
    for (const pugi::xml_node cpu : elements(root))
      if (is(cpu, "cpu")) count_host(cpu);
    for (const pugi::xml_node cpu : elements(root)) {
      if (is(cpu, "cpu"))
        read_cpu(cpu);
      else
        skip(cpu);
    }
    if (system_.hosts.empty()) document_.refuse(root, "", "no cpu", "at least one cpu element");
  }

 private:
  static bool is(pugi::xml_node element, std::string_view name) { return element.name() == name; }

  static std::vector<pugi::xml_node> elements(pugi::xml_node parent) {
    std::vector<pugi::xml_node> found;
    for (const pugi::xml_node child : parent.children())
      if (child.type() == pugi::node_element) found.push_back(child);
    return found;
  }

  void add_finding(std::string_view code, const std::string& place, std::string_view text) {
    system_.findings.add(code, place, text);
  }

  void skip(pugi::xml_node element) {
    add_finding("skipped-element", printable(element.name()),
                fmt::format("not known inside {}, and left out", printable(element.parent().name())));
  }

  std::uint32_t host_of(pugi::xml_node cpu) {
    const std::uint64_t hash = document_.hexadecimal(cpu, "host_hash").value_or(0);
    const auto [place, is_new] = hosts_.try_emplace(hash, static_cast<std::uint32_t>(hosts_.size()));
    if (is_new) system_.hosts.emplace_back();
    return place->second;
  }

  void count_host(pugi::xml_node cpu) {
    NcclHost& host = system_.hosts[host_of(cpu)];
    if (++host.cpus > max_cpus)
      document_.refuse(cpu, "", "one more cpu of the same host", fmt::format("at most {}", max_cpus));
    count(cpu, true, host);
  }

  /// `read`: every element above stands where it is read, not skipped.
  static void count(pugi::xml_node element, bool read, NcclHost& host) {
    ++host.elements;
    for (const pugi::xml_node child : elements(element)) {
      const bool below_pci = is(element, "pci"), below_nic = is(element, "nic");
      const bool bridges = is(child, "pci") || is(child, "nic");
      const bool child_read = read && ((bridges && (below_pci || is(element, "cpu"))) ||
                                       (is(child, "gpu") && below_pci) || (is(child, "net") && below_nic));
      host.has_gpus |= child_read && is(child, "gpu");
      host.has_nets |= child_read && is(child, "net");
      count(child, child_read, host);
    }
  }

  NcclItem& add(NcclItem item) {
    system_.items.push_back(std::move(item));
    return system_.items.back();
  }
  std::uint32_t last() const { return static_cast<std::uint32_t>(system_.items.size() - 1); }

  static void copy_attributes(pugi::xml_node element, NcclItem& item) {
    for (const pugi::xml_attribute attribute : element.attributes())
      if (std::string_view(attribute.name()) != "keep")
        item.attributes[fmt::format("{}.{}", element.name(), attribute.name())] = attribute.value();
  }

  void read_cpu(pugi::xml_node cpu) {
    check_forms(document_, cpu);
    NcclItem item;
    item.kind = VertexKind::cpu;
    item.host = host_of(cpu);
    item.label = NcclXmlDocument::text(cpu, "numaid").value_or("");
    copy_attributes(cpu, item);
    add(std::move(item));
    const std::uint32_t parent = last();
    for (const pugi::xml_node child : elements(cpu)) {
      if (is(child, "pci"))
        read_pci(child, parent);
      else if (is(child, "nic"))
        read_nic(child, parent);
      else
        skip(child);
    }
  }

  PciChildren children_of(pugi::xml_node pci, NcclItem& item) {
    PciChildren children;
    for (const pugi::xml_node child : elements(pci)) {
      if (is(child, "gpu"))
        children.gpus.push_back(child);
      else if (is(child, "pci"))
        children.bridges.push_back(child);
      else if (is(child, "nic"))
        collect_nets(child, children.nets);
      else if (is(child, "pcilink"))
        read_peer(child, item);
      else
        skip(child);
    }
    return children;
  }

  void collect_nets(pugi::xml_node nic, std::vector<pugi::xml_node>& nets) {
    for (const pugi::xml_node net : elements(nic)) {
      if (is(net, "net"))
        nets.push_back(net);
      else
        skip(net);
    }
  }

  void read_peer(pugi::xml_node link, NcclItem& item) {
    check_forms(document_, link);
    item.peers.emplace_back(NcclXmlDocument::text(link, "target").value_or(""));
  }

  void read_pci(pugi::xml_node pci, std::uint32_t parent) {
    check_forms(document_, pci);
    NcclItem item;
    item.host = system_.items[parent].host;
    item.parents = {parent};
    const std::string_view busid = NcclXmlDocument::text(pci, "busid").value_or("");
    if (busid.empty() || is_hidden_switch(busid))
      document_.refuse(pci, "busid", busid.empty() ? "none" : std::string(busid), "the address of a device");
    item.label = busid;
    item.id = busid_number(busid);
    if (!busids_.insert({item.host, *item.id}).second)
      document_.refuse(pci, "busid", fmt::format("a second {}", busid), "each address once on a host");
    copy_attributes(pci, item);
    const PciChildren children = children_of(pci, item);
    set_kind(children, item);
    set_rate(pci, item);
    if (item.kind == VertexKind::gpu && !children.gpus.empty()) read_gpu(children.gpus[0], item);
    if (item.kind == VertexKind::nic && !children.nets.empty()) read_net(children.nets[0], item);
    const bool alone = item.kind != VertexKind::pcie_switch;
    add(std::move(item));
    if (!alone) read_children(children, last());
  }

  void set_kind(const PciChildren& children, NcclItem& item) {
    const std::size_t gpus = children.gpus.size(), nets = children.nets.size();
    const NcclHost& host = system_.hosts[item.host];
    const std::string device_class =
        item.attributes.contains("pci.class") ? item.attributes.at("pci.class") : "";
    const bool leaf = gpus + nets + children.bridges.size() == 0;
    if (!children.bridges.empty()) return;
    if (gpus == 1 && nets == 0) item.kind = VertexKind::gpu;
    if (gpus == 0 && nets == 1) item.kind = VertexKind::nic;
    if (!leaf) return;
    if (!host.has_gpus && device_class.starts_with("0x03"))
      item.kind = VertexKind::gpu;
    else if (!host.has_nets && device_class.starts_with("0x02"))
      item.kind = VertexKind::nic;
    else if (!device_class.starts_with("0x0604") && !device_class.starts_with("0x080100"))
      add_finding("unknown-device", item.label,
                  "holds neither gpu nor net, and its class does not tell what it is");
  }

  void set_rate(pugi::xml_node pci, NcclItem& item) {
    const std::string_view speed = NcclXmlDocument::text(pci, "link_speed").value_or("");
    std::int64_t width = document_.integer(pci, "link_width", 0, 255).value_or(0);
    const std::optional<Bandwidth> x16 = pcie_x16_rate(speed);
    if (!x16 || width == 0 || width > 32) item.evidence = Evidence::nccl;
    if (!x16)
      add_finding("pcie-speed-unknown", item.label,
                  "no known link_speed; taken as generation 3, as NCCL does");
    else if (!nccl_knows_pcie_speed(speed))
      add_finding("pcie-speed-not-nccl", item.label,
                  "NCCL 2.30.7 does not know this link_speed and plans with generation 3");
    if (width > 32) add_finding("pcie-width", item.label, "no possible link_width; taken as 16");
    if (width == 0 || width > 32) width = 16;
    item.rate = {x16.value_or(gigabytes_per_second(15.75)).value * width / 16};
    if (!speed.starts_with("2.5 ")) return;
    if (item.kind == VertexKind::pcie_switch && width == 1)
      add_finding(
          "virtual-bridge", item.label,
          "the bridge reports 2.5 GT/s x1, as virtual bridges do: hardly the real speed towards the CPU");
    if (item.kind != VertexKind::pcie_switch)
      add_finding("pcie-generation-1", item.label, "reports 2.5 GT/s, as links do that sleep or are virtual");
  }

  void read_children(const PciChildren& children, std::uint32_t parent) {
    for (const pugi::xml_node gpu : children.gpus) {
      NcclItem item = child_of(parent, VertexKind::gpu);
      read_gpu(gpu, item);
      add(std::move(item));
    }
    for (const pugi::xml_node net : children.nets) {
      NcclItem item = child_of(parent, VertexKind::nic);
      read_net(net, item);
      add(std::move(item));
    }
    for (const pugi::xml_node pci : children.bridges) read_pci(pci, parent);
  }

  /// What shares the `pci` of its parent, and thus its rate.
  NcclItem child_of(std::uint32_t parent, VertexKind kind) const {
    const NcclItem& above = system_.items[parent];
    NcclItem item;
    item.kind = kind;
    item.host = above.host;
    item.parents = {parent};
    item.label = above.label;
    item.id = above.id;
    item.rate = above.rate;
    item.evidence = above.evidence;
    return item;
  }

  void read_gpu(pugi::xml_node gpu, NcclItem& item) {
    check_forms(document_, gpu);
    copy_attributes(gpu, item);
    item.dev = document_.integer(gpu, "dev", -1, 65535);
    item.sm = document_.integer(gpu, "sm", 0, 65535);
    item.mlopart = document_.integer(gpu, "mlopart", -1, 255);
    item.gdr = document_.integer(gpu, "gdr", -1, 1).value_or(1) != 0;
    for (const pugi::xml_node child : elements(gpu)) {
      if (is(child, "nvlink") || is(child, "xgmi"))
        read_nvlink(child, item);
      else if (is(child, "c2c"))
        read_c2c(child, item);
      else
        skip(child);
    }
    if (item.xgmi) item.attributes["nvlink.element"] = "xgmi";
  }

  void read_nvlink(pugi::xml_node link, NcclItem& item) {
    check_forms(document_, link);
    const std::string_view target = NcclXmlDocument::text(link, "target").value_or("");
    if (target.empty()) document_.refuse(link, "target", "none", "the busid of the other end");
    const std::int64_t count = document_.integer(link, "count", 0, 1024).value_or(1);
    if (count == 0) return add_finding("nvlink-count-0", item.label, "an NVLink record of no links");
    item.xgmi |= is(link, "xgmi");
    item.nvlinks.push_back({std::string(target),
                            std::string(NcclXmlDocument::text(link, "tclass").value_or("")),
                            static_cast<std::uint32_t>(count)});
  }

  void read_c2c(pugi::xml_node link, NcclItem& item) {
    check_forms(document_, link);
    if (item.c2c) document_.refuse(link, "", "a second c2c", "one c2c element in a gpu");
    C2cRecord record;
    record.megabytes = document_.integer(link, "bw", 0, 10'000'000).value_or(0);
    record.count = static_cast<std::uint32_t>(document_.integer(link, "count", 0, 1024).value_or(1));
    if (record.megabytes == 0) add_finding("c2c-rate-unknown", item.label, "a c2c without bandwidth");
    if (record.count > 0) item.c2c = record;
  }

  void read_net(pugi::xml_node net, NcclItem& item) {
    check_forms(document_, net);
    copy_attributes(net, item);
    item.label = NcclXmlDocument::text(net, "name").value_or(item.label);
    item.dev = document_.integer(net, "dev", -1, 65535);
    item.port = document_.integer(net, "port", -1, 65535);
    item.guid = document_.hexadecimal(net, "guid").value_or(0);
    item.gdr = document_.integer(net, "gdr", -1, 1).value_or(0) != 0;
    std::int64_t speed = document_.integer(net, "speed", -0x7FFFFFFF, 100'000'000).value_or(0);
    if (speed <= 0) {
      item.nic_evidence = Evidence::nccl;
      add_finding("nic-speed-unknown", item.label, "no speed; taken as 10 Gb/s, as NCCL does");
      speed = 10'000;
    }
    item.nic_rate = {speed * 125'000};  // Mb/s
    if (!item.dev) add_finding("net-without-dev", item.label, "no dev: NCCL ignores it");
  }

  /// A socket or virtual NIC. The file repeats one that is near to several CPUs under each of them.
  void read_nic(pugi::xml_node nic, std::uint32_t parent) {
    std::vector<pugi::xml_node> nets;
    collect_nets(nic, nets);
    for (const pugi::xml_node net : nets) {
      NcclItem item;
      item.kind = VertexKind::nic;
      item.host = system_.items[parent].host;
      item.parents = {parent};
      item.rate = nic_without_pcie;
      item.evidence = Evidence::nccl;
      read_net(net, item);
      if (item.label.empty()) {
        add(std::move(item));
        continue;
      }
      const SocketNic key{item.host, item.label, item.dev, item.port, item.guid};
      const auto [known, is_new] = socket_nics_.try_emplace(key, system_.items.size());
      if (is_new)
        add(std::move(item));
      else if (NcclItem& same = system_.items[known->second]; same.parents.back() != parent)
        same.parents.push_back(parent);
    }
  }

  /// Host, name, dev, port, guid.
  using SocketNic = std::tuple<std::uint32_t, std::string, std::optional<std::int64_t>,
                               std::optional<std::int64_t>, std::uint64_t>;

  const NcclXmlDocument& document_;
  XmlSystem& system_;
  std::map<std::uint64_t, std::uint32_t> hosts_;  // by hash
  std::map<SocketNic, std::size_t> socket_nics_;  // their items
  std::set<std::pair<std::uint32_t, std::uint64_t>> busids_;
};

}  // namespace

XmlSystem read_nccl_items(std::string_view text, const std::string& file) {
  const NcclXmlDocument document(text, file, {"system", max_elements});
  XmlSystem system;
  system.name = NcclXmlDocument::text(document.root(), "name").value_or("");
  if (system.name.empty()) system.name = printable(std::filesystem::path(file).stem().string());
  Walk(document, system).read();
  return system;
}

}  // namespace isthmus

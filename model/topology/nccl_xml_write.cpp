// The text of a system XML: the PCIe tree below each CPU, with attributes kept or invented.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_device_names.hpp"
#include "model/topology/nccl_rates.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_text.hpp"
#include "model/topology/nccl_xml_tree.hpp"
#include "model/topology/nccl_xml_written.hpp"

namespace isthmus {
namespace {

constexpr std::string_view switch_class = "0x068000", cpu_class = "0x068001";

using Attributes = NcclXmlText::Attributes;

class Writer {
 public:
  Writer(const Topology& topology, const std::map<std::uint32_t, bool>& gdr)
      : topology_(topology),
        block_(topology.types[topology.blocks[0]]),
        gdr_(gdr),
        tree_(find_tree(block_)),
        names_(block_, tree_) {
    for (const BlockGpu& gpu : block_.gpus) gpus_[gpu.vertex] = &gpu;
    for (const BlockNic& nic : block_.nics) nics_[nic.vertex] = &nic;
    for (const BlockWire& wire : block_.wires)
      if (wire.kind != WireKind::pcie) wires_[wire.from].push_back(&wire);
  }

  WrittenXml write() {
    Attributes system{{"version", is_amd() ? "2" : "1"}};
    if (!topology_.name.empty()) system.emplace_back("name", topology_.name);
    text_.open("system", system);
    for (std::uint32_t v = 0; v < block_.vertices.size(); ++v)
      if (kind(v) == VertexKind::cpu) write_cpu(v);
    text_.close("system");
    return {text_.take(), std::move(others_), names_.chips()};
  }

 private:
  const BlockVertex& at(std::uint32_t v) const { return block_.vertices[v]; }
  VertexKind kind(std::uint32_t v) const { return at(v).kind; }
  std::string name(std::uint32_t v) const { return vertex_name(block_, v); }
  bool is_amd() const {
    return std::ranges::any_of(block_.vertices, [](const BlockVertex& vertex) {
      const auto found = vertex.attributes.find("nvlink.element");
      return found != vertex.attributes.end() && found->second == "xgmi";
    });
  }

  /// The address of a GPU, or of the package that it is half of.
  std::string address(std::uint32_t v) const {
    if (names_.own_pci(v)) return names_.busid(v);
    const std::uint32_t above = tree_.parents[v].front();
    if (kind(above) == VertexKind::cpu) refuse_export(name(v) + " without an address", "a PCIe device");
    return names_.busid(above);
  }

  /// The vertex's own attributes of an element, and those of `changes` in their place.
  Attributes attributes_of(std::uint32_t v, std::string_view element,
                           const std::map<std::string, std::string>& changes) const {
    std::map<std::string, std::string> values;
    const std::string prefix = std::string(element) + ".";
    for (auto own = at(v).attributes.lower_bound(prefix);
         own != at(v).attributes.end() && own->first.starts_with(prefix); ++own)
      values[own->first.substr(prefix.size())] = own->second;
    for (const auto& [key, value] : changes) values[key] = value;
    return NcclXmlText::in_usual_order(std::move(values));
  }
  // Elements

  void write_cpu(std::uint32_t cpu) {
    std::map<std::string, std::string> words;
    if (is_preset()) words = invent_cpu(cpu);
    text_.open("cpu", attributes_of(cpu, "cpu", words));
    others_.push_back(cpu);
    write_children(cpu);
    text_.close("cpu");
  }

  /// A host that no file described has GPUs, none with attributes; what a file does not say of a CPU is left
  /// unsaid.
  bool is_preset() const {
    return !gpus_.empty() && std::all_of(block_.vertices.begin(), block_.vertices.end(),
                                         [](const BlockVertex& vertex) { return vertex.attributes.empty(); });
  }

  std::map<std::string, std::string> invent_cpu(std::uint32_t cpu) const {
    Bandwidth rate = gigabytes_per_second(22);
    bool c2c = false;
    const auto found = wires_.find(cpu);
    if (found != wires_.end()) {
      for (const BlockWire* wire : found->second) {
        if (wire->kind == WireKind::socket) rate = wire->rate;
        c2c |= wire->kind == WireKind::c2c;
      }
    }
    const auto words = c2c ? CpuWords{"arm64", "", 0, 0} : socket_words(rate);
    if (!words)
      refuse_export(fmt::format("{} GB/s between CPUs", static_cast<double>(rate.value) * 1e-9),
                    "a rate that NCCL plans with for some CPU");
    std::map<std::string, std::string> values{{"numaid", std::to_string(at(cpu).index)},
                                              {"arch", std::string(words->arch)}};
    if (words->vendor.empty()) return values;
    values["vendor"] = words->vendor;
    values["familyid"] = std::to_string(words->family);
    values["modelid"] = std::to_string(words->model);
    return values;
  }

  void write_children(std::uint32_t parent) {
    bool nic_open = false;
    for (const std::uint32_t child : tree_.children[parent]) {
      const bool bare_net = kind(child) == VertexKind::nic && !names_.own_pci(child);
      if (nic_open && !bare_net) text_.close("nic");
      if (bare_net && !nic_open) text_.open("nic", {});
      nic_open = bare_net;
      if (names_.own_pci(child))
        write_pci(child, parent);
      else if (bare_net)
        write_net(child);
      else
        write_gpu(child);
    }
    if (nic_open) text_.close("nic");
  }

  void write_pci(std::uint32_t v, std::uint32_t parent) {
    const Attributes attributes = attributes_of(v, "pci", pci_changes(v, parent));
    const bool bare = is_pci_only(v);
    if (kind(v) == VertexKind::pcie_switch) others_.push_back(v);
    const bool empty = bare && tree_.children[v].empty() && names_.attribute(v, "pcilink.target").empty();
    if (empty) return text_.leaf("pci", attributes);
    text_.open("pci", attributes);
    write_peers(v);
    if (kind(v) == VertexKind::gpu) write_gpu(v);
    if (kind(v) == VertexKind::nic) {
      text_.open("nic", {});
      write_net(v);
      text_.close("nic");
    }
    write_children(v);
    text_.close("pci");
  }

  /// A device that the source told by its class alone, or a switch.
  bool is_pci_only(std::uint32_t v) const {
    if (kind(v) == VertexKind::pcie_switch) return true;
    if (names_.attribute(v, "pci.busid").empty()) return false;
    if (kind(v) == VertexKind::gpu) return !names_.has_any(v, "gpu.") && !block_.nvlink_known;
    return !names_.has_any(v, "net.") && nics_.at(v)->rate.value == 0;
  }

  void write_peers(std::uint32_t v) {
    std::string_view rest = at(v).attributes.contains("pcilink.target")
                                ? std::string_view(at(v).attributes.at("pcilink.target"))
                                : std::string_view();
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      text_.leaf("pcilink", {{"target", std::string(rest.substr(0, end))}});
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }

  std::map<std::string, std::string> pci_changes(std::uint32_t v, std::uint32_t parent) const {
    std::map<std::string, std::string> changes{{"busid", names_.busid(v)}};
    if (names_.attribute(v, "pci.busid").empty()) {
      changes["class"] = kind(v) == VertexKind::gpu   ? "0x030200"
                         : kind(v) == VertexKind::nic ? "0x020700"
                                                      : "0x060400";
      for (const char* unknown : {"vendor", "device", "subsystem_vendor", "subsystem_device"})
        changes[unknown] = "0xffff";
    }
    const Bandwidth wanted = tree_.rate(v, parent);
    const std::int64_t width = c_integer(names_.attribute(v, "pci.link_width")).value_or(0);
    const auto x16 =
        pcie_x16_rate(names_.attribute(v, "pci.link_speed")).value_or(gigabytes_per_second(15.75));
    const Bandwidth stated{x16.value * (width <= 0 || width > 32 ? 16 : width) / 16};
    if (stated == wanted && !names_.attribute(v, "pci.busid").empty()) return changes;
    const std::optional<PcieWords> words = pcie_words(wanted);
    if (!words)
      refuse_export(fmt::format("PCIe of {} GB/s at {}", static_cast<double>(wanted.value) * 1e-9, name(v)),
                    "the rate of a PCIe generation and width");
    changes["link_speed"] = words->speed;
    changes["link_width"] = std::to_string(words->width);
    return changes;
  }

  void write_gpu(std::uint32_t v) {
    std::map<std::string, std::string> changes;
    const auto links = wires_.find(v);
    if (names_.is_invented(v)) {
      changes["dev"] = changes["rank"] = std::to_string(names_.dev(v));
      changes["sm"] = std::to_string(invent_sm(v));
      changes["gdr"] = gpus_.at(v)->gpudirect ? "1" : "0";
    }
    if (const auto forced = gdr_.find(v); forced != gdr_.end()) changes["gdr"] = forced->second ? "1" : "0";
    const Attributes attributes = attributes_of(v, "gpu", changes);
    const std::string unused = names_.attribute(v, "nvlink.unused");
    if (links == wires_.end() && unused.empty()) return text_.leaf("gpu", attributes);
    text_.open("gpu", attributes);
    if (links != wires_.end())
      for (const BlockWire* wire : links->second) write_link(v, *wire);
    write_unused(v, unused);
    text_.close("gpu");
  }

  /// Whether a NIC is called by its address, for want of a name.
  bool is_address(std::uint32_t v) const {
    return at(v).label.empty() || (names_.own_pci(v) && names_.busid(v) == at(v).label);
  }

  std::int64_t invent_sm(std::uint32_t v) const {
    constexpr std::int64_t hopper = 90;
    const auto links = wires_.find(v);
    if (links == wires_.end()) return hopper;
    for (const BlockWire* wire : links->second) {
      if (wire->kind != WireKind::nvlink || wire->wires == 0) continue;
      return nvlink_sm({wire->rate.value / wire->wires}).value_or(hopper);
    }
    return hopper;
  }

  std::string link_element(std::uint32_t v) const {
    return names_.attribute(v, "nvlink.element") == "xgmi" ? "xgmi" : "nvlink";
  }

  void write_link(std::uint32_t v, const BlockWire& wire) {
    if (wire.kind == WireKind::c2c) {
      constexpr std::int64_t megabyte = 1'000'000;
      const std::int64_t each = wire.wires == 0 ? 0 : wire.rate.value / wire.wires / megabyte;
      return text_.leaf("c2c", {{"bw", std::to_string(each)}, {"count", std::to_string(wire.wires)}});
    }
    if (wire.kind != WireKind::nvlink) return;
    std::string target, target_class{switch_class};
    if (kind(wire.to) == VertexKind::nvswitch) {
      target = names_.busid(wire.to);
    } else if (kind(wire.to) == VertexKind::gpu) {
      target = address(wire.to);
      target_class = names_.attribute(wire.to, "pci.class");
      if (target_class.empty()) target_class = "0x030200";
    } else {
      target = names_.attribute(v, "nvlink.cpu");
      if (target.empty())
        refuse_export("NVLink from " + name(v) + " to a CPU", "NVLink to GPUs and NVSwitches");
      target_class = cpu_class;
    }
    text_.leaf(link_element(v),
               {{"target", target}, {"count", std::to_string(wire.wires)}, {"tclass", target_class}});
  }

  /// Records that lead nowhere, as they were: target*count*class, with blanks between.
  void write_unused(std::uint32_t v, std::string_view records) {
    while (!records.empty()) {
      const std::size_t end = std::min(records.find(' '), records.size());
      const std::string_view record = records.substr(0, end);
      const std::size_t first = record.find('*'),
                        second = record.find('*', std::min(first + 1, record.size()));
      if (second == record.npos)
        refuse_export("an unused NVLink '" + printable(record) + "'", "target*count*class");
      Attributes attributes{{"target", std::string(record.substr(0, first))},
                            {"count", std::string(record.substr(first + 1, second - first - 1))}};
      if (second + 1 < record.size()) attributes.emplace_back("tclass", record.substr(second + 1));
      text_.leaf(link_element(v), attributes);
      records.remove_prefix(std::min(end + 1, records.size()));
    }
  }

  void write_net(std::uint32_t v) {
    const BlockNic& nic = *nics_.at(v);
    std::map<std::string, std::string> changes;
    if (names_.is_invented(v)) {
      const std::string dev = std::to_string(names_.dev(v));
      changes = {{"name", is_address(v) ? "mlx5_" + dev : at(v).label},
                 {"dev", dev},
                 {"port", "1"},
                 {"guid", fmt::format("{:#x}", 0x1000 + nic.card)},
                 {"gdr", "1"}};
    }
    constexpr std::int64_t megabit = 125'000, default_speed = 10'000;
    const std::int64_t speed = c_integer(names_.attribute(v, "net.speed")).value_or(0);
    if ((speed <= 0 ? default_speed : speed) * megabit != nic.rate.value) {
      if (nic.rate.value <= 0) refuse_export(name(v) + " without a rate", "a rate");
      changes["speed"] = std::to_string(nic.rate.value / megabit);
    }
    text_.leaf("net", attributes_of(v, "net", changes));
  }

  const Topology& topology_;
  const Block& block_;
  const std::map<std::uint32_t, bool>& gdr_;
  PcieTree tree_;
  NcclDeviceNames names_;
  NcclXmlText text_{};
  std::vector<std::uint32_t> others_{};
  std::map<std::uint32_t, const BlockGpu*> gpus_{};
  std::map<std::uint32_t, const BlockNic*> nics_{};
  std::map<std::uint32_t, std::vector<const BlockWire*>> wires_{};
};

}  // namespace

WrittenXml write_nccl_xml(const Topology& topology, const std::map<std::uint32_t, bool>& gdr) {
  return Writer(topology, gdr).write();
}

}  // namespace isthmus

// The system block of an NCCL log as a topology. Its rates are what NCCL plans with, not those of the wires.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/importers.hpp"
#include "model/topology/nccl_log_block.hpp"

namespace isthmus {
namespace {

constexpr Bandwidth slow_pcie = gigabytes_per_second(1);

/// 0x68000 is 0000:68:00.0.
std::string bus_id(std::uint64_t id) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id >> 20U, (id >> 12U) & 0xFFU, (id >> 4U) & 0xFFU,
                     id & 0xFU);
}

/// Rates that NCCL plans per NVLink, with the most links that a GPU of that kind has: the number of links in
/// a sum, where only one fits. Printed with one decimal.
std::optional<std::uint32_t> links_in(Bandwidth rate) {
  struct Plan {
    double rate;
    std::uint32_t most;
  };
  constexpr std::array plans{Plan{18, 4}, Plan{20, 12}, Plan{12, 4}, Plan{20.6, 18}, Plan{40.1, 36}};
  const double sum = static_cast<double>(rate.value) * 1e-9;
  std::optional<std::uint32_t> found;
  for (const Plan& plan : plans) {
    const double links = std::round(sum / plan.rate);
    if (links < 1 || links > plan.most || std::abs(links * plan.rate - sum) > 0.051) continue;
    if (found && *found != static_cast<std::uint32_t>(links)) return std::nullopt;
    found = static_cast<std::uint32_t>(links);
  }
  return found;
}

class LogTopology {
 public:
  LogTopology(const LogBlock& log, Findings& findings)
      : log_(log), findings_(findings), vertex_of_(log.vertices.size(), no_switch) {}

  Block build() {
    block_.hosts = log_.hosts;
    block_.name = log_.hosts == 1 ? "host of an NCCL log" : "hosts of an NCCL log";
    add_vertices();
    add_tree();
    add_links();
    add_rails();
    return std::move(block_);
  }

 private:
  std::vector<std::uint32_t> sorted(LogKind kind) const;
  void add_vertices();
  void add_gpus();
  void add_cpu(std::uint32_t number);
  void add_ports();
  void add_tree();
  void add_links();
  void add_rails();
  std::vector<std::optional<std::uint32_t>> nearest_gpus() const;

  const LogBlock& log_;
  Findings& findings_;
  Block block_;
  std::vector<std::uint32_t> vertex_of_;  // no_switch: none of its own
  std::vector<std::uint32_t> port_of_;    // the NET of each NIC vertex
};

/// GPUs by rank, everything else by id; host after host.
std::vector<std::uint32_t> LogTopology::sorted(LogKind kind) const {
  std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>> order;
  for (std::uint32_t i = 0; i < log_.vertices.size(); ++i) {
    const LogVertex& vertex = log_.vertices[i];
    if (vertex.kind != kind) continue;
    std::uint64_t key = vertex.id;
    if (kind == LogKind::gpu)
      key = whole_number(vertex.details.empty() ? "" : vertex.details[0], 10, 0xFFFF'FFFF).value_or(~0ULL);
    order.emplace_back(vertex.host, key, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::uint32_t> numbers;
  for (const auto& [host, key, number] : order) numbers.push_back(number);
  return numbers;
}

void LogTopology::add_gpus() {
  std::vector<std::string> unranked;
  for (const std::uint32_t i : sorted(LogKind::gpu)) {
    const LogVertex& gpu = log_.vertices[i];
    vertex_of_[i] = add_vertex(block_, VertexKind::gpu, gpu.host, bus_id(gpu.id));
    block_.gpus.push_back({vertex_of_[i], 0, true, std::nullopt});
    if (gpu.details.empty()) {
      unranked.push_back(bus_id(gpu.id));
    } else {
      block_.vertices.back().attributes["rank"] = gpu.details[0];
    }
  }
  if (!unranked.empty())
    findings_.add("gpu-without-rank",
                  fmt::format("GPUs {} are only the far end of a link", listed(unranked)));
}

void LogTopology::add_cpu(std::uint32_t number) {
  constexpr std::array<std::string_view, 4> archs{"", "x86_64", "ppc64", "arm64"};
  constexpr std::array<std::string_view, 4> vendors{"", "GenuineIntel", "AuthenticAMD", "  Shanghai  "};
  const LogVertex& cpu = log_.vertices[number];
  const bool unknown = cpu.id > 0x7FFF'FFFF'FFFF'FFFF;  // -1 printed in base 16
  const std::string numa = unknown ? "-1" : fmt::format("{}", cpu.id);
  vertex_of_[number] = add_vertex(block_, VertexKind::cpu, cpu.host, fmt::format("NUMA {}", numa));
  std::map<std::string, std::string>& attributes = block_.vertices.back().attributes;
  attributes["numaid"] = numa;
  const auto detail = [&](std::size_t i, std::uint64_t most) {
    return i < cpu.details.size() ? whole_number(cpu.details[i], 10, most) : std::nullopt;
  };
  if (const auto arch = detail(0, archs.size() - 1)) attributes["arch"] = archs[*arch];
  if (const auto vendor = detail(1, vendors.size() - 1)) attributes["vendor"] = vendors[*vendor];
  std::erase_if(attributes, [](const auto& each) { return each.second.empty(); });
}

/// A card with one port is its port; one with several becomes a switch above them: they share its slot.
void LogTopology::add_ports() {
  std::map<std::uint32_t, std::uint32_t> ports_of, cards;  // by NIC
  for (const LogVertex& vertex : log_.vertices)
    if (vertex.kind == LogKind::net && vertex.parent) ++ports_of[*vertex.parent];
  std::vector<std::string> empty;
  for (const std::uint32_t i : sorted(LogKind::nic)) {
    if (!ports_of.contains(i)) empty.push_back(bus_id(log_.vertices[i].id));
    if (ports_of.contains(i) && ports_of[i] > 1)
      vertex_of_[i] =
          add_vertex(block_, VertexKind::pcie_switch, log_.vertices[i].host, bus_id(log_.vertices[i].id));
  }
  if (!empty.empty())
    findings_.add("nic-without-port", fmt::format("NICs {} have no NET and are left out", listed(empty)));
  for (const std::uint32_t i : sorted(LogKind::net)) {
    const LogVertex& net = log_.vertices[i];
    if (!net.parent) continue;
    vertex_of_[i] = add_vertex(block_, VertexKind::nic, net.host, fmt::format("NET {:x}", net.id));
    std::map<std::string, std::string>& attributes = block_.vertices.back().attributes;
    attributes["dev"] = fmt::format("{}", net.id);
    constexpr std::array<const char*, 3> names{"coll", "guid", "port"};
    for (std::size_t k = 0; k < std::min(names.size(), net.details.size()); ++k)
      attributes[names.at(k)] = net.details[k];
    const auto card = static_cast<std::uint32_t>(cards.size());
    const std::uint32_t number = cards.emplace(*net.parent, card).first->second;
    block_.nics.push_back({vertex_of_[i], 0, number, net.up, Evidence::nccl});
    port_of_.push_back(i);
  }
}

void LogTopology::add_vertices() {
  add_gpus();
  std::uint32_t chips = 0;
  for (const std::uint32_t i : sorted(LogKind::nvs)) {
    vertex_of_[i] = add_vertex(block_, VertexKind::nvswitch, log_.vertices[i].host, "chips not visible");
    if (log_.hosts == 1) continue;
    block_.vertices.back().host.reset();  // shared by the hosts of a domain
    block_.vertices.back().index = chips++;
  }
  for (const std::uint32_t i : sorted(LogKind::cpu)) add_cpu(i);
  for (const std::uint32_t i : sorted(LogKind::pci)) {
    const LogVertex& pci = log_.vertices[i];
    vertex_of_[i] = add_vertex(block_, VertexKind::pcie_switch, pci.host, bus_id(pci.id));
    if (!pci.details.empty()) block_.vertices.back().attributes["device"] = pci.details[0];
  }
  add_ports();
}

void LogTopology::add_tree() {
  std::vector<std::string> slow;
  for (std::uint32_t i = 0; i < log_.vertices.size(); ++i) {
    const LogVertex& vertex = log_.vertices[i];
    if (!vertex.parent || vertex_of_[i] == no_switch) continue;
    std::uint32_t above = *vertex.parent;
    Bandwidth rate = vertex.up;
    if (vertex.kind == LogKind::net) {  // the wire is that of the card, the port's rate is the port's
      rate = log_.vertices[above].up;
      if (vertex_of_[above] == no_switch && log_.vertices[above].parent) above = *log_.vertices[above].parent;
    }
    if (vertex_of_[above] == no_switch) continue;  // a card that hangs on nothing
    join(block_, {vertex_of_[i], vertex_of_[above], WireKind::pcie, 1, rate, Evidence::nccl});
    if (rate < slow_pcie) slow.push_back(block_.vertices[vertex_of_[i]].label);
  }
  if (!slow.empty()) {
    findings_.add("pcie-slow", fmt::format("PCIe up from {} is planned with less than 1 GB/s: bridges of "
                                           "virtual machines report 2.5 GT/s x1, whatever lies below",
                                           listed(slow, 4)));
  }
}

void LogTopology::add_links() {
  std::map<std::tuple<std::uint32_t, std::uint32_t, LogLinkKind>, Bandwidth> known;
  for (const LogLink& link : log_.links) known[{link.from, link.to, link.kind}] = link.rate;
  constexpr std::array kinds{WireKind::nvlink, WireKind::c2c, WireKind::pcie, WireKind::socket};
  std::size_t one_way = 0, uncounted = 0, counted = 0;
  for (const LogLink& link : log_.links) {
    const auto back = known.find({link.to, link.from, link.kind});
    if (back != known.end() && link.to < link.from) continue;  // added from its other end
    const Bandwidth rate_back = back == known.end() ? link.rate : back->second;
    const auto printed_once = [&](std::uint32_t end) { return log_.vertices[end].kind == LogKind::nvs; };
    if (back == known.end() && !printed_once(link.to) && link.kind != LogLinkKind::c2c) ++one_way;
    std::uint32_t wires = 1;
    if (link.kind == LogLinkKind::nvl) {
      const auto links = links_in(link.rate);
      wires = links.value_or(1);
      (links ? counted : uncounted) += 1;
    }
    const WireKind kind = kinds.at(static_cast<std::size_t>(link.kind));
    const std::uint32_t from = vertex_of_[link.from], to = vertex_of_[link.to];
    block_.wires.push_back({from, to, kind, wires, link.rate, Evidence::nccl});
    block_.wires.push_back({to, from, kind, wires, rate_back, Evidence::nccl});
  }
  if (counted > 0) {
    findings_.add("nvlinks-counted-by-rate",
                  fmt::format("the number of NVLinks of {} connections follows from "
                              "their rate and what NCCL plans per link",
                              counted));
  }
  if (uncounted > 0)
    findings_.add("nvlinks-not-counted",
                  fmt::format("the rate of {} NVLink connections fits no number of links, or "
                              "several: read as one link each",
                              uncounted));
  if (one_way > 0)
    findings_.add("link-one-way",
                  fmt::format("{} links are listed from one end only: read both ways", one_way));
}

/// Of each NIC: the first GPU below the lowest PCI vertex that has both below it.
std::vector<std::optional<std::uint32_t>> LogTopology::nearest_gpus() const {
  std::vector<std::optional<std::uint32_t>> gpu_below(log_.vertices.size());
  const std::vector<std::uint32_t> gpus = sorted(LogKind::gpu);
  const auto pci_above = [&](std::uint32_t i) {
    const std::optional<std::uint32_t> parent = log_.vertices[i].parent;
    return parent && log_.vertices[*parent].kind != LogKind::cpu ? parent : std::nullopt;
  };
  for (std::uint32_t number = 0; number < gpus.size(); ++number) {
    for (auto above = pci_above(gpus[number]); above && !gpu_below[*above]; above = pci_above(*above))
      gpu_below[*above] = number;
  }
  std::vector<std::optional<std::uint32_t>> nearest;
  for (const std::uint32_t port : port_of_) {
    auto above = pci_above(port);
    while (above && !gpu_below[*above]) above = pci_above(*above);
    nearest.push_back(above ? gpu_below[*above] : std::nullopt);
  }
  return nearest;
}

void LogTopology::add_rails() {
  const std::vector<std::optional<std::uint32_t>> nearest = nearest_gpus();
  for (std::size_t first = 0, end = 0; first < block_.nics.size(); first = end) {
    const auto host_of = [&](std::size_t i) { return block_.vertices[block_.nics[i].vertex].host; };
    for (end = first; end < block_.nics.size() && host_of(end) == host_of(first);) ++end;
    const auto begin = nearest.begin();
    const std::vector<std::uint32_t> rails =
        rails_of({begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(end)});
    for (std::size_t i = first; i < end; ++i) block_.nics[i].rail = rails[i - first];
  }
}

}  // namespace

ImportedTopology read_nccl_log(std::string_view text, const std::string& file) {
  Findings findings;
  const LogBlock log = read_log_block(text, file, findings);
  Block block = LogTopology(log, findings).build();
  findings.add(
      "rates-planned-by-nccl",
      "rates are what NCCL plans with, below those of the wires; GPUDirect is not in the file: taken "
      "to work; rails count the NICs in the order of their nearest GPUs");
  Topology topology = topology_of(std::move(block), findings);
  return {std::move(topology), findings.take()};
}

}  // namespace isthmus

#include "model/topology/nccl_system.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {

namespace {

constexpr std::uint32_t absent = 0xFFFFFFFF;

Bandwidth megabytes_per_second(std::int64_t megabytes) { return {megabytes * 1'000'000}; }

const std::string* attribute(const BlockVertex& vertex, const std::string& name) {
  const auto found = vertex.attributes.find(name);
  return found == vertex.attributes.end() ? nullptr : &found->second;
}

bool says(const BlockVertex& vertex, const std::string& name, std::string_view value) {
  const std::string* text = attribute(vertex, name);
  return text && *text == value;
}

/// C's notation: 0x is hexadecimal.
std::optional<std::uint32_t> number_attribute(const BlockVertex& vertex, const std::string& name) {
  const std::string* text = attribute(vertex, name);
  if (!text) return std::nullopt;
  const bool hexadecimal = text->size() > 2 && text->compare(0, 2, "0x") == 0;
  const char* end = text->data() + text->size();
  std::uint32_t value = 0;
  const auto read = std::from_chars(text->data() + (hexadecimal ? 2 : 0), end, value, hexadecimal ? 16 : 10);
  if (read.ec != std::errc{} || read.ptr != end) return std::nullopt;
  return value;
}

Bandwidth planned_socket(const BlockVertex& cpu, const BlockWire& wire) {
  if (says(cpu, "cpu.arch", "arm64")) return megabytes_per_second(6'000);
  if (says(cpu, "cpu.arch", "ppc64")) return megabytes_per_second(32'000);
  if (says(cpu, "cpu.vendor", "AuthenticAMD")) return megabytes_per_second(16'000);
  if (says(cpu, "cpu.vendor", "CentaurHauls") || says(cpu, "cpu.vendor", "  Shanghai  ")) {
    return megabytes_per_second(6'000);
  }
  if (!says(cpu, "cpu.vendor", "GenuineIntel")) return wire.rate;
  const bool known = number_attribute(cpu, "cpu.familyid") == 6u;
  const std::uint32_t model = known ? number_attribute(cpu, "cpu.modelid").value_or(0) : 0;
  if (model >= 0xCF) return megabytes_per_second(40'000);       // Emerald Rapids
  if (model >= 0x8F) return megabytes_per_second(22'000);       // Sapphire Rapids
  return megabytes_per_second(model >= 0x55 ? 10'000 : 6'000);  // Skylake, before it
}

class Builder {
 public:
  Builder(const Block& block, std::span<const std::uint32_t> members)
      : block_(block), of_(block.vertices.size(), absent), gpu_at_(block.vertices.size(), absent) {
    add_gpus(members);
    add_cards();
    add_switches_and_cpus();
    for (const BlockWire& wire : block.wires) add_wire(wire);
    for (NcclVertex& vertex : system_.vertices) {
      std::stable_sort(vertex.links.begin(), vertex.links.end(),
                       [](const NcclLink& a, const NcclLink& b) { return a.bandwidth > b.bandwidth; });
    }
    move_ways_up_last();
  }
  NcclSystem take() { return std::move(system_); }

 private:
  std::uint32_t add_vertex(NcclVertexKind kind, std::uint32_t host) {
    system_.vertices.push_back({kind, host});
    return static_cast<std::uint32_t>(system_.vertices.size() - 1);
  }
  static std::uint32_t host_of(const BlockVertex& vertex) { return vertex.host.value_or(0); }

  void add_gpus(std::span<const std::uint32_t> members);
  void add_cards();
  void add_switches_and_cpus();
  std::uint32_t sm_of(std::uint32_t vertex) const;
  bool on_c2c(std::uint32_t vertex) const;
  std::uint32_t flattened_into(std::uint32_t vertex) const;
  std::uint32_t nvswitch_of(std::uint32_t partition);
  void add_wire(const BlockWire& wire);
  void add_nvlink(const BlockWire& wire);
  void add_link(std::uint32_t from, const NcclLink& link);
  Bandwidth planned(const BlockWire& wire) const;
  void move_ways_up_last();

  const Block& block_;
  NcclSystem system_{};
  std::vector<std::uint32_t> of_;      // vertex of the system per vertex of the block
  std::vector<std::uint32_t> gpu_at_;  // index into system_.gpus per vertex of the block
  std::map<std::uint32_t, std::uint32_t> nvswitch_of_partition_{};
};

void Builder::add_gpus(std::span<const std::uint32_t> members) {
  for (const std::uint32_t number : members) {
    ISTHMUS_ASSERT(number < block_.gpus.size(), "GPU {} of {}", number, block_.gpus.size());
    const BlockGpu& gpu = block_.gpus[number];
    const BlockVertex& vertex = block_.vertices[gpu.vertex];
    of_[gpu.vertex] = add_vertex(NcclVertexKind::gpu, host_of(vertex));
    gpu_at_[gpu.vertex] = static_cast<std::uint32_t>(system_.gpus.size());
    system_.gpus.push_back({number, of_[gpu.vertex], host_of(vertex),
                            number_attribute(vertex, "gpu.dev").value_or(vertex.index), sm_of(gpu.vertex),
                            gpu.gpudirect && !says(vertex, "gpu.gdr", "0"), Bandwidth{}, Bandwidth{}});
  }
}

/// NVLink's generation tells the GPU's where the source does not.
std::uint32_t Builder::sm_of(std::uint32_t vertex) const {
  if (const auto sm = number_attribute(block_.vertices[vertex], "gpu.sm")) return *sm;
  for (const BlockWire& wire : block_.wires) {
    if (wire.from != vertex || wire.kind != WireKind::nvlink || wire.wires == 0) continue;
    if (wire.rate.value / wire.wires > 37'500'000'000) return 100;
  }
  return 90;
}

void Builder::add_cards() {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> net_of_card;
  for (std::uint32_t port = 0; port < block_.nics.size(); ++port) {
    const BlockNic& nic = block_.nics[port];
    const BlockVertex& vertex = block_.vertices[nic.vertex];
    const auto [at, fresh] = net_of_card.try_emplace({host_of(vertex), nic.card}, system_.nets.size());
    if (fresh) {
      const std::uint32_t card = add_vertex(NcclVertexKind::nic, host_of(vertex));
      const std::uint32_t net = add_vertex(NcclVertexKind::net, host_of(vertex));
      system_.nets.push_back({net, host_of(vertex), nic.card, {}, Bandwidth{}, true});
      of_[nic.vertex] = card;
    }
    NcclNet& net = system_.nets[at->second];
    of_[nic.vertex] = of_[net.ports.empty() ? nic.vertex : block_.nics[net.ports.front()].vertex];
    net.ports.push_back(port);
    const Bandwidth rate = nic.rate.value > 0 ? nic.rate : megabytes_per_second(1'250);
    net.rate += rate;
    net.gpudirect = net.gpudirect && !says(vertex, "net.gdr", "0");
    add_link(of_[nic.vertex], {net.vertex, NcclLinkKind::network, rate});
    add_link(net.vertex, {of_[nic.vertex], NcclLinkKind::network, rate});
  }
}

/// A CPU that a GPU reaches by C2C is a Grace.
bool Builder::on_c2c(std::uint32_t vertex) const {
  return std::any_of(block_.wires.begin(), block_.wires.end(), [&](const BlockWire& wire) {
    return wire.kind == WireKind::c2c && (wire.from == vertex || wire.to == vertex);
  });
}

void Builder::add_switches_and_cpus() {
  for (std::uint32_t at = 0; at < block_.vertices.size(); ++at) {
    const BlockVertex& vertex = block_.vertices[at];
    if (vertex.kind == VertexKind::cpu) {
      of_[at] = add_vertex(NcclVertexKind::cpu, host_of(vertex));
      const bool arm = attribute(vertex, "cpu.arch") ? says(vertex, "cpu.arch", "arm64") : on_c2c(at);
      system_.cpus.push_back({of_[at], host_of(vertex), arm, says(vertex, "cpu.vendor", "AuthenticAMD")});
    } else if (vertex.kind == VertexKind::pcie_switch && flattened_into(at) == at) {
      of_[at] = add_vertex(NcclVertexKind::pcie, host_of(vertex));
    }
  }
  for (std::uint32_t at = 0; at < block_.vertices.size(); ++at) {
    if (block_.vertices[at].kind == VertexKind::pcie_switch) of_[at] = of_[flattened_into(at)];
  }
}

/// The switch that stands for this one: itself, or for a flattened one the next that is not.
std::uint32_t Builder::flattened_into(std::uint32_t vertex) const {
  if (!says(block_.vertices[vertex], "pci.flattened", "1")) return vertex;
  for (const BlockWire& wire : block_.wires) {
    if (wire.from != vertex || block_.vertices[wire.to].kind != VertexKind::pcie_switch) continue;
    if (!says(block_.vertices[wire.to], "pci.flattened", "1")) return wire.to;
  }
  return vertex;
}

std::uint32_t Builder::nvswitch_of(std::uint32_t partition) {
  const auto [at, fresh] = nvswitch_of_partition_.try_emplace(partition, 0u);
  if (fresh) at->second = add_vertex(NcclVertexKind::nvswitch, 0);
  return at->second;
}

void Builder::add_nvlink(const BlockWire& wire) {
  const bool out = gpu_at_[wire.from] != absent, in = gpu_at_[wire.to] != absent;
  const auto partition = [&](std::uint32_t vertex) {
    return block_.gpus[system_.gpus[gpu_at_[vertex]].number].partition;
  };
  std::uint32_t from = of_[wire.from], to = of_[wire.to];
  if (out && block_.vertices[wire.to].kind == VertexKind::nvswitch) to = nvswitch_of(partition(wire.from));
  if (in && block_.vertices[wire.from].kind == VertexKind::nvswitch) from = nvswitch_of(partition(wire.to));
  if (from == absent || to == absent || (!out && !in)) return;
  if (out && in && partition(wire.from) != partition(wire.to)) return;
  const Bandwidth bandwidth = planned(wire);
  add_link(from, {to, NcclLinkKind::nvlink, bandwidth});
  if (!out) return;
  NcclGpu& gpu = system_.gpus[gpu_at_[wire.from]];
  gpu.nvlink += bandwidth;
  gpu.nvlink_wire = {bandwidth.value / std::max(1u, wire.wires)};
}

void Builder::add_wire(const BlockWire& wire) {
  if (wire.kind == WireKind::nvlink) return add_nvlink(wire);
  const std::uint32_t from = of_[wire.from], to = of_[wire.to];
  if (from == absent || to == absent || from == to) return;
  const NcclLinkKind kind = wire.kind == WireKind::c2c      ? NcclLinkKind::c2c
                            : wire.kind == WireKind::socket ? NcclLinkKind::socket
                                                            : NcclLinkKind::pcie;
  add_link(from, {to, kind, planned(wire)});
}

void Builder::add_link(std::uint32_t from, const NcclLink& link) {
  if (link.bandwidth.value <= 0) return;
  std::vector<NcclLink>& links = system_.vertices[from].links;
  const auto same = std::find_if(links.begin(), links.end(), [&](const NcclLink& other) {
    return other.to == link.to && other.kind == link.kind;
  });
  if (same != links.end()) {
    same->bandwidth += link.bandwidth;
  } else {
    links.push_back(link);
  }
}

Bandwidth Builder::planned(const BlockWire& wire) const {
  if (wire.evidence == Evidence::nccl) return wire.rate;
  switch (wire.kind) {
    case WireKind::nvlink: {
      const std::uint32_t gpu = gpu_at_[wire.from] != absent ? gpu_at_[wire.from] : gpu_at_[wire.to];
      return planned_nvlink_wire(system_.gpus[gpu].sm) * wire.wires;
    }
    case WireKind::pcie: return planned_pcie(wire.rate);
    case WireKind::socket: return planned_socket(block_.vertices[wire.from], wire);
    case WireKind::c2c: break;
  }
  return wire.rate;
}

/// NCCL walks the PCIe trees from the CPUs down and looks at the way back up after everything below.
void Builder::move_ways_up_last() {
  std::vector<bool> seen(system_.vertices.size(), false);
  std::vector<std::uint32_t> queue;
  for (const NcclCpu& cpu : system_.cpus) {
    queue.push_back(cpu.vertex);
    seen[cpu.vertex] = true;
  }
  for (std::size_t next = 0; next < queue.size(); ++next) {
    const std::uint32_t above = queue[next];
    for (const NcclLink& link : system_.vertices[above].links) {
      if (link.kind != NcclLinkKind::pcie || seen[link.to]) continue;
      seen[link.to] = true;
      queue.push_back(link.to);
      std::vector<NcclLink>& links = system_.vertices[link.to].links;
      std::stable_partition(links.begin(), links.end(), [above](const NcclLink& other) {
        return other.to != above || other.kind != NcclLinkKind::pcie;
      });
    }
  }
}

}  // namespace

NcclSystem nccl_system(const Block& block, std::span<const std::uint32_t> members) {
  return Builder(block, members).take();
}

Bandwidth planned_nvlink_wire(std::uint32_t sm) {
  if (sm >= 100) return megabytes_per_second(40'100);
  if (sm >= 90) return megabytes_per_second(20'600);
  if (sm == 86) return megabytes_per_second(12'000);
  return megabytes_per_second(sm >= 60 && sm < 70 ? 18'000 : 20'000);
}

Bandwidth planned_pcie(Bandwidth nominal) {
  if (nominal.value <= 0) return megabytes_per_second(12'000);
  const bool gen6 = nominal >= megabytes_per_second(100'000);
  const Int128 planned = gen6 ? Int128{nominal.value} * 96 / 121 : Int128{nominal.value} * 48 / 63;
  return {static_cast<std::int64_t>(planned)};
}

}  // namespace isthmus

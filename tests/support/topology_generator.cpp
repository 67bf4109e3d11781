#include "tests/support/topology_generator.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/topology/topology_json.hpp"

namespace isthmus {
namespace {

/// Both ends included.
std::uint32_t pick(std::uint32_t least, std::uint32_t most) { return *rc::gen::inRange(least, most + 1); }
bool flip() { return *rc::gen::arbitrary<bool>(); }
bool rarely() { return pick(0, 9) == 9; }

std::string any_name() {
  const std::vector<std::string> names{"", "mlx5_3", "leaf \"3\" of {1}", "\xC3\xA4 \\ #", "a, b: c"};
  return names[pick(0, static_cast<std::uint32_t>(names.size() - 1))];
}

Evidence any_evidence() { return static_cast<Evidence>(pick(0, static_cast<std::uint32_t>(Evidence::user))); }

/// Now and then not known.
Bandwidth any_rate() {
  const std::vector<std::int64_t> rates{25'000'000'000, 50'000'000'000, 450'000'000'000, 1, 0};
  return {rates[pick(0, static_cast<std::uint32_t>(rates.size() - 1))]};
}

class BlockBuilder {
 public:
  Block build() {
    block_.name = any_name();
    block_.hosts = pick(1, 3);
    const std::uint32_t gpus = pick(0, 8), chips = pick(0, 3), switches = pick(0, 3), nics = pick(0, 8);
    const std::uint32_t cpus = pick(0, 2);
    add_all(VertexKind::gpu, gpus, gpus_);
    if (flip()) {
      for (std::uint32_t i = 0; i < chips; ++i) chips_.push_back(add(VertexKind::nvswitch, std::nullopt, i));
    } else {
      add_all(VertexKind::nvswitch, chips, chips_);
    }
    add_all(VertexKind::pcie_switch, switches, switches_);
    add_all(VertexKind::cpu, cpus, cpus_);
    add_all(VertexKind::nic, nics, nics_);
    join_nvlink();
    join_host(gpus_, flip() ? WireKind::c2c : WireKind::pcie);
    join_host(nics_, WireKind::pcie);
    join_sockets();
    add_settings();
    block_.nvlink_known = !rarely();
    return block_;
  }

 private:
  std::uint32_t add(VertexKind kind, std::optional<std::uint32_t> host, std::uint32_t index) {
    BlockVertex vertex{kind, host, index, any_name(), {}};
    if (rarely()) vertex.attributes = {{"busid", "0000:1b:00.0"}, {"link_speed", ""}, {"x", any_name()}};
    block_.vertices.push_back(std::move(vertex));
    return static_cast<std::uint32_t>(block_.vertices.size() - 1);
  }

  void add_all(VertexKind kind, std::uint32_t per_host, std::vector<std::uint32_t>& list) {
    for (std::uint32_t host = 0; host < block_.hosts; ++host)
      for (std::uint32_t i = 0; i < per_host; ++i) list.push_back(add(kind, host, i));
  }

  void wire(std::uint32_t a, std::uint32_t b, WireKind kind) {
    const std::uint32_t wires = pick(1, 18);
    const Bandwidth rate = any_rate();
    join(block_, a, b, kind, wires, rate);
    if (rarely()) block_.wires.back().rate = any_rate();
    block_.wires.back().evidence = any_evidence();
    if (!rarely()) block_.wires[block_.wires.size() - 2].evidence = block_.wires.back().evidence;
  }

  bool one_host(std::uint32_t a, std::uint32_t b) const {
    return block_.vertices[a].host == block_.vertices[b].host;
  }

  void join_nvlink() {
    const std::uint32_t style = pick(0, 2);  // none, direct, over chips
    for (std::size_t i = 0; style == 1 && i < gpus_.size(); ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (one_host(gpus_[i], gpus_[k]) && !rarely()) wire(gpus_[k], gpus_[i], WireKind::nvlink);
    for (std::size_t i = 0; style == 2 && i < gpus_.size(); ++i)
      for (const std::uint32_t chip : chips_) {
        const bool shared = !block_.vertices[chip].host;
        if ((shared || one_host(gpus_[i], chip)) && !rarely()) wire(gpus_[i], chip, WireKind::nvlink);
      }
  }

  void join_host(const std::vector<std::uint32_t>& ends, WireKind kind) {
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::uint32_t host = *block_.vertices[ends[i]].host;
      const auto above = [&](const std::vector<std::uint32_t>& list) {
        const std::size_t per_host = list.size() / block_.hosts;
        return list[host * per_host + pick(0, static_cast<std::uint32_t>(per_host - 1))];
      };
      if (kind == WireKind::pcie && !switches_.empty() && flip()) {
        wire(ends[i], above(switches_), kind);
      } else if (!cpus_.empty()) {
        wire(ends[i], above(cpus_), kind);
      }
    }
  }

  void join_sockets() {
    for (std::size_t i = 0; i < switches_.size() && !cpus_.empty(); ++i) {
      const std::uint32_t host = *block_.vertices[switches_[i]].host;
      wire(switches_[i], cpus_[host * (cpus_.size() / block_.hosts)], WireKind::pcie);
    }
    if (cpus_.size() != 2 * block_.hosts) return;
    for (std::size_t i = 0; i < cpus_.size(); i += 2) wire(cpus_[i], cpus_[i + 1], WireKind::socket);
  }

  void add_settings() {
    const std::uint32_t per_host = static_cast<std::uint32_t>(nics_.size()) / block_.hosts;
    const bool split = rarely();
    for (const std::uint32_t vertex : gpus_) {
      BlockGpu gpu{vertex, split ? pick(0, 1) : 0, !rarely(), std::nullopt};
      if (per_host > 0 && rarely())
        gpu.nic = *block_.vertices[vertex].host * per_host + pick(0, per_host - 1);
      block_.gpus.push_back(gpu);
    }
    const std::uint32_t ports_per_card = pick(1, 2);
    for (const std::uint32_t vertex : nics_) {
      const std::uint32_t index = block_.vertices[vertex].index;
      block_.nics.push_back({vertex, rarely() ? pick(0, 7) : index, index / ports_per_card,
                             rarely() ? any_rate() : Bandwidth{50'000'000'000}, any_evidence()});
    }
  }

  Block block_;
  std::vector<std::uint32_t> gpus_, chips_, switches_, cpus_, nics_;
};

void add_network(Topology& topology) {
  Network& network = topology.network;
  std::vector<std::uint32_t> first;  // of each tier
  const std::uint32_t tiers = pick(0, 4);
  for (std::uint32_t tier = 0; tier < tiers; ++tier) {
    first.push_back(static_cast<std::uint32_t>(network.switches.size()));
    const auto kind = static_cast<VertexKind>(static_cast<std::uint32_t>(VertexKind::leaf) + tier);
    for (std::uint32_t i = pick(1, 3); i > 0; --i)
      network.switches.push_back({kind, rarely() ? any_name() : fmt::format("{} {}", to_string(kind), i)});
  }
  for (std::uint32_t low = 0; low < network.switches.size(); ++low)
    for (std::uint32_t high = low + 1; high < network.switches.size(); ++high) {
      const bool next = network.switches[low].tier < network.switches[high].tier;
      if (next && !rarely()) network.cables.push_back({low, high, pick(1, 32), any_rate(), any_evidence()});
    }
}

void plug(Topology& topology) {
  const auto switches = static_cast<std::uint32_t>(topology.network.switches.size());
  const bool by_rail = flip();
  for (const std::uint32_t type : topology.blocks)
    for (const BlockNic& nic : topology.types[type].nics) {
      const bool plugged = switches > 0 && !rarely();
      const std::uint32_t place = by_rail ? nic.rail % std::max(switches, 1u) : pick(0, switches);
      topology.switch_of_nic.push_back(plugged && place < switches ? place : no_switch);
    }
}

}  // namespace

void join(Block& block, std::uint32_t a, std::uint32_t b, WireKind kind, std::uint32_t wires,
          Bandwidth rate) {
  block.wires.push_back({a, b, kind, wires, rate, Evidence::vendor});
  block.wires.push_back({b, a, kind, wires, rate, Evidence::vendor});
}

rc::Gen<Block> arbitrary_block() {
  return rc::gen::exec([] { return BlockBuilder().build(); });
}

rc::Gen<Topology> arbitrary_topology() {
  return rc::gen::exec([] {
    Topology topology;
    topology.name = any_name();
    const std::uint32_t types = pick(1, 3);
    for (std::uint32_t i = 0; i < types; ++i) topology.types.push_back(BlockBuilder().build());
    for (std::uint32_t i = pick(0, 6); i > 0; --i) topology.blocks.push_back(pick(0, types - 1));
    add_network(topology);
    plug(topology);
    topology.routing = {flip(), flip(), pick(0, 1000)};
    return topology;
  });
}

Topology healthy_topology(std::uint32_t hosts, std::uint32_t gpus, std::uint32_t spines) {
  constexpr Bandwidth nvlink{225'000'000'000}, pcie{63'000'000'000}, port{50'000'000'000};
  Topology topology;
  Block block{"host"};
  for (std::uint32_t i = 0; i < gpus; ++i) block.vertices.push_back({VertexKind::gpu, 0, i});
  for (std::uint32_t i = 0; i < 2; ++i) block.vertices.push_back({VertexKind::nvswitch, 0, i});
  for (std::uint32_t i = 0; i < gpus; ++i) block.vertices.push_back({VertexKind::pcie_switch, 0, i});
  block.vertices.push_back({VertexKind::cpu, 0, 0});
  for (std::uint32_t i = 0; i < gpus; ++i) block.vertices.push_back({VertexKind::nic, 0, i});
  const std::uint32_t chip = gpus, above = gpus + 2, cpu = above + gpus, nic = cpu + 1;
  for (std::uint32_t i = 0; i < gpus; ++i) {
    join(block, i, chip, WireKind::nvlink, 9, nvlink);
    join(block, i, chip + 1, WireKind::nvlink, 9, nvlink);
    join(block, i, above + i, WireKind::pcie, 1, pcie);
    join(block, nic + i, above + i, WireKind::pcie, 1, pcie);
    join(block, above + i, cpu, WireKind::pcie, 1, pcie);
    block.gpus.push_back({i, 0, true, std::nullopt});
    block.nics.push_back({nic + i, i, i, port});
  }
  topology.types.push_back(std::move(block));
  topology.blocks.assign(hosts, 0);
  for (std::uint32_t i = 0; i < gpus; ++i)
    topology.network.switches.push_back({VertexKind::leaf, fmt::format("leaf {}", i)});
  for (std::uint32_t i = 0; i < spines; ++i) {
    topology.network.switches.push_back({VertexKind::spine, fmt::format("spine {}", i)});
    for (std::uint32_t leaf = 0; leaf < gpus; ++leaf)
      topology.network.cables.push_back({leaf, gpus + i, hosts, port});
  }
  for (std::uint32_t n = 0; n < hosts * gpus; ++n) topology.switch_of_nic.push_back(n % gpus);
  return topology;
}

void showValue(const Topology& topology, std::ostream& stream) { stream << to_json(topology); }

}  // namespace isthmus

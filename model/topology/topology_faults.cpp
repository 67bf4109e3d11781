#include "model/topology/topology_faults.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/block_faults.hpp"

namespace isthmus {

std::size_t count_vertices(const Block& block, VertexKind kind) {
  return to_size(std::count_if(block.vertices.begin(), block.vertices.end(),
                               [&](const BlockVertex& vertex) { return vertex.kind == kind; }));
}

void TopologyFaults::add(std::string key, std::string found, std::string allowed, std::string change) {
  if (list_.size() < max_topology_faults)
    list_.push_back({{"", 0, std::move(key)}, std::move(found), std::move(allowed), std::move(change)});
}

void TopologyFaults::judge_count(std::string_view key, std::size_t count, std::size_t most) {
  if (count > most) {
    add(std::string(key), fmt::format("{}", count), fmt::format("at most {}", most), fmt::format("{}", most));
  }
}

void TopologyFaults::judge_text(const std::string& text, const std::function<std::string()>& key) {
  if (text.size() <= TopologyLimits::text_bytes && first_unprintable(text) == text.size()) return;
  add(key(), fmt::format("'{}'", printable(text)),
      fmt::format("one printable line of at most {} bytes", TopologyLimits::text_bytes), "a shorter name");
}

void TopologyFaults::judge_rate(Bandwidth rate, const std::function<std::string()>& key) {
  if (rate >= Bandwidth{0} && rate <= TopologyLimits::rate) return;
  add(key(), fmt::format("{} bytes per second", rate.value),
      fmt::format("0 (not known) to {}", TopologyLimits::rate.value), "0");
}

void TopologyFaults::judge_wires(std::uint32_t wires, const std::function<std::string()>& key) {
  if (wires >= 1 && wires <= TopologyLimits::wires) return;
  add(key(), fmt::format("{}", wires), fmt::format("1 to {}", TopologyLimits::wires), "1");
}

namespace {

struct Totals {
  std::uint64_t hosts = 0, gpus = 0, nics = 0;
};

/// Blocks of unknown types are faults and count nothing.
Totals judge_blocks(const Topology& topology, TopologyFaults& faults) {
  std::vector<Totals> of_type;
  for (const Block& type : topology.types) {
    of_type.push_back(
        {type.hosts, count_vertices(type, VertexKind::gpu), count_vertices(type, VertexKind::nic)});
  }
  Totals totals;
  for (std::size_t i = 0; i < topology.blocks.size(); ++i) {
    const std::uint32_t type = topology.blocks[i];
    if (type >= of_type.size()) {
      faults.add(fmt::format("blocks.{}", i), fmt::format("type {}", type),
                 fmt::format("one of the {} types", of_type.size()), "0");
      continue;
    }
    totals.hosts += of_type[type].hosts;
    totals.gpus += of_type[type].gpus;
    totals.nics += of_type[type].nics;
  }
  return totals;
}

void judge_totals(const Topology& topology, const Totals& totals, TopologyFaults& faults) {
  faults.judge_count("types", topology.types.size(), TopologyLimits::types);
  faults.judge_count("blocks", topology.blocks.size(), TopologyLimits::blocks);
  faults.judge_count("hosts", totals.hosts, TopologyLimits::hosts);
  faults.judge_count("gpus", totals.gpus, TopologyLimits::gpus);
  faults.judge_count("nics", totals.nics, TopologyLimits::nics);
  if (!topology.gpus_known && totals.gpus > 0) {
    faults.add("gpus_known", fmt::format("false with {} GPUs", totals.gpus), "true where any block has GPUs",
               "true");
  }
}

void judge_network(const Network& network, TopologyFaults& faults) {
  faults.judge_count("network.switches", network.switches.size(), TopologyLimits::switches);
  faults.judge_count("network.cables", network.cables.size(), TopologyLimits::cables);
  for (std::size_t i = 0; i < network.switches.size(); ++i) {
    const NetworkSwitch& each = network.switches[i];
    const auto key = [&](const char* member) { return fmt::format("network.switches.{}.{}", i, member); };
    faults.judge_text(each.name, [&] { return key("name"); });
    if (each.tier < VertexKind::leaf || each.tier > VertexKind::gateway) {
      const auto number = static_cast<int>(each.tier);
      const std::string found =
          each.tier < VertexKind::leaf ? std::string(to_string(each.tier)) : fmt::format("kind {}", number);
      faults.add(key("tier"), found, "leaf, spine, core, gateway", "leaf");
    }
  }
}

void judge_cables(const Network& network, TopologyFaults& faults) {
  const std::size_t switches = network.switches.size();
  for (std::size_t i = 0; i < network.cables.size(); ++i) {
    const NetworkCable& cable = network.cables[i];
    const auto key = [&](const char* member) { return fmt::format("network.cables.{}.{}", i, member); };
    faults.judge_wires(cable.wires, [&] { return key("wires"); });
    faults.judge_rate(cable.wire, [&] { return key("wire"); });
    if (cable.evidence > Evidence::user)
      faults.add(key("evidence"), "no such value", "vendor to user", "user");
    if (cable.low >= switches || cable.high >= switches) {
      const bool low = cable.low >= switches;
      faults.add(key(low ? "low" : "high"), fmt::format("switch {}", low ? cable.low : cable.high),
                 fmt::format("a number below {}, that of the switches", switches), "0");
      continue;
    }
    const VertexKind low = network.switches[cable.low].tier, high = network.switches[cable.high].tier;
    if (low >= high && high <= VertexKind::gateway && low <= VertexKind::gateway) {
      faults.add(key("high"), fmt::format("a {} above a {}", to_string(high), to_string(low)),
                 "a switch of a higher tier than `low`", "the two exchanged");
    }
  }
}

void judge_switch_of_nic(const Topology& topology, std::uint64_t nics, TopologyFaults& faults) {
  if (topology.switch_of_nic.size() != nics) {
    faults.add("switch_of_nic", fmt::format("{} entries", topology.switch_of_nic.size()),
               fmt::format("{}, one for each NIC of all blocks", nics), fmt::format("{} entries", nics));
  }
  const std::size_t switches = topology.network.switches.size();
  for (std::size_t nic = 0; nic < topology.switch_of_nic.size(); ++nic) {
    const std::uint32_t place = topology.switch_of_nic[nic];
    if (place == no_switch || place < switches) continue;
    faults.add(fmt::format("switch_of_nic.{}", nic), fmt::format("switch {}", place),
               fmt::format("a number below {}, that of the switches, or none", switches), "none");
  }
}

}  // namespace

std::vector<InputFault> topology_faults(const Topology& topology) {
  TopologyFaults faults;
  faults.judge_text(topology.name, [] { return std::string("name"); });
  for (std::size_t i = 0; i < topology.types.size(); ++i) judge_block(topology.types[i], i, faults);
  const Totals totals = judge_blocks(topology, faults);
  judge_totals(topology, totals, faults);
  judge_network(topology.network, faults);
  judge_cables(topology.network, faults);
  judge_switch_of_nic(topology, totals.nics, faults);
  if (topology.routing.seed > TopologyLimits::seed) {
    faults.add("routing.seed", fmt::format("{}", topology.routing.seed),
               fmt::format("0 to {}", TopologyLimits::seed), "0");
  }
  return faults.take();
}

}  // namespace isthmus

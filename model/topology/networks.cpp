#include "model/topology/networks.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <fmt/format.h>

namespace isthmus {
namespace {

constexpr std::uint32_t switch_ports = 64;
constexpr std::uint32_t pod_leaves = switch_ports / 2;  // a spine below cores: half its ports down, half up

std::uint32_t rounded_up(std::uint32_t n, std::uint32_t divisor) { return (n + divisor - 1) / divisor; }

/// How leaves, spines and cores are counted and cabled.
struct Plan {
  std::uint32_t leaves = 0, pods = 1, leaves_per_pod = 0;
  std::uint32_t up = 0, wires = 0, spines_per_pod = 0;  // of a leaf: wires up in all, and to each spine
  std::uint32_t spine_core_wires = 0, cores_per_spine = 0;
};

Plan plan_of(const NetworkDesign& design, std::uint32_t hosts) {
  Plan plan;
  plan.leaves = rounded_up(hosts, design.hosts_per_group) * design.leaves_per_group;
  plan.leaves_per_pod = plan.leaves;
  plan.up = std::max(1u, static_cast<std::uint32_t>(std::floor(design.up / design.oversubscription)));
  if (plan.leaves <= switch_ports) {
    plan.wires = switch_ports / std::max(std::bit_ceil(plan.leaves), design.reserved_leaves);
  } else {
    plan.leaves_per_pod = pod_leaves;
    plan.pods = rounded_up(plan.leaves, pod_leaves);
    plan.wires = 1;
    // Beyond 64 pods a core needs a port per pod: more than a 64-port switch has (docs/fabric.md).
    plan.spine_core_wires = switch_ports / std::min(std::bit_ceil(plan.pods), switch_ports);
    plan.cores_per_spine = pod_leaves / plan.spine_core_wires;
  }
  plan.wires = std::min(plan.wires, plan.up);
  plan.spines_per_pod = rounded_up(plan.up, plan.wires);
  return plan;
}

void add_switches(const NetworkDesign& design, const Plan& plan, Network& network) {
  for (std::uint32_t leaf = 0; leaf < plan.leaves; ++leaf) {
    network.switches.push_back(
        {VertexKind::leaf, fmt::format("leaf {} of {} {}", leaf % design.leaves_per_group, design.group_name,
                                       leaf / design.leaves_per_group)});
  }
  for (std::uint32_t pod = 0; pod < plan.pods; ++pod) {
    for (std::uint32_t spine = 0; spine < plan.spines_per_pod; ++spine) {
      network.switches.push_back({VertexKind::spine, fmt::format("spine {} of pod {}", spine, pod)});
    }
  }
  for (std::uint32_t core = 0; core < plan.spines_per_pod * plan.cores_per_spine; ++core) {
    network.switches.push_back({VertexKind::core, fmt::format("core {}", core)});
  }
}

void add_cables(const NetworkDesign& design, const Plan& plan, Network& network) {
  const std::uint32_t spines = plan.leaves, cores = spines + plan.pods * plan.spines_per_pod;
  for (std::uint32_t leaf = 0; leaf < plan.leaves; ++leaf) {
    const std::uint32_t first = spines + leaf / plan.leaves_per_pod * plan.spines_per_pod;
    for (std::uint32_t spine = 0; spine < plan.spines_per_pod; ++spine) {
      const std::uint32_t wires = std::min(plan.wires, plan.up - spine * plan.wires);
      network.cables.push_back({leaf, first + spine, wires, design.wire, Evidence::vendor});
    }
  }
  for (std::uint32_t spine = 0; spine < plan.pods * plan.spines_per_pod; ++spine) {
    for (std::uint32_t i = 0; i < plan.cores_per_spine; ++i) {
      const std::uint32_t core = spine % plan.spines_per_pod * plan.cores_per_spine + i;
      network.cables.push_back(
          {spines + spine, cores + core, plan.spine_core_wires, design.wire, Evidence::inferred});
    }
  }
}

}  // namespace

Cabling superpod_network(const NetworkDesign& design, std::uint32_t hosts, std::uint32_t rails) {
  const Plan plan = plan_of(design, hosts);
  Cabling cabling;
  add_switches(design, plan, cabling.network);
  add_cables(design, plan, cabling.network);
  for (std::uint32_t host = 0; host < hosts; ++host) {
    for (std::uint32_t rail = 0; rail < rails; ++rail) {
      cabling.switch_of_nic.push_back(host / design.hosts_per_group * design.leaves_per_group +
                                      rail % design.leaves_per_group);
    }
  }
  return cabling;
}

Cabling one_switch(std::uint32_t hosts, std::uint32_t rails) {
  Cabling cabling;
  cabling.network.switches.push_back({VertexKind::leaf, "switch"});
  cabling.switch_of_nic.assign(std::size_t{hosts} * rails, 0);
  return cabling;
}

Cabling rail_switches(std::uint32_t hosts, std::uint32_t rails) {
  Cabling cabling;
  for (std::uint32_t rail = 0; rail < rails; ++rail) {
    cabling.network.switches.push_back({VertexKind::leaf, fmt::format("switch of rail {}", rail)});
  }
  for (std::uint32_t nic = 0; nic < hosts * rails; ++nic) cabling.switch_of_nic.push_back(nic % rails);
  return cabling;
}

}  // namespace isthmus

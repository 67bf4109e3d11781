#pragma once
// A topology in numbers: what it has, what a GPU gets, what the network carries.
// Invariant: a pure function of a topology without topology_faults; labels and the order of vertices inside
// a block do not matter. nullopt stands for what the source does not say, never for 0.
// Words: `nvlinks` counts GPU-side link ends, `rails` the distinct rail numbers; a GPU's rates are those of
// model/topology/block_analysis.hpp; the oversubscription of a leaf is the rate of its NICs over that of its
// cables upwards; bisection as in model/topology/bisection.hpp. Rates are nominal, per direction.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

/// So many have this value; values in rising order, nullopt (not known) first.
struct RateCount {
  std::optional<Bandwidth> rate;
  std::uint64_t count = 0;
  friend bool operator==(const RateCount&, const RateCount&) = default;
};

struct RatioCount {
  double ratio = 0;
  std::uint64_t count = 0;
  friend bool operator==(const RatioCount&, const RatioCount&) = default;
};

struct TopologySummary {
  std::uint64_t blocks = 0, hosts = 0, nics = 0, rails = 0, unplugged_nics = 0;
  std::optional<std::uint64_t> gpus, nvlink_domains, nvlinks;
  std::vector<RateCount> nvlink_per_gpu, host_per_gpu, nic_per_gpu;  // NVLink; PCIe or C2C; NICs
  std::array<std::uint64_t, 4> switches{};                           // leaf, spine, core, gateway
  std::uint64_t host_cables = 0, switch_cables = 0;                  // in wires
  std::vector<RatioCount> leaf_oversubscription;  // of leaves with NICs, cables upwards and known rates
  std::optional<Bandwidth> bisection;
  friend bool operator==(const TopologySummary&, const TopologySummary&) = default;
};

TopologySummary summarise(const Topology& topology);

}  // namespace isthmus

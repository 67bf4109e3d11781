#pragma once
// The bisection bandwidth of a topology's network: what the NICs of the first half of the hosts (in their
// order, half rounded down) can send to those of the second half at once, per direction: a maximum flow over
// ports and cables. What lies inside hosts does not count.
// Method: switches that no capacity tells apart are merged first (colour refinement: in an equitable
// partition a flow spread evenly over each class is as good as any), then push-relabel runs on the rest.
// Invariant: exact. nullopt where a rate on the way is unknown, where there are fewer than two hosts or no
// switch, where the ports sum up to more than 2 exabytes per second, and for networks of more than
// max_flow_arcs kinds of cables.

#include <cstddef>
#include <optional>

#include "model/topology/topology.hpp"

namespace isthmus {

inline constexpr std::size_t max_flow_arcs = std::size_t{1} << 17;

/// Requires a topology without topology_faults.
std::optional<Bandwidth> bisection_bandwidth(const Topology& topology);

}  // namespace isthmus

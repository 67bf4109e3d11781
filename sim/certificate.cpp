#include "sim/certificate.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace isthmus::sim {
namespace {

struct CarriedLoad {
  Uint128 carried = 0;
  Uint128 weight = 0;  // of all flows
  std::uint64_t fastest = 0;
};

}  // namespace

std::string certify(const Allocation& allocation) {
  std::vector<CarriedLoad> loads(allocation.capacities.size());
  for (const Allocation::Group& group : allocation.classes) {
    if (group.flows == 0) continue;
    for (const Allocation::Share& share : group.shares) {
      CarriedLoad& load = loads[share.resource];
      const Uint128 weight = Uint128(share.weight) * group.flows;
      load.carried += weight * group.rate;
      load.weight += weight;
      load.fastest = std::max(load.fastest, group.rate);
    }
  }
  for (std::size_t r = 0; r < loads.size(); ++r) {
    if (loads[r].carried > allocation.capacities[r])
      return fmt::format("resource {} carries more than its capacity", r);
  }
  for (std::size_t c = 0; c < allocation.classes.size(); ++c) {
    const Allocation::Group& group = allocation.classes[c];
    if (group.flows == 0 || group.rate == group.cap) continue;
    if (group.rate > group.cap) return fmt::format("class {} is faster than its cap", c);
    const bool held = std::any_of(group.shares.begin(), group.shares.end(), [&](const auto& share) {
      const CarriedLoad& load = loads[share.resource];
      return allocation.capacities[share.resource] - load.carried < load.weight && group.rate == load.fastest;
    });
    if (!held) return fmt::format("class {} has no full resource on which it is fastest", c);
  }
  return {};
}

}  // namespace isthmus::sim

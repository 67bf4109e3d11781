#pragma once
// Random resources and classes for the level solver alone, and what its rates should be: a water-fill that
// begins from nothing each time, resource by resource, in integers that are rounded down as levels are.
// Many capacities are equal or differ by less than a bucket of the order of repairs, which is what makes
// repairs look at a resource again. Invariant: equal seeds give equal cases.

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "sim/certificate.hpp"
#include "sim/levels.hpp"

namespace isthmus::sim::cases {

class LevelCase {
 public:
  explicit LevelCase(std::uint64_t seed) : random_(seed) {
    const std::uint32_t resources = below(12) + 1;
    const std::uint64_t base = std::uint64_t{1} << (36 + below(4));
    for (std::uint32_t r = 0; r < resources; ++r) {
      rates.capacities.push_back(Uint128(base + (below(2) == 0 ? 0 : below(1U << (8 + below(24))))) << 20U);
    }
    const std::uint32_t classes = below(24) + 1;
    for (std::uint32_t c = 0; c < classes; ++c) add_class(resources);
  }

  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }

  /// The resources and classes, none with flows.
  Levels levels(std::uint32_t patience = 16) const {
    Levels made(patience);
    for (const Uint128 capacity : rates.capacities) made.add_resource(capacity);
    for (const Allocation::Group& group : rates.classes) {
      std::vector<Levels::Load> loads;
      for (const Allocation::Share& share : group.shares) loads.push_back({share.resource, share.weight});
      made.add_class(loads, group.cap);
    }
    made.prepare();
    return made;
  }

  /// Rates by class, 0 without flows.
  std::vector<std::uint64_t> water_fill() const {
    std::vector<std::uint64_t> found(rates.classes.size(), 0);
    std::vector<Uint128> left = rates.capacities;
    std::set<std::size_t> open;
    for (std::size_t c = 0; c < found.size(); ++c) {
      if (rates.classes[c].flows > 0) open.insert(c);
    }
    while (!open.empty()) fill_one(found, left, open);
    return found;
  }

  Allocation rates;  // capacities and classes; flows are for the test to change, rates for it to fill in

 private:
  void add_class(std::uint32_t resources) {
    Allocation::Group group;
    std::set<std::uint32_t> used;
    for (std::uint32_t l = below(4) + 1; l > 0; --l) used.insert(below(resources));
    const std::uint64_t one = std::uint64_t{1} << 20U;
    for (const std::uint32_t r : used) group.shares.push_back({r, below(3) == 0 ? one / 3 * (r + 1) : one});
    if (below(4) == 0) group.cap = std::uint64_t{1} << (30 + below(8));
    rates.classes.push_back(std::move(group));
  }

  /// Freezes the classes of all the tightest resources, and those whose caps are as tight.
  void fill_one(std::vector<std::uint64_t>& found, std::vector<Uint128>& left,
                std::set<std::size_t>& open) const {
    Uint128 level = Allocation::no_cap;
    std::set<std::size_t> frozen;
    for (const std::size_t c : open) {
      if (rates.classes[c].cap > level) continue;
      if (rates.classes[c].cap < level) frozen.clear();
      level = rates.classes[c].cap;
      frozen.insert(c);
    }
    for (std::uint32_t r = 0; r < left.size(); ++r) {
      std::vector<std::size_t> here;
      Uint128 load = 0;
      for (const std::size_t c : open) {
        for (const Allocation::Share& share : rates.classes[c].shares) {
          if (share.resource != r) continue;
          here.push_back(c);
          load += Uint128(share.weight) * rates.classes[c].flows;
        }
      }
      if (here.empty() || left[r] / load > level) continue;
      if (left[r] / load < level) frozen.clear();
      level = left[r] / load;
      frozen.insert(here.begin(), here.end());
    }
    for (const std::size_t c : frozen) {
      found[c] = static_cast<std::uint64_t>(level);
      for (const Allocation::Share& share : rates.classes[c].shares)
        left[share.resource] -= level * share.weight * rates.classes[c].flows;
      open.erase(c);
    }
  }

  std::mt19937_64 random_;
};

}  // namespace isthmus::sim::cases

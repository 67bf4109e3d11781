#pragma once
// The resources and classes of a simulation before it starts: all that Fluid will be asked to share.
// Resources that the same classes load with the same weights are one: only the smallest capacity of them can
// bind. Merging them changes no rate, and takes the thousand ports of a large collective to a few.

#include <cstdint>
#include <vector>

#include "sim/fluid.hpp"

namespace isthmus::sim {

class Network {
 public:
  std::uint32_t add_resource(std::int64_t capacity);   // units per second, >= 1
  std::uint32_t add_class(std::vector<Usage> usages);  // at least one; each resource at most once

  /// The same classes, same numbers, with equal resources merged.
  Network merged() const;
  /// The solver for these resources and classes.
  Fluid fluid() const;

  const std::vector<std::int64_t>& capacities() const { return capacities_; }
  const std::vector<std::vector<Usage>>& classes() const { return classes_; }

 private:
  /// By resource: the first resource with the same classes and weights.
  std::vector<std::uint32_t> representatives() const;

  std::vector<std::int64_t> capacities_;
  std::vector<std::vector<Usage>> classes_;
};

}  // namespace isthmus::sim

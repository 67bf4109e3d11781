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
  std::uint32_t add_resource(std::int64_t capacity);  // units per second, >= 1
  /// At least one usage; each resource at most once.
  std::uint32_t add_class(std::vector<Usage> usages, const Sharing& sharing = {});

  /// The same classes, same numbers, with equal resources merged, but for those that stay `apart` (none of
  /// them, or by resource). `number`: what each resource is called then.
  Network merged(const std::vector<char>& apart, std::vector<std::uint32_t>& number) const;
  /// The solver for these resources and classes.
  Fluid fluid() const;

  const std::vector<std::int64_t>& capacities() const { return capacities_; }
  const std::vector<std::vector<Usage>>& classes() const { return classes_; }

 private:
  /// By resource: the first resource with the same classes and weights.
  std::vector<std::uint32_t> representatives(const std::vector<char>& apart) const;

  std::vector<std::int64_t> capacities_;
  std::vector<std::vector<Usage>> classes_;
  std::vector<Sharing> sharing_;  // by class
};

}  // namespace isthmus::sim

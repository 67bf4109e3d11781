#pragma once
// Internal to the naive plan makers: the pattern of one geometry by one method and in one order, where source
// and target bases are `distance` (target minus source) apart. Invariant: the pattern is correct wherever
// `in_reach` tells the truth about all its instances.

#include <cstdint>
#include <functional>

#include "tests/support/plan_builder.hpp"

namespace isthmus::test {

struct PatternRequest {
  const Geometry& geometry;
  std::int64_t distance = 0;
  Method method = Method::direct;
  const BuildOptions& options;
  std::function<bool(LocalRank, LocalRank)> in_reach;  // whether a put may go from the first to the second
};
Pattern build_pattern(const PatternRequest& request);

}  // namespace isthmus::test

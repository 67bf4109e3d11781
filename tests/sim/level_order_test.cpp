#include "sim/level_order.hpp"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::sim {
namespace {

/// Any octave is as likely as any other.
std::uint64_t any_level() { return *rc::gen::arbitrary<std::uint64_t>() >> *rc::gen::inRange(0U, 64U); }

RC_GTEST_PROP(LevelOrder, gives_every_resource_once_and_none_much_above_the_lowest, ()) {
  const bool strict = *rc::gen::arbitrary<bool>();
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 200);
  LevelOrder order;
  order.resize(count);
  order.strict(strict);
  std::map<std::uint32_t, std::uint64_t> left;
  for (std::uint32_t r = 0; r < count; ++r) {
    left[r] = any_level();
    order.add(r, left[r]);
    if (*rc::gen::inRange(0, 3) > 0) continue;
    const std::uint32_t taken = order.pop();
    std::uint64_t lowest = left.at(taken);
    for (const auto& [resource, level] : left) lowest = std::min(lowest, level);
    RC_ASSERT(left.at(taken) - lowest <= (strict ? 0 : lowest / 1024));
    left.erase(taken);
  }
  while (!order.empty()) RC_ASSERT(left.erase(order.pop()) == 1U);
  RC_ASSERT(left.empty());
}

}  // namespace
}  // namespace isthmus::sim

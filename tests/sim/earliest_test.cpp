#include "sim/earliest.hpp"

#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::sim {
namespace {

RC_GTEST_PROP(Earliest, knows_the_least_number_and_who_has_it_after_any_writes, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(1, 700);
  Earliest keys;
  keys.resize(count);
  std::vector<std::int64_t> plain(count, Earliest::never);
  const auto writes = *rc::gen::container<std::vector<std::pair<std::size_t, std::int64_t>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, count), rc::gen::inRange<std::int64_t>(0, 50)));
  for (const auto& [index, key] : writes) {
    plain[index] = key == 49 ? Earliest::never : key;
    keys.set(index, plain[index]);
    const std::int64_t least = *std::min_element(plain.begin(), plain.end());
    if (key % 2 == 0) RC_ASSERT(keys.least() == least);
    if (key % 3 != 0 || least == Earliest::never) continue;
    std::vector<std::uint32_t> expected, found;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (plain[i] <= least + 2) expected.push_back(i);
    }
    keys.up_to(least + 2, [&](std::uint32_t i) { found.push_back(i); });
    RC_ASSERT(found == expected);
  }
}

}  // namespace
}  // namespace isthmus::sim

#include "hw/ready.hpp"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/plan_builder.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

std::vector<Rank> ranks_of(const Operations& operations, const Operation& operation) {
  if (operations.collective(operation)) return operations.members[operation.members];
  if (operation.source == operation.target) return {operation.source};
  return {operation.source, operation.target};
}

/// The rule, asked of one operation by looking at all others.
bool may_run(const Operations& operations, const std::set<std::uint32_t>& complete, std::uint32_t index) {
  const Operation& operation = operations.list[index];
  for (const std::uint32_t earlier : operations.dependencies(operation))
    if (complete.count(earlier) == 0) return false;
  for (const Rank rank : ranks_of(operations, operation)) {
    std::set<std::uint32_t> unfinished, all;  // earlier groups of this rank on this lane
    for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
      const Operation& other = operations.list[i];
      if (other.lane != operation.lane || other.group >= operation.group) continue;
      for (const Rank member : ranks_of(operations, other)) {
        if (member != rank) continue;
        all.insert(other.group);
        if (complete.count(i) == 0) unfinished.insert(other.group);
      }
    }
    // Groups are done in order: what stands before the first unfinished one is.
    const auto first = unfinished.empty() ? all.end() : all.find(*unfinished.begin());
    const auto open = static_cast<std::uint32_t>(std::distance(first, all.end()));
    if (open >= operations.lanes[operation.lane.index()].window) return false;
  }
  return true;
}

RC_GTEST_PROP(Ready, opens_exactly_what_the_rule_allows, (std::uint64_t seed)) {
  const Refit refit = test::make_refit(*test::refit_cases());
  const Operations operations = expand(refit, test::build_plan(refit, test::options_of(seed)));
  RC_PRE(operations.list.size() <= 60U);
  ReadyOperations order(operations);
  std::vector<std::uint32_t> ready;
  std::set<std::uint32_t> complete;
  order.begin(ready);
  while (!ready.empty()) {
    for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
      const bool said = std::find(ready.begin(), ready.end(), i) != ready.end();
      RC_ASSERT(said == (complete.count(i) == 0 && may_run(operations, complete, i)));
    }
    const std::size_t which = *rc::gen::inRange<std::size_t>(0, ready.size());
    const std::uint32_t next = ready[which];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(which));
    complete.insert(next);
    order.complete(next, ready);
  }
  RC_ASSERT(order.left() == 0U);
}

}  // namespace
}  // namespace isthmus::hw

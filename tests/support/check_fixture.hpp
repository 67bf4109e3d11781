#pragma once
// Fixture for tests of the checker: a refit of bare tensors with one mesh axis per side, and a plan that is
// written down step by step. Expectations ask the twin as well: what is proven must arrive, what is refused
// must go wrong.

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/twin.hpp"

namespace isthmus::test {

inline Region box(std::vector<std::int64_t> begin, std::vector<std::int64_t> end) {
  Region region;
  region.dimensions = begin.size();
  std::copy(begin.begin(), begin.end(), region.begin.begin());
  std::copy(end.begin(), end.end(), region.end.begin());
  return region;
}

/// One mesh axis.
struct Side {
  std::int64_t ranks = 1;
  std::uint32_t first = 0;
  int dimension = Placement::replicated;
  ChunkRule rule = ChunkRule::even;
};

inline TensorSpec tensor(const std::string& name, const std::vector<std::int64_t>& shape, const Side& source,
                         const Side& target) {
  const auto layout = [&shape](const Side& side) {
    return Layout{
        shape, Dtype::bf16, contiguous_mesh({side.ranks}, {side.first}), {{side.dimension}}, side.rule};
  };
  return {name, layout(source), layout(target)};
}

/// A refit and a plan with one pattern per tensor, to be filled step by step.
class CheckFixture : public ::testing::Test {
 protected:
  void refit(std::vector<TensorSpec> tensors, std::size_t ranks) {
    refit_.emplace(make_refit({std::move(tensors), ranks}));
    plan_.lanes = {{"main", 1, false}, {"side", 1, false}};
    for (std::uint32_t i = 0; i < refit_->tensors.size(); ++i) {
      plan_.patterns.emplace_back();
      const RefitEntry& entry = refit_->tensors[i];
      plan_.instances.push_back({{i}, {i}, entry.source_base, entry.target_base, {0}, 0});
    }
  }

  Step& add(Step step, const std::vector<std::uint32_t>& after = {}, std::size_t pattern = 0) {
    Pattern& to = plan_.patterns[pattern];
    step.after_begin = static_cast<std::uint32_t>(to.after.size());
    to.after.insert(to.after.end(), after.begin(), after.end());
    step.after_end = static_cast<std::uint32_t>(to.after.size());
    to.steps.push_back(step);
    return to.steps.back();
  }

  /// A send from a source rank to a target rank, both local.
  Step& send(std::size_t source, std::size_t target, const Region& region, std::uint32_t group = 0,
             std::size_t pattern = 0) {
    Step step;
    step.source = LocalRank::source(source);
    step.target = LocalRank::target(target);
    step.region = region;
    step.group = group;
    return add(step, {}, pattern);
  }

  Proof proof(const Limits& limits = {}) const { return check(*refit_, plan_, limits); }

  void expect_proven() const {
    const Proof result = proof();
    EXPECT_EQ(messages(result), std::vector<std::string>{});
    EXPECT_TRUE(Twin(*refit_).run(plan_).correct());
  }

  /// One violation, and the twin sees that something is wrong.
  void expect_fault(Fault fault, const std::string& message) const {
    const Proof result = proof();
    ASSERT_EQ(result.violations.size(), 1U) << ::testing::PrintToString(messages(result));
    EXPECT_EQ(result.violations[0].fault, fault);
    EXPECT_EQ(result.violations[0].message, message);
    EXPECT_EQ(result.violation_count, 1U);
    EXPECT_FALSE(result.proven());
    EXPECT_FALSE(Twin(*refit_).run(plan_).correct());
  }

  static std::vector<std::string> messages(const Proof& proof) {
    std::vector<std::string> texts;
    for (const Violation& violation : proof.violations) texts.push_back(violation.message);
    return texts;
  }

  std::optional<Refit> refit_;
  Plan plan_;
};

}  // namespace isthmus::test

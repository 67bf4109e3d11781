// Every rank of a new membership ends with its shards, no byte that is held moves, and the plans are proven.

#include "planner/catch_up.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/membership_case.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus {
namespace {

using test::MembershipCase;
using ::testing::HasSubstr;

constexpr std::uint64_t changes = 3 * test::shards;

/// A change, carried out.
struct ChangedCase {
  explicit ChangedCase(const MembershipCase& made)
      : change(made.change),
        before(resolve(made.scenario())),
        after(change_membership(made.scenario(), before, change)) {}

  CatchUp run(CatchUpFrom from) const { return catch_up(before, after.refit, change.leave, from); }
  std::vector<std::string> faults(const CatchUp& caught) const {
    return catch_up_faults(before, after.refit, change.leave, caught);
  }

  MembershipChange change;
  Refit before;
  Membership after;
};

/// Shards by side and GPU of one tensor.
std::map<std::pair<bool, GpuId>, Region> shards(const Refit& refit, const RefitEntry& entry) {
  std::map<std::pair<bool, GpuId>, Region> found;
  for (const bool train : {true, false}) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    const Layout& layout = train ? geometry.source : geometry.target;
    const Rank base = train ? entry.source_base : entry.target_base;
    for (std::size_t i = 0; i < layout.mesh.size(); ++i)
      found[{train, refit.gpu({base.value + layout.mesh.ranks[i].value})}] = layout.region(i);
  }
  return found;
}

/// Bytes of new shards outside what their GPU had before and has not lost.
Bytes least_bytes(const ChangedCase& changed) {
  Bytes sum;
  for (std::uint32_t t = 0; t < changed.after.refit.tensors.size(); ++t) {
    auto old = shards(changed.before, changed.before.tensors[t]);
    const Layout& layout = changed.after.refit.geometry({t}).target;
    for (const auto& [where, shard] : shards(changed.after.refit, changed.after.refit.tensors[t])) {
      const auto host = static_cast<int>(changed.before.fabric.host_of(where.second).value);
      const std::vector<int>& lost = changed.change.leave;
      const bool empty = std::find(lost.begin(), lost.end(), host) != lost.end();
      sum += layout.bytes(shard);
      if (!empty) sum -= layout.bytes(intersect(shard, old[where]));
    }
  }
  return sum;
}

void expect_proven(const Refit& refit, std::string_view policy) {
  const PlanResult made = find_policy(policy)->make(refit);
  if (std::holds_alternative<Refused>(made)) return;
  const Proof proof = check(refit, std::get<Plan>(made));
  EXPECT_TRUE(proof.proven()) << policy << ": " << proof.violations.front().message;
}

class CatchUpShards : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(CatchUpShards, bring_every_missing_byte_once_by_plans_that_are_proven) {
  const auto [begin, end] = test::seeds_of_shard(GetParam(), changes);
  for (std::uint64_t seed = begin; seed < end; ++seed) {
    const MembershipCase made = test::sample_membership(seed);
    std::ostringstream shown;
    test::showValue(made, shown);
    SCOPED_TRACE(shown.str());
    const ChangedCase changed(made);
    for (const CatchUpFrom from : {CatchUpFrom::own_side, CatchUpFrom::other_side}) {
      const CatchUp caught = changed.run(from);
      if (!caught.refused.empty()) {
        EXPECT_THAT(caught.refused, HasSubstr("no host that stays holds"));
        continue;
      }
      EXPECT_THAT(changed.faults(caught), ::testing::IsEmpty());
      EXPECT_EQ(caught.moved, least_bytes(changed));
      EXPECT_EQ(caught.kept + caught.moved, caught.needed);
      for (const char* const policy : {"p2p", "balanced", "striped"}) expect_proven(caught.refit, policy);
    }
    for (const char* const policy : {"p2p", "balanced"}) expect_proven(changed.after.refit, policy);
  }
}

INSTANTIATE_TEST_SUITE_P(Shards, CatchUpShards, ::testing::Range(std::uint64_t{0}, test::shards));

MembershipCase with_change(MembershipChange change) {
  MembershipCase made;
  made.change = std::move(change);
  return made;
}

TEST(CatchUp, moves_nothing_where_nobody_leaves_or_joins) {
  const CatchUp caught = ChangedCase(with_change({})).run(CatchUpFrom::own_side);
  EXPECT_TRUE(caught.nothing_moves());
  EXPECT_EQ(caught.moved.value, 0);
  EXPECT_EQ(caught.kept, caught.needed);
}

TEST(CatchUp, moves_nothing_where_a_replica_leaves) {
  EXPECT_TRUE(ChangedCase(with_change({{2}, {}, {}})).run(CatchUpFrom::own_side).nothing_moves());
}

TEST(CatchUp, brings_a_host_that_leaves_and_joins_its_own_bytes_and_no_others) {
  const ChangedCase changed(with_change({{2}, {}, {2}}));
  for (const CatchUpFrom from : {CatchUpFrom::own_side, CatchUpFrom::other_side}) {
    const CatchUp caught = changed.run(from);
    Bytes of_host;
    for (const RefitEntry& entry : changed.before.tensors) {
      for (const auto& [where, shard] : shards(changed.before, entry)) {
        if (!where.first && changed.before.fabric.host_of(where.second) == HostId{2})
          of_host += changed.before.geometries[entry.geometry].target.bytes(shard);
      }
    }
    EXPECT_EQ(caught.moved, of_host);
    EXPECT_EQ(caught.refit.tensors.size(), changed.before.tensors.size()) << "whole tensors, one each";
    for (const CatchUpPart& part : caught.parts) {
      EXPECT_FALSE(part.train);
      EXPECT_EQ(part.from_train, from == CatchUpFrom::other_side);
    }
  }
}

TEST(CatchUp, fills_the_seat_of_one_host_of_an_engine_over_two) {
  MembershipCase made = with_change({{2}, {}, {5}});
  made.generate = "{gpus: 32, tp: 16}";
  const ChangedCase changed(made);
  const CatchUp caught = changed.run(CatchUpFrom::own_side);
  EXPECT_EQ(caught.moved, least_bytes(changed));
  EXPECT_THAT(changed.faults(caught), ::testing::IsEmpty());
  std::set<GpuId> getting;
  for (const RefitEntry& entry : caught.refit.tensors) {
    for (const Rank rank : caught.refit.geometries[entry.geometry].target.mesh.ranks)
      getting.insert(caught.refit.gpu({entry.target_base.value + rank.value}));
  }
  EXPECT_EQ(getting.size(), 8U);
}

TEST(CatchUp, takes_no_copies_from_engines_that_quantise) {
  MembershipCase made = with_change({{2}, {}, {2}});
  made.generate = "{gpus: 16, tp: 8, quantize: mxfp8}";
  const ChangedCase changed(made);
  const CatchUp caught = changed.run(CatchUpFrom::own_side);
  for (const CatchUpPart& part : caught.parts) {
    const bool quantised = changed.after.refit.tensors[part.tensor].tensor.receiver_quantises;
    EXPECT_TRUE(part.from_train || !quantised);
  }
}

TEST(CatchUp, is_refused_where_nobody_is_left_who_holds_something) {
  MembershipCase made = with_change({{0, 1, 2}, {0}, {1, 2}});
  EXPECT_THAT(ChangedCase(made).run(CatchUpFrom::own_side).refused, HasSubstr("from a checkpoint"));
  made.change = {{0}, {0}, {}};
  EXPECT_EQ(ChangedCase(made).run(CatchUpFrom::own_side).refused, "") << "generation holds it";
}

TEST(CatchUpFaults, name_each_planted_fault) {
  MembershipCase made = with_change({{2}, {}, {5}});
  made.generate = "{gpus: 32, tp: 16}";
  const ChangedCase changed(made);
  const auto faults_with = [&](const auto& plant) {
    CatchUp caught = changed.run(CatchUpFrom::own_side);
    plant(caught);
    return changed.faults(caught);
  };
  EXPECT_TRUE(faults_with([](CatchUp&) {}).empty());
  EXPECT_FALSE(faults_with([](CatchUp& caught) {
                 caught.parts.pop_back();
                 caught.refit.tensors.pop_back();
               }).empty());
  EXPECT_FALSE(faults_with([](CatchUp& caught) { caught.moved += Bytes{2}; }).empty());
  EXPECT_FALSE(faults_with([](CatchUp& caught) { caught.parts[0].from_train = true; }).empty());
  EXPECT_FALSE(faults_with([](CatchUp& caught) { caught.parts[0].train = true; }).empty());
  EXPECT_FALSE(faults_with([](CatchUp& caught) {
                 caught.parts[0].box.begin[0] += 1;
                 caught.parts[0].box.end[0] += 1;
               }).empty());
  const CatchUp caught = changed.run(CatchUpFrom::own_side);
  EXPECT_FALSE(catch_up_faults(changed.before, changed.after.refit, {1, 2}, caught).empty())
      << "host 1 has lost what it would send";
}

}  // namespace
}  // namespace isthmus

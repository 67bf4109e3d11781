#include "planner/policies/striped_rules.hpp"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

ReshardRules rules_of(const TensorSpec& spec) {
  std::size_t ranks = 0;
  for (const Layout* layout : {&spec.source, &spec.target})
    for (const Rank rank : layout->mesh.ranks) ranks = std::max(ranks, rank.index() + 1);
  const Refit refit = test::make_refit({{spec}, ranks});
  return striped_rules(refit.geometries[0], refit.tensors[0].source_base, refit.tensors[0].target_base);
}

/// Both sides replicas x shards of one dimension, the source from rank 0 on, the target after it.
TensorSpec two_sides(const std::vector<std::int64_t>& shape, std::int64_t source_replicas,
                     std::int64_t sources, int source_dimension, std::int64_t target_replicas,
                     std::int64_t targets, int target_dimension) {
  const Rank first{static_cast<std::uint32_t>(source_replicas * sources)};
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {shape,
                 Dtype::bf16,
                 contiguous_mesh({source_replicas, sources}, Rank{0}),
                 {{}, {source_dimension}},
                 ChunkRule::ceil};
  spec.target = {shape,
                 Dtype::bf16,
                 contiguous_mesh({target_replicas, targets}, first),
                 {{}, {target_dimension}},
                 ChunkRule::ceil};
  return spec;
}

/// Transfers per sender.
std::vector<int> sends(const ReshardRules& rules, std::size_t senders) {
  std::vector<int> counts(senders);
  for (const ReshardTransfer& transfer : rules.transfers) ++counts.at(transfer.sender);
  return counts;
}

/// By laying the box out element by element.
bool one_run(const Region& part, const Region& whole_box) {
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < part.dimensions; ++d) shape.push_back(whole_box.end[d] - whole_box.begin[d]);
  std::vector<bool> inside;
  for (const test::Element& element : test::elements_of(shape)) {
    bool in = true;
    for (std::size_t d = 0; d < element.size(); ++d) {
      const std::int64_t index = element[d] + whole_box.begin[d];
      in = in && index >= part.begin[d] && index < part.end[d];
    }
    inside.push_back(in);
  }
  const auto first = std::find(inside.begin(), inside.end(), true);
  const auto end = std::find(first, inside.end(), false);
  return std::find(end, inside.end(), true) == inside.end();
}

RC_GTEST_PROP(Contiguous, parts_are_those_whose_elements_follow_each_other, ()) {
  Region part, around;
  part.dimensions = around.dimensions = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t d = 0; d < part.dimensions; ++d) {
    around.begin[d] = *rc::gen::inRange(0, 3);
    part.begin[d] = around.begin[d] + *rc::gen::inRange(0, 2);
    part.end[d] = part.begin[d] + *rc::gen::inRange(1, 4);
    around.end[d] = part.end[d] + *rc::gen::inRange(0, 2);
  }
  RC_ASSERT(contiguous(part, around) == one_run(part, around));
}

RC_GTEST_PROP(StripedRules, move_each_target_box_once_whatever_the_replicas, ()) {
  const auto refit_case = *test::refit_cases();
  const Refit refit = test::make_refit(refit_case);
  for (const RefitEntry& entry : refit.tensors) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    std::int64_t wanted = 0, striped = 0, exact = 0;
    for (const Shard& shard : distinct_shards(geometry.target)) wanted += shard.region.volume();
    const ReshardRules rules = striped_rules(geometry, entry.source_base, entry.target_base);
    for (const ReshardTransfer& transfer : rules.transfers) {
      striped += transfer.box.volume();
      RC_ASSERT(!(rules.striped() && transfer.packed && transfer.staged));
      RC_ASSERT(!(transfer.local && (transfer.packed || transfer.staged)));
    }
    for (const ReshardTransfer& transfer : exact_transfers(geometry, entry.source_base, entry.target_base)) {
      exact += transfer.box.volume();
    }
    RC_ASSERT(striped == wanted);
    RC_ASSERT(exact == wanted);
  }
}

TEST(StripedRules, of_the_random_refits_take_every_path_and_every_kind_of_transfer) {
  std::map<ReshardPath, int> paths;
  int local = 0, packed = 0, staged = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    for (const RefitEntry& entry : refit.tensors) {
      const ReshardRules rules =
          striped_rules(refit.geometries[entry.geometry], entry.source_base, entry.target_base);
      ++paths[rules.path];
      if (!rules.striped()) continue;
      for (const ReshardTransfer& transfer : rules.transfers) {
        local += transfer.local;
        packed += transfer.packed;
        staged += transfer.staged;
      }
    }
  }
  EXPECT_GT(paths[ReshardPath::striped], 50);
  EXPECT_GT(paths[ReshardPath::no_replicas], 20);
  EXPECT_GT(paths[ReshardPath::stripes_uneven], 20);
  EXPECT_GT(paths[ReshardPath::strided_twice], 0);
  EXPECT_GT(local, 0);
  EXPECT_GT(packed, 0);
  EXPECT_GT(staged, 0);
}

TEST(StripedRules, let_the_first_holder_send_everything_where_the_target_has_no_replicas) {
  const ReshardRules rules = rules_of(two_sides({64, 8}, 8, 1, 0, 1, 8, 0));
  EXPECT_EQ(rules.path, ReshardPath::no_replicas);
  EXPECT_EQ(sends(rules, 8), (std::vector<int>{8, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(StripedRules, let_all_holders_send_in_turn_where_it_has) {
  const ReshardRules rules = rules_of(two_sides({64, 8}, 8, 1, 0, 2, 4, 0));
  EXPECT_EQ(rules.path, ReshardPath::striped);
  EXPECT_EQ(sends(rules, 8), std::vector<int>(8, 1));
}

TEST(StripedRules, begin_with_the_first_holder_for_every_tensor_so_the_last_ones_idle) {
  // Two stripes and four holders: tensor after tensor.
  const TensorSpec first = two_sides({64, 8}, 4, 1, 0, 2, 1, 0);
  TensorSpec second = first;
  second.name = "other";
  const Refit refit = test::make_refit({{first, second}, 6});
  for (const RefitEntry& entry : refit.tensors) {
    EXPECT_EQ(sends(striped_rules(refit.geometries[entry.geometry], entry.source_base, entry.target_base), 4),
              (std::vector<int>{1, 1, 0, 0}));
  }
}

TEST(StripedRules, count_turns_and_not_bytes) {
  // 4, 4 and 2 rows for two replicas: stripes of 2, 2, 2, 2, 1 and 1 rows, from three holders in turn.
  const ReshardRules rules = rules_of(two_sides({10, 1}, 3, 1, 0, 2, 3, 0));
  EXPECT_EQ(rules.path, ReshardPath::striped);
  EXPECT_EQ(sends(rules, 3), (std::vector<int>{2, 2, 2}));
  std::vector<std::int64_t> rows(3);
  for (const ReshardTransfer& transfer : rules.transfers) rows[transfer.sender] += transfer.box.volume();
  EXPECT_EQ(rows, (std::vector<std::int64_t>{4, 3, 3}));
}

TEST(StripedRules, give_up_where_one_transfer_is_strided_on_both_sides) {
  // Three columns of two against two columns of three: the overlap [2, 3) is part of both.
  EXPECT_EQ(rules_of(two_sides({4, 6}, 1, 3, 1, 2, 2, 1)).path, ReshardPath::strided_twice);
  EXPECT_EQ(rules_of(two_sides({4, 6}, 1, 3, 1, 2, 3, 1)).path, ReshardPath::striped);
  EXPECT_EQ(rules_of(two_sides({4, 6}, 1, 3, 1, 2, 1, 1)).path, ReshardPath::striped);
  // One row a stripe: a run of it is one run on both sides.
  EXPECT_EQ(rules_of(two_sides({2, 6}, 1, 3, 1, 2, 2, 1)).path, ReshardPath::striped);
}

TEST(StripedRules, give_up_where_a_box_does_not_divide_into_stripes) {
  EXPECT_EQ(rules_of(two_sides({6, 8}, 1, 2, 0, 4, 1, 0)).path, ReshardPath::stripes_uneven);
  EXPECT_EQ(rules_of(two_sides({8, 8}, 1, 2, 0, 4, 1, 0)).path, ReshardPath::striped);
}

TEST(StripedRules, send_32_packed_pieces_of_each_shard_of_experts_to_tp32_dp8) {
  const ReshardRules rules = rules_of(two_sides({256, 2048, 7168}, 1, 16, 0, 8, 32, 1));
  EXPECT_EQ(rules.path, ReshardPath::striped);
  EXPECT_EQ(sends(rules, 16), std::vector<int>(16, 32));
  std::vector<int> received(256);
  for (const ReshardTransfer& transfer : rules.transfers) {
    ++received[transfer.receiver];
    EXPECT_TRUE(transfer.packed);
    EXPECT_FALSE(transfer.staged);
  }
  EXPECT_EQ(received, std::vector<int>(256, 2));
}

TEST(StripedRules, copy_what_the_receiver_holds_and_take_no_holders_turn_for_it) {
  // Ranks 0 and 1 hold all and get all; ranks 2 and 3 only get it.
  TensorSpec spec = two_sides({4, 2}, 2, 1, 0, 4, 1, 0);
  for (std::uint32_t i = 0; i < 4; ++i) spec.target.mesh.ranks[i] = Rank{i};
  const ReshardRules rules = rules_of(spec);
  ASSERT_EQ(rules.transfers.size(), 4U);
  for (const ReshardTransfer& transfer : rules.transfers) {
    EXPECT_EQ(transfer.local, transfer.receiver < 2) << transfer.receiver;
    EXPECT_EQ(transfer.sender, transfer.receiver % 2) << transfer.receiver;
  }
}

}  // namespace
}  // namespace isthmus

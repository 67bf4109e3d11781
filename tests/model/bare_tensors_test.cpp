#include "model/bare_tensors.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/refit.hpp"
#include "model/validation.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string fabric = "fabric: {preset: dgx-h100, hosts: 2}\n";

std::vector<std::string> found_in(const std::string& tensors) {
  std::vector<std::string> texts;
  for (const InputFault& fault : tensor_faults(parsed(tensors + fabric))) texts.push_back(fault.found);
  return texts;
}

Refit resolved(const std::string& tensors) { return resolve(parsed(tensors + fabric)); }

const std::string two_holders = R"(tensor: {name: embed, shape: [4, 2], dtype: bf16, replicas: true}
source:
  - {mesh: [2], ranks: [0, 1], placements: [shard(0)]}
  - {mesh: [2], ranks: [5, 4], placements: [shard(0)]}
target: {mesh: [1], first_rank: 2, placements: [replicated]}
)";

TEST(BareTensors, of_several_holders_unite_their_meshes) {
  const Refit refit = resolved(two_holders);
  ASSERT_THAT(refit.tensors, SizeIs(1));
  const Layout& source = refit.geometries[0].source;
  EXPECT_EQ(source.mesh, (Mesh{{2, 2}, {Rank{0}, Rank{1}, Rank{5}, Rank{4}}}));
  EXPECT_EQ(source.placements, (std::vector<Placement>{{}, {0}}));
  EXPECT_EQ(source.region(0), source.region(2));
  EXPECT_EQ(source.region(1), source.region(3));
}

TEST(BareTensors, of_several_holders_must_be_cut_alike) {
  EXPECT_THAT(found_in(two_holders), IsEmpty());
  EXPECT_THAT(found_in(replaced(two_holders, "ranks: [5, 4], placements: [shard(0)]",
                                "ranks: [5, 4], placements: [shard(1)]")),
              ElementsAre("tensor embed: held by 2 sources (ranks 0, 1 and 2 more), of which source 1 is cut "
                          "in another way than source 0"));
  EXPECT_THAT(found_in(replaced(two_holders, "[5, 4]", "[5, 1]")),
              ElementsAre("tensor embed: held by 2 sources (ranks 0, 1 and 2 more), rank 1 twice"));
}

TEST(BareTensors, of_one_holder_have_no_replicas) {
  EXPECT_THAT(fault_of(replaced(bare_tensor, "dtype: bf16", "dtype: bf16, replicas: true")),
              HasSubstr("tensor.replicas: found replicas without several sources"));
}

std::string tied(const std::string& tie) {
  return R"(tensors:
  - tensor: {name: embed, shape: [4, 2], dtype: bf16}
    source: {mesh: [1], first_rank: 0, placements: [replicated]}
    target: {mesh: [1], first_rank: 1, placements: [replicated]}
  - tensor: {name: head, shape: [4, 2], dtype: bf16)" +
         tie + R"(}
    target: {mesh: [1], first_rank: 2, placements: [replicated]}
)";
}

TEST(BareTensors, that_are_tied_have_the_source_of_the_other_one_and_are_copies) {
  const Refit refit = resolved(tied(", tied_to: embed"));
  ASSERT_THAT(refit.tensors, SizeIs(2));
  EXPECT_EQ(refit.tensors[1].source_base.value, 0U);
  EXPECT_EQ(refit.tensors[1].target_base.value, 2U);
  EXPECT_FALSE(refit.tensors[0].tensor.copy);
  EXPECT_TRUE(refit.tensors[1].tensor.copy);
  EXPECT_EQ(refit.payload(), Bytes{16});  // once
}

TEST(BareTensors, are_tied_to_what_has_a_source_and_their_shape) {
  EXPECT_THAT(found_in(tied(", tied_to: embet")),
              ElementsAre("tensor head tied to embet, which is not there"));
  EXPECT_THAT(found_in(tied(", tied_to: head")),
              ElementsAre("tensor head tied to head, which has no source"));
  EXPECT_THAT(found_in(replaced(tied(", tied_to: embed"), "[4, 2]", "[2, 4]")),
              ElementsAre("tensor head [4,2] bf16 tied to embed [2,4] bf16"));
  EXPECT_THAT(fault_of(replaced(bare_tensor, "dtype: bf16", "dtype: bf16, tied_to: x")),
              HasSubstr("source: found a source beside tied_to; allowed: one of them"));
}

TEST(BareTensors, that_nobody_receives_are_named) {
  EXPECT_THAT(found_in("tensor: {name: t, shape: [4], dtype: bf16}\n"
                       "source: {mesh: [2], first_rank: 3, placements: [shard(0)]}\n"),
              ElementsAre("source tensor t on ranks 3 and 4 has no target: nobody receives it"));
  EXPECT_THAT(fault_of("tensor: {name: t, shape: [4], dtype: bf16}\n" + fabric),
              HasSubstr("found neither source nor target"));
}

TEST(SlotRuns, are_consecutive_experts_for_the_first_time_or_again) {
  EXPECT_THAT(slot_runs({0, 1, 2, 3}, 4), ElementsAre(SlotRun{0, 0, 4, false}));
  EXPECT_THAT(slot_runs({0, 1, 2, 3, 0}, 4), ElementsAre(SlotRun{0, 0, 4, false}, SlotRun{4, 0, 1, true}));
  EXPECT_THAT(slot_runs({2, 3, 3, 0, 1}, 4),
              ElementsAre(SlotRun{0, 2, 2, false}, SlotRun{2, 3, 1, true}, SlotRun{3, 0, 2, false}));
}

std::string with_slots(const std::string& slots, int experts, int ranks) {
  return fmt::format(
      "tensor: {{name: experts, shape: [{}, 1, 3], dtype: bf16}}\n"
      "source: {{mesh: [1], first_rank: 0, placements: [replicated]}}\n"
      "target: {{mesh: [{}], first_rank: 1, placements: [shard(0)], chunk_rule: ceil, slots: {}}}\n",
      experts, ranks, slots);
}

TEST(BareTensors, with_slots_in_order_stay_one_tensor) {
  const Refit refit = resolved(with_slots("[0, 1, 2, 3]", 4, 2));
  ASSERT_THAT(refit.tensors, SizeIs(1));
  EXPECT_EQ(refit.tensors[0].tensor.name, "experts");
  EXPECT_FALSE(refit.geometries[0].target.frame);
}

RC_GTEST_PROP(BareTensors, with_slots_write_each_slot_of_each_rank_once_with_its_expert, ()) {
  const int experts = *rc::gen::inRange(1, 6), spare = *rc::gen::inRange(0, 5),
            ranks = *rc::gen::inRange(1, 5);
  std::vector<int> slots;
  for (int expert = 0; expert < experts; ++expert) slots.push_back(expert);
  for (int i = 0; i < spare; ++i) slots.push_back(*rc::gen::inRange(0, experts));
  for (std::size_t i = slots.size(); i > 1; --i)
    std::swap(slots[i - 1], slots[*rc::gen::inRange<std::size_t>(0, i)]);
  const Refit refit = resolved(with_slots(fmt::format("[{}]", fmt::join(slots, ", ")), experts, ranks));
  std::vector<int> written(slots.size()), first(to_size(experts));
  for (const RefitEntry& entry : refit.tensors) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    const std::int64_t slot0 = geometry.target.frame ? geometry.target.frame->origin[0] : 0;
    const std::int64_t expert0 = geometry.source.frame ? geometry.source.frame->origin[0] : 0;
    std::int64_t rows = 0;
    for (const Region& region : geometry.target.regions()) {
      for (std::int64_t i = region.begin[0]; i < region.end[0]; ++i, ++rows) {
        ++written[to_size(slot0 + i)];
        RC_ASSERT(slots[to_size(slot0 + i)] == static_cast<int>(expert0 + i));
        if (!entry.tensor.copy) ++first[to_size(expert0 + i)];
      }
    }
    RC_ASSERT(rows == geometry.source.shape[0]);
    RC_ASSERT(geometry.source.region(0) == whole(geometry.source.shape));
  }
  RC_ASSERT(std::all_of(written.begin(), written.end(), [](int n) { return n == 1; }));
  RC_ASSERT(std::all_of(first.begin(), first.end(), [](int n) { return n == 1; }));
  RC_ASSERT(refit.payload() == Bytes{6 * experts});
}

TEST(BareTensors, with_slots_cut_the_slots_over_the_mesh) {
  // Five slots over two ranks: 0, 1, 2 and 3, 4.
  const Refit refit = resolved(with_slots("[0, 1, 2, 3, 0]", 4, 2));
  ASSERT_THAT(refit.tensors, SizeIs(2));
  EXPECT_EQ(refit.tensors[1].tensor.name, "experts (slot 4, copy of expert 0)");
  EXPECT_TRUE(refit.geometry({1}).target.region(0).empty());
  EXPECT_FALSE(refit.geometry({1}).target.region(1).empty());
  EXPECT_EQ(refit.geometry({0}).target.region(0).end[0], 3);
}

TEST(BareTensors, with_slots_name_each_expert_at_least_once_and_no_other) {
  EXPECT_THAT(found_in(with_slots("[0, 1, 2, 7, 0]", 4, 1)),
              ElementsAre("tensor experts: slot 3 holds expert 7", "tensor experts: no slot for expert 3"));
  EXPECT_THAT(found_in(with_slots("[1, 1, 1, 1]", 4, 1)),
              ElementsAre("tensor experts: no slot for expert 0 and 2 more"));
  EXPECT_THAT(found_in(with_slots("[1, 1]", 4, 1)), ElementsAre("tensor experts: 2 slots for 4 experts"));
  EXPECT_THAT(fault_of(with_slots("[0, 1], frame: [4, 1, 3]", 2, 1) + fabric),
              HasSubstr("target.slots: found slots beside frame"));
  EXPECT_THAT(fault_of(replaced(bare_tensor, "placements: [shard(0), replicated]",
                                "placements: [shard(0), replicated], slots: [0]")),
              HasSubstr("source.slots: found an unknown key"));
}

TEST(BareTensors, with_slots_in_bad_order_over_large_meshes_are_refused_before_they_are_made) {
  std::string slots = "[4999";
  for (int expert = 4'998; expert >= 0; --expert) slots += fmt::format(", {}", expert);
  const std::string text = fmt::format(
      "tensor: {{name: t, shape: [5000, 1], dtype: bf16}}\n"
      "source: {{mesh: [100000], first_rank: 0, placements: [replicated]}}\n"
      "target: {{mesh: [1], first_rank: 1, placements: [replicated], slots: {}]}}\n",
      slots);
  const std::vector<std::string> found = found_in(text);
  ASSERT_FALSE(found.empty());
  EXPECT_THAT(found.front(), HasSubstr("runs of slots over 100001 mesh positions"));
}

std::string with_view(const std::string& gate, const std::string& up) {
  return fmt::format(R"(tensors:
  - tensor: {{name: gate, shape: [8, 2], dtype: bf16}}
    source: {{mesh: [2], first_rank: 0, placements: [shard(0)], view: {}}}
    target: {{mesh: [1], first_rank: 2, placements: [replicated]}}
  - tensor: {{name: up, shape: [8, 2], dtype: bf16}}
    source: {{mesh: [2], first_rank: 0, placements: [shard(0)], view: {}}}
    target: {{mesh: [1], first_rank: 2, placements: [replicated]}}
)",
                     gate, up);
}

TEST(BareTensors, with_views_tile_their_bases_on_every_rank) {
  const std::string gate = "{base: fc1, offset: 0, block: 4, extent: 8}";
  EXPECT_THAT(found_in(with_view(gate, "{base: fc1, offset: 4, block: 4, extent: 8}")), IsEmpty());
  EXPECT_THAT(
      found_in(with_view(gate, gate)),
      ElementsAre("on rank 0 and 1 more: base fc1: index 0 of 8 on dimension 0 is held by gate and by up",
                  "on rank 0 and 1 more: base fc1: index 4 of 8 on dimension 0 is held by no tensor "
                  "(between gate and the end)"));
  EXPECT_THAT(found_in(with_view(gate, "{base: fc2, offset: 5, block: 4, extent: 8}")),
              ElementsAre("on rank 0 and 1 more: base fc1: index 4 of 8 on dimension 0 is held by no tensor "
                          "(between gate and the end)",
                          "on rank 0 and 1 more: base fc2: up: local index 3 stands at 8, outside the base's "
                          "8"));
}

TEST(BareTensors, with_a_local_shape_must_hold_that) {
  const auto with = [](const std::string& shape) {
    return replaced(bare_tensor, "placements: [shard(0), replicated]",
                    "placements: [shard(0), replicated], local_shape: " + shape);
  };
  EXPECT_THAT(tensor_faults(parsed(with("[4, 6]"))), IsEmpty());
  const std::vector<InputFault> found = tensor_faults(parsed(with("[4, 3]")));
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].where.key, "source.local_shape");
  EXPECT_EQ(found[0].found,
            "tensor: source claims replicated with 3 rows on dimension 1, 6 needed: size not conserved");
  EXPECT_EQ(found[0].change, "shard(1) over 2: is the source sharded on dimension 1?");
  EXPECT_EQ(tensor_faults(parsed(with("[8, 6]")))[0].found,
            "tensor: source claims shard(0) over 2 ranks with 8 rows on dimension 0, 4 needed: size not "
            "conserved");
  EXPECT_EQ(tensor_faults(parsed(with("[4]")))[0].found, "1 dimensions");
}

TEST(BareTensors, of_a_padded_frame_hold_the_padding) {
  const std::string padded =
      replaced(bare_tensor, "placements: [shard(0), replicated]",
               "placements: [shard(0), replicated], frame: [10, 6], local_shape: [5, 6]");
  EXPECT_THAT(tensor_faults(parsed(padded)), IsEmpty());
}

TEST(BareTensors, list_every_fault_at_once_and_raise_the_first) {
  Input input;
  input.scenario = parsed(
      replaced(tied(""), "placements: [replicated]}", "placements: [replicated], local_shape: [2, 2]}") +
      fabric);
  const Validation validation = validate(input);
  ASSERT_THAT(validation.violations, SizeIs(2));
  EXPECT_EQ(validation.violations[0].where.key, "tensors.0.source.local_shape");
  EXPECT_EQ(validation.violations[1].where.key, "tensors.1.source");
  try {
    resolve(input.scenario);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(validation.violations[0].found));
  }
}

}  // namespace
}  // namespace isthmus

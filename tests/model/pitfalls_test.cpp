// Faults that really happened and that a scenario can state, each as its smallest layout: what is said of it,
// and that the same layout without the fault is valid. docs/validate.md lists the classes.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/grid.hpp"
#include "model/m2n_limits.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/validation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/scenario_texts.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::pitfalls_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const std::string hosts = "fabric: {preset: dgx-h100, hosts: 2}\n";

Validation judged(const std::string& tensors, RuleSet rules = RuleSet::general) {
  Input input;
  input.scenario = parsed(tensors + hosts);
  return validate(input, rules);
}

/// The only violation; and resolving raises it.
InputFault fault_in(const std::string& tensors) {
  const Validation validation = judged(tensors);
  EXPECT_THAT(validation.violations, SizeIs(1)) << tensors;
  if (validation.violations.empty()) return {};
  try {
    resolve(parsed(tensors + hosts));
    ADD_FAILURE() << "resolves: " << validation.violations[0].found;
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr(validation.violations[0].found));
  }
  return validation.violations.front();
}

Refit accepted(const std::string& tensors) {
  const Validation validation = judged(tensors);
  EXPECT_TRUE(validation.valid()) << tensors << validation.violations.front().found;
  return resolve(parsed(tensors + hosts));
}

Validation of_model(const std::vector<Override>& settings) {
  return validate(read_input(project_folder() / "scenarios/qwen3-4b-h100.yaml", settings));
}

TEST(Pitfalls, A1_a_layer_past_the_last_one_is_on_the_last_stage) {
  const TemporaryFolder folder;
  const std::string entry = R"({"shape": [2, 2], "dtype": "BF16"})";
  const auto manifest = folder.write(
      "manifest.json",
      fmt::format(R"({{"model.layers.0.mlp.up_proj.weight": {0}, "model.layers.1.mlp.up_proj.weight": {0},
                       "model.layers.2.eh_proj.weight": {0}, "model.layers.2.mlp.up_proj.weight": {0}}})",
                  entry));
  const Scenario scenario = parse_scenario(fmt::format("model: {{config: {}, mtp: true}}\n"
                                                       "train: {{gpus: 2, pp: 2}}\ngenerate: {{gpus: 1}}\n{}",
                                                       manifest.filename().string(), hosts),
                                           manifest.parent_path() / "s.yaml");
  for (const RefitEntry& entry_of : resolve(scenario).tensors) {
    const bool first = entry_of.tensor.name.find("layers.0.") != std::string::npos;
    EXPECT_EQ(entry_of.stage, first ? 0 : 1) << entry_of.tensor.name;
  }
}

std::string embed(const std::string& claim, const std::string& source) {
  return fmt::format(
      "tensor: {{name: embed, shape: [2, 2], dtype: bf16{}}}\nsource: {}\n"
      "target: {{mesh: [1], first_rank: 2, placements: [replicated]}}\n",
      claim, source);
}

TEST(Pitfalls, A2_two_holders_are_replicas_only_when_declared) {
  const std::string one = "{mesh: [1], first_rank: 0, placements: [replicated]}";
  const std::string two = "{mesh: [1], first_rank: 1, placements: [replicated]}";
  const std::string both = fmt::format("[{}, {}]", one, two);
  const InputFault fault = fault_in(embed("", both));
  EXPECT_EQ(fault.where.key, "source");
  EXPECT_EQ(fault.found, "tensor embed: held by 2 sources (ranks 0 and 1)");
  EXPECT_EQ(fault.allowed, "one owner; or declare the two as replicas of one tensor");
  EXPECT_EQ(fault.change, "replicas: true, or one source");
  const Refit refit = accepted(embed(", replicas: true", both));
  EXPECT_EQ(refit.geometries[0].source.mesh, (Mesh{{2, 1}, {Rank{0}, Rank{1}}}));
  accepted(embed("", one));
}

std::string tied_pair(const std::string& tie) {
  return fmt::format(R"(tensors:
  - tensor: {{name: word_embeddings.weight, shape: [4, 2], dtype: bf16}}
    source: {{mesh: [1], first_rank: 0, placements: [replicated]}}
    target: {{mesh: [1], first_rank: 1, placements: [replicated]}}
  - tensor: {{name: output_layer.weight, shape: [4, 2], dtype: bf16{}}}
    target: {{mesh: [1], first_rank: 2, placements: [replicated]}}
)",
                     tie);
}

TEST(Pitfalls, A3_a_target_without_source_is_asked_whether_it_is_tied) {
  const InputFault fault = fault_in(tied_pair(""));
  EXPECT_EQ(fault.where.key, "tensors.1.source");
  EXPECT_EQ(fault.found, "target tensor output_layer.weight on rank 2 has no source of that name");
  EXPECT_EQ(fault.allowed, "a source; if it is tied to word_embeddings.weight, say so");
  EXPECT_EQ(fault.change, "tied_to: word_embeddings.weight");
  EXPECT_THAT(accepted(tied_pair(", tied_to: word_embeddings.weight")).tensors, SizeIs(2));
}

TEST(Pitfalls, A6_a_transformed_view_is_no_shard_but_strided_blocks_are) {
  const InputFault fault = fault_in(
      "tensor: {name: qkv, shape: [8, 2], dtype: bf16}\n"
      "source: {mesh: [2], first_rank: 0, placements: [shard(0)], view: transformed}\n"
      "target: {mesh: [2], first_rank: 2, placements: [shard(0)]}\n");
  EXPECT_EQ(fault.where.key, "source.view");
  EXPECT_EQ(
      fault.found,
      "tensor qkv: exported through a transformation that is no box and no strided block of the target's "
      "index space");
  EXPECT_THAT(fault.change, HasSubstr("or send it by the misc path"));
  // The same rows, told apart: (q0 g0 | q1 g1) to (q0 q1 | g0 g1), two rows a head.
  const Refit refit = accepted(R"(tensors:
  - tensor: {name: q, shape: [4, 2], dtype: bf16}
    source:
      mesh: [1]
      first_rank: 0
      placements: [replicated]
      view: {base: qg, block: 2, stride: 4, extent: 8}
    target: {mesh: [1], first_rank: 2, placements: [replicated]}
  - tensor: {name: g, shape: [4, 2], dtype: bf16}
    source:
      mesh: [1]
      first_rank: 0
      placements: [replicated]
      view: {base: qg, offset: 2, block: 2, stride: 4, extent: 8}
    target: {mesh: [1], first_rank: 3, placements: [replicated]}
)");
  EXPECT_THAT(refit.tensors, SizeIs(2));
}

std::string expert_weight(const std::string& source) {
  return fmt::format(
      "tensor: {{name: expert weight, shape: [128, 64], dtype: bf16}}\n"
      "source: {{mesh: [2], first_rank: 0, placements: [{}], local_shape: [64, 64]}}\n"
      "target: {{mesh: [1], first_rank: 2, placements: [replicated]}}\n",
      source);
}

TEST(Pitfalls, A7_a_shard_taken_for_a_replica_does_not_conserve_the_size) {
  const InputFault fault = fault_in(expert_weight("replicated"));
  EXPECT_EQ(fault.where.key, "source.local_shape");
  EXPECT_EQ(fault.found,
            "expert weight: source claims replicated with 64 rows on dimension 0, 128 needed: size not "
            "conserved");
  EXPECT_EQ(fault.change, "shard(0) over 2: is the source sharded on dimension 0?");
  accepted(expert_weight("shard(0)"));
}

std::string five_slots(const std::string& slots) {
  return fmt::format(
      "tensor: {{name: experts, shape: [4, 1, 1], dtype: bf16}}\n"
      "source: {{mesh: [1], first_rank: 0, placements: [replicated]}}\n"
      "target: {{mesh: [1], first_rank: 1, placements: [replicated], slots: {}}}\n",
      slots);
}

TEST(Pitfalls, A8_every_physical_slot_gets_its_expert) {
  const Refit refit = accepted(five_slots("[0, 1, 2, 3, 0]"));
  ASSERT_THAT(refit.tensors, SizeIs(2));
  EXPECT_EQ(refit.tensors[0].tensor.name, "experts");
  EXPECT_EQ(refit.tensors[1].tensor.name, "experts (slot 4, copy of expert 0)");
  EXPECT_EQ(refit.geometry({1}).target.frame, (Frame{{5, 1, 1}, {4, 0, 0}}));
  EXPECT_EQ(refit.geometry({1}).source.frame, (Frame{{4, 1, 1}, {0, 0, 0}}));
  EXPECT_EQ(fault_in(five_slots("[0, 1, 2, 0, 0]")).found, "tensor experts: no slot for expert 3");
  EXPECT_EQ(fault_in(five_slots("[0, 1, 2, 3, 4]")).found, "tensor experts: slot 4 holds expert 4");
}

TEST(Pitfalls, A8_of_a_whole_model_marks_the_tensors_that_repeat_experts) {
  const Refit refit = resolve(
      read_scenario(project_folder() / "scenarios/qwen3-30b-a3b-h100.yaml",
                    {{"model.layers", "2"}, {"generate", "{gpus: 8, tp: 8, ep: 8, redundant_experts: 8}"}}));
  std::size_t copies = 0;
  for (const RefitEntry& entry : refit.tensors) {
    EXPECT_EQ(entry.tensor.copy, entry.tensor.copy_of > 0) << entry.tensor.name;
    copies += entry.tensor.copy ? 1U : 0U;
  }
  EXPECT_EQ(copies, 6U);  // gate, up and down of two layers
}

TEST(Pitfalls, A11_engines_need_ranks_for_all_their_members) {
  const std::vector<Override> short_of_ranks{{"train", "{gpus: 1}"}, {"generate", "{gpus: 2, tp: 2, dp: 2}"}};
  const Validation validation = of_model(short_of_ranks);
  ASSERT_THAT(validation.violations, SizeIs(1));
  EXPECT_EQ(validation.violations[0].where.key, "generate.dp");
  EXPECT_EQ(validation.violations[0].found, "2");
  EXPECT_EQ(validation.violations[0].change, "1, or 4 GPUs for 2 engines of 2 ranks");
  EXPECT_TRUE(of_model({{"train", "{gpus: 1}"}, {"generate", "{gpus: 4, tp: 2, dp: 2}"}}).valid());
}

TEST(Pitfalls, A12_sides_need_not_have_the_same_grid) {
  EXPECT_TRUE(of_model({{"train", "{gpus: 8, tp: 2, pp: 4}"}, {"generate", "{gpus: 8, tp: 4}"}}).valid());
  EXPECT_TRUE(of_model({{"train", "{gpus: 8, tp: 4, pp: 2}"}, {"generate", "{gpus: 2, tp: 1}"}}).valid());
}

std::string w13(const std::string& source_view, const std::string& target_view) {
  return fmt::format(
      "tensor: {{name: w13, shape: [2, 4, 256], dtype: bf16}}\n"
      "source: {{mesh: [1], first_rank: 0, placements: [replicated]{}}}\n"
      "target: {{mesh: [1], first_rank: 1, placements: [replicated]{}}}\n",
      source_view, target_view);
}

TEST(Pitfalls, B1_layout_tags_of_the_two_sides_must_match) {
  const std::string block = ", view: {base: w13, dimension: 1, extent: 4, storage: block128}";
  const InputFault fault = fault_in(w13("", block));
  EXPECT_EQ(fault.where.key, "target.view");
  EXPECT_EQ(fault.found,
            "target w13 on rank 1 is in layout block128, the transfer writes canonical [2,4,256]");
  EXPECT_EQ(fault.change, "receive into a canonical buffer and repack, or plan the permuted layout");
  EXPECT_EQ(fault_in(w13(block, "")).found,
            "target w13 on rank 1 is in layout canonical, the transfer writes block128 [2,4,256]");
  accepted(w13(block, block));
  accepted(w13("", ", view: {base: w13, dimension: 1, extent: 4}"));
}

std::string gate_and_up(int gate_offset, int up_offset) {
  std::string text = "tensors:\n";
  for (const auto& [name, offset] : {std::pair{"gate", gate_offset}, std::pair{"up", up_offset}}) {
    text += fmt::format(
        "  - tensor: {{name: {}, shape: [2, 4, 2], dtype: bf16}}\n"
        "    source: {{mesh: [1], first_rank: 0, placements: [replicated]}}\n"
        "    target: {{mesh: [1], first_rank: 1, placements: [replicated], view: {{base: w13, dimension: 1, "
        "offset: {}, block: 4, extent: 8}}}}\n",
        name, offset);
  }
  return text;
}

TEST(Pitfalls, B2_both_orders_of_the_halves_can_be_said_and_each_row_has_one_owner) {
  accepted(gate_and_up(0, 4));
  accepted(gate_and_up(4, 0));
  const Validation validation = judged(gate_and_up(0, 0));
  ASSERT_THAT(validation.violations, SizeIs(2));
  EXPECT_EQ(validation.violations[0].found,
            "on rank 1: base w13: index 0 of 8 on dimension 1 is held by gate and by up");
  EXPECT_EQ(
      validation.violations[1].found,
      "on rank 1: base w13: index 4 of 8 on dimension 1 is held by no tensor (between gate and the end)");
}

std::string square(std::int64_t extent) {
  return fmt::format(
      "tensor: {{name: T, shape: [{0}, {0}], dtype: i8}}\n"
      "source: {{mesh: [4], first_rank: 0, placements: [shard(0)]}}\n"
      "target: {{mesh: [4], first_rank: 4, placements: [shard(1)]}}\n",
      extent);
}

TEST(Pitfalls, D2_staging_areas_stay_below_4_gib) {
  const Validation validation = judged(square(131'072), RuleSet::m2n);
  ASSERT_THAT(validation.violations, SizeIs(2));  // one per side
  EXPECT_EQ(validation.violations[0].found, "tensor T: staging area of 4294967296 bytes on ranks 0 to 3");
  EXPECT_EQ(validation.violations[1].found, "tensor T: staging area of 4294967296 bytes on ranks 4 to 7");
  EXPECT_EQ(validation.violations[0].allowed, "staging areas below 2^32 = 4294967296 bytes");
  EXPECT_THAT(judged(square(131'068), RuleSet::m2n).violations, IsEmpty());
  EXPECT_TRUE(judged(square(131'072)).valid());  // a limit of the executor, not of the layout
}

std::string two_to_four(int first_source) {
  return fmt::format(
      "tensor: {{name: T, shape: [8, 2], dtype: bf16}}\n"
      "source: {{mesh: [2], first_rank: {}, placements: [shard(0)]}}\n"
      "target: {{mesh: [4], first_rank: 8, placements: [replicated]}}\n",
      first_source);
}

TEST(Pitfalls, G4_domains_that_only_the_library_sees_cost_copies) {
  const std::string four_sources = replaced(two_to_four(4), "mesh: [2]", "mesh: [4]");
  EXPECT_THAT(
      judged(two_to_four(6), RuleSet::m2n).notes,
      Contains(HasSubstr("tensor T: target domain boundary at rank 10 (communicator rank 4) is not one "
                         "of the fabric's; 2 network copies instead of 1")));
  EXPECT_THAT(judged(four_sources, RuleSet::m2n).notes, IsEmpty());
  EXPECT_THAT(judged(two_to_four(6)).notes, IsEmpty());
}

TEST(Pitfalls, D3_a_list_of_slots_allocates_nothing_for_experts_that_it_lacks) {
  const InputFault fault = fault_in(R"(tensor: {shape: [1152921504606846976], dtype: u8}
source: {mesh: [1], first_rank: 0, placements: [replicated]}
target: {mesh: [1], first_rank: 1, placements: [replicated], slots: [0]}
)");
  EXPECT_THAT(fault.found, HasSubstr("1 slots for 1152921504606846976 experts"));
}

}  // namespace
}  // namespace isthmus::pitfalls_test

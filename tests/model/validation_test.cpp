#include "model/validation.hpp"

#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/refit.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/scenario_texts.hpp"

namespace isthmus::validation_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Validation validated(const std::vector<Override>& overrides, RuleSet rules = RuleSet::general) {
  return validate(read_input(project_folder() / "scenarios/deepseek-v3-h100.yaml", overrides), rules);
}

std::vector<std::string> keys_of(const Validation& validation) {
  std::vector<std::string> keys;
  for (const InputFault& fault : validation.violations) keys.push_back(fault.where.key);
  return keys;
}

TEST(Validation, main_scenario_keeps_every_set_of_rules) {
  for (const RuleSet rules : {RuleSet::general, RuleSet::nemo_rl, RuleSet::m2n}) {
    EXPECT_THAT(keys_of(validated({}, rules)), IsEmpty());
  }
}

TEST(Validation, lists_every_violation_at_once) {
  const Validation validation = validated({{"model.dtype", "fp8"},
                                           {"generate.quantize", "mxfp8"},
                                           {"train.gpus", "250"},
                                           {"train.ep", "12"},
                                           {"train.layers_first", "4"},
                                           {"generate.tp", "48"},
                                           {"fabric.hosts", "32"}});
  EXPECT_THAT(keys_of(validation),
              ElementsAre("generate.quantize", "train.gpus", "train.gpus", "train.ep", "generate.gpus",
                          "generate.dp", "ranks.generate.hosts", "train.layers_first", "generate.tp"));
}

struct Expected {
  std::vector<Override> overrides;
  std::string key, found, allowed, change;
};

std::vector<Expected> violations_of_sizes() {
  return {
      {{{"train.gpus", "250"}}, "train.gpus", "250 GPUs", "a multiple of tp x cp x pp = 16", "256 GPUs"},
      {{{"generate.dp", "4"}},
       "generate.dp",
       "4",
       "gpus / tp = 8",
       "8, or 128 GPUs for 4 engines of 32 ranks"},
      {{{"generate.ep", "31"}}, "generate.ep", "31", "a divisor or a multiple of tp = 32", "16 or 32"},
      {{{"generate.ep", "65"}}, "generate.ep", "65", "a divisor or a multiple of tp = 32", "64 or 96"},
      {{{"train.layers_first", "4"}},
       "train.layers_first",
       "55 of 61 layers left for 14 stages",
       "a rest that the stages divide (set layers_first and layers_last)",
       "3 layers on the first stage"},
      {{{"fabric.hosts", "40"}},
       "ranks.generate.hosts",
       "host 40 and 23 more",
       "0 to 39 (fabric.hosts is 40)",
       "hosts below 40, or fabric.hosts 64"},
      {{{"ranks.train.hosts", "0-30"}},
       "ranks.train.hosts",
       "31 hosts",
       "32 hosts (256 GPUs, 8 per host)",
       "32 hosts"},
      {{{"ranks", "{train: {hosts: 0-31}}"}, {"fabric.hosts", "60"}},
       "fabric.hosts",
       "60",
       "at least 64 hosts of 8 GPUs for 256 training and 256 generation GPUs",
       "64"},
      {{{"model.layers", "62"}}, "model.layers", "62", "1 to 61 (the configuration's layers)", "61"},
      {{{"train.layer_split", "proportional"}, {"train.layers_first", "3"}},
       "train.layers_first",
       "a number of layers",
       "none with layer_split: proportional",
       "leave it out"},
  };
}

std::vector<Expected> violations_of_grids() {
  return {
      {{{"train.order", "dp-tp"}},
       "train.order",
       "'dp-tp'",
       "tp, cp, ep, dp and pp in any order, joined by dashes, pp last",
       "tp-cp-ep-dp-pp"},
      {{{"train.order", "tp-dp-pp"}},
       "train.order",
       "'tp-dp-pp' without ep of 16",
       "tp, cp, ep, dp and pp in any order, joined by dashes, pp last",
       "tp-cp-ep-dp-pp"},
      {{{"train.order", "pp"}},
       "train.order",
       "'pp' without ep of 16 and dp of 16",
       "tp, cp, ep, dp and pp in any order, joined by dashes, pp last",
       "tp-cp-ep-dp-pp"},
      {{{"train", "{gpus: 16, tp: 2, ep: 4, etp: 1, fsdp: 4, order: dp-cp-tp-ep-pp}"},
        {"ranks", "{generate: {hosts: 32-63}}"}},
       "train.order",
       "'dp-cp-tp-ep-pp'",
       "with fsdp: an order by which experts are sharded over the ranks that shard the other tensors",
       "tp-cp-ep-dp-pp"},
      {{{"train.layers_first", "60"}, {"train.layers_last", "3"}},
       "train.layers_first",
       "63 layers on the outer stages",
       "at most the 61 layers of the model",
       "leave it out"},
      {{{"train.fsdp", "3"}}, "train.fsdp", "3", "a divisor of the 16 replicas, gpus / (tp x pp)", "2 or 4"},
      {{{"train.fsdp", "8"}},
       "train.fsdp",
       "tp x fsdp = 8",
       "a multiple of ep x etp = 16",
       "tp x fsdp of 16"},
      {{{"train.vpp", "2"}}, "train.vpp", "2", "a divisor of every stage's layers (2, 3, 4)", "1"},
      {{{"generate.pp", "3"}}, "generate.gpus", "256 GPUs", "a multiple of tp x pp = 96", "192 or 288 GPUs"},
      {{{"generate.ep", "512"}},
       "generate.ep",
       "ep x etp = 512",
       "a divisor of the 256 ranks, gpus / pp",
       "ep x etp of 256"},
      {{{"generate.etp", "8"}}, "generate.etp", "8", "tp = 32 with ep 1", "32"},
      {{{"generate.redundant_experts", "8"}},
       "generate.redundant_experts",
       "8",
       "0 with ep 1 (every rank has a part of every expert)",
       "0"},
      {{{"generate.ep", "32"}, {"generate.redundant_experts", "8"}},
       "generate.redundant_experts",
       "264 slots",
       "a multiple of ep = 32",
       "256 or 288 slots"},
  };
}

TEST(Validation, names_key_value_rule_and_the_smallest_change) {
  std::vector<Expected> all = violations_of_sizes();
  for (Expected& expected : violations_of_grids()) all.push_back(std::move(expected));
  for (const Expected& expected : all) {
    const Validation validation = validated(expected.overrides);
    ASSERT_FALSE(validation.valid()) << expected.key;
    const InputFault& fault = validation.violations.front();
    EXPECT_EQ(fault.where.key, expected.key);
    EXPECT_EQ(fault.found, expected.found);
    EXPECT_EQ(fault.allowed, expected.allowed);
    EXPECT_THAT(fault.change, HasSubstr(expected.change));
  }
}

TEST(Validation, change_of_a_gpu_count_fits_both_training_grids) {
  const Validation validation =
      validated({{"train", "{gpus: 40, tp: 4, ep: 6, etp: 1, pp: 1}"}, {"ranks", "{train: {hosts: 0-4}}"}});
  ASSERT_FALSE(validation.valid());
  EXPECT_EQ(validation.violations.front().change, "36 or 48 GPUs");  // 36 = 3 x lcm(4, 6), which 40 is past
}

TEST(Validation, collapses_dimensions_to_one_violation_per_key) {
  const Validation validation = validated(
      {{"generate", "{gpus: 264, tp: 24}"}, {"ranks", "{train: {hosts: 0-31}}"}, {"fabric.hosts", "65"}});
  ASSERT_THAT(keys_of(validation), ElementsAre("generate.tp"));
  EXPECT_THAT(validation.violations.front().allowed, HasSubstr("dimension 0 of model.layers.0."));
  EXPECT_THAT(validation.violations.front().allowed, HasSubstr("more tensors"));
  EXPECT_EQ(validation.violations.front().change, "16 or 32");
}

TEST(Validation, heads_are_divided_or_repeated) {
  const auto with_tp = [](const char* tp) {
    const Input input = read_input(project_folder() / "scenarios/qwen3-235b-h100.yaml",
                                   {{"generate", fmt::format("{{gpus: 128, tp: {}}}", tp)}});
    return validate(input);
  };
  EXPECT_TRUE(with_tp("2").valid());
  EXPECT_TRUE(with_tp("16").valid());  // 4 heads, each on 4 ranks
  ASSERT_FALSE(with_tp("6").valid());
  EXPECT_THAT(with_tp("6").violations,
              Contains(::testing::Field(&InputFault::allowed,
                                        HasSubstr("a divisor or a multiple of 4, the key/value heads of "
                                                  "model.layers.0.self_attn.k_proj.weight"))));
}

TEST(Validation, names_both_readings_of_printed_sizes) {
  const Input input = read_input(project_folder() / "scenarios/qwen3-235b-h100.yaml");
  EXPECT_THAT(
      validate(input).notes,
      Contains(HasSubstr("tp 4 x cp 1 x ep 16 x pp 8 with 128 GPUs: experts fold into the 16 ranks of a "
                         "stage, as in Megatron-LM; read as a product the sizes would be 512 GPUs")));
}

TEST(Validation, as_nemo_rl_refuses_what_its_validator_would) {
  for (const auto& [key, value] : std::vector<Override>{{"train.order", "ep-tp-dp-cp-pp"},

                                                        {"generate.ep", "16"},
                                                        {"generate.pp", "2"},
                                                        {"train.fsdp", "16"},
                                                        {"model.dtype", "mxfp8"}}) {
    std::vector<Override> overrides{{key, value}};
    if (key == "generate.pp") overrides = {{"generate", "{gpus: 256, tp: 32, pp: 2}"}};
    EXPECT_TRUE(validated(overrides).valid()) << key;
    EXPECT_THAT(keys_of(validated(overrides, RuleSet::nemo_rl)), ElementsAre(key));
  }
}

TEST(Validation, says_how_many_ranks_engines_need) {
  const Validation validation =
      validated({{"generate", "{gpus: 2, tp: 2, dp: 2}"}, {"ranks", "{train: {hosts: 0-31}}"}});
  ASSERT_THAT(keys_of(validation), ElementsAre("generate.dp"));
  EXPECT_EQ(validation.violations.front().change, "1, or 4 GPUs for 2 engines of 2 ranks");
}

TEST(Validation, notes_that_etp_unset_means_tp) {
  const std::string train = "{gpus: 256, tp: 2, ep: 8, pp: 16, layers_first: 3, layers_last: 2}";
  const Validation validation = validated({{"train", train}});
  EXPECT_TRUE(validation.valid());
  EXPECT_THAT(validation.notes, Contains(HasSubstr("train.etp is not set: Megatron-LM takes it as tp = 2")));
  EXPECT_THAT(validated({}).notes, IsEmpty());
}

TEST(Validation, notes_hosts_that_both_sides_use) {
  EXPECT_THAT(validated({{"ranks.generate.hosts", "[31, 32-62]"}}).notes,
              Contains("both sides use host 31: their ranks share GPUs there"));
}

TEST(Validation, of_a_scenario_as_nemo_rl_has_no_expert_tensor_parallelism) {
  const std::string train = "{gpus: 256, ep: 8, etp: 2, pp: 16, layers_first: 3, layers_last: 2}";
  EXPECT_THAT(keys_of(validated({{"train", train}}, RuleSet::nemo_rl)), ElementsAre("train.etp"));
  EXPECT_TRUE(validated({{"train", train}}).valid());
}

TEST(Validation, of_a_scenario_as_nemo_rl_quantises_to_mxfp8_on_receipt_only) {
  EXPECT_THAT(keys_of(validated({{"model.dtype", "mxfp8"}}, RuleSet::nemo_rl)), ElementsAre("model.dtype"));
  EXPECT_TRUE(validated({{"model.dtype", "mxfp8"}}).valid());
  EXPECT_TRUE(validated({{"generate.quantize", "mxfp8"}}, RuleSet::nemo_rl).valid());
}

TEST(Validation, quantises_at_the_source_only_what_engines_want_in_mxfp8) {
  const Override source{"refit.quantize_at", "source"}, mxfp8{"generate.quantize", "mxfp8"};
  const Validation nothing = validated({source});
  ASSERT_THAT(keys_of(nothing), ElementsAre("refit.quantize_at"));
  EXPECT_EQ(nothing.violations.front().found, "source without generate.quantize");
  EXPECT_EQ(nothing.violations.front().allowed, "source with generate.quantize: mxfp8 only");
  EXPECT_TRUE(validated({source, mxfp8}).valid());
  EXPECT_THAT(keys_of(validated({source, mxfp8}, RuleSet::nemo_rl)), ElementsAre("refit.quantize_at"));
  EXPECT_THAT(keys_of(validated({source, mxfp8, {"model.dtype", "fp8"}})), ElementsAre("generate.quantize"));
  Input bare;
  bare.scenario = parsed(bare_tensor, {source});
  EXPECT_THAT(keys_of(validate(bare)), ElementsAre("refit.quantize_at"));
}

TEST(Validation, quantises_at_the_source_whole_groups_of_training_shards_only) {
  // rows of 18432 over 128 ranks are 144 elements long: 4 groups and a half
  const std::vector<Override> wide{{"train", "{gpus: 128, tp: 128, ep: 1, etp: 1}"},
                                   {"ranks", "{train: {hosts: 0-15}}"},
                                   {"generate.quantize", "mxfp8"}};
  EXPECT_TRUE(validated(wide).valid());
  std::vector<Override> at_source = wide;
  at_source.push_back({"refit.quantize_at", "source"});
  const Validation cut = validated(at_source);
  ASSERT_THAT(keys_of(cut), ElementsAre("train.tp"));
  EXPECT_THAT(cut.violations.front().allowed, HasSubstr("whole blocks of 32 of 18432, dimension 1 of "));
}

TEST(Validation, as_nemo_rl_notes_what_m2n_would_refuse) {
  const std::string train = "{gpus: 256, ep: 32, etp: 1, pp: 8, layers_first: 7, layers_last: 6}";
  const Validation nemo = validated({{"train", train}}, RuleSet::nemo_rl);
  EXPECT_TRUE(nemo.valid());
  EXPECT_THAT(nemo.notes, Contains(HasSubstr("NCCL M2N could not be the transport: train.ep")));
  EXPECT_THAT(keys_of(validated({{"train", train}}, RuleSet::m2n)), ElementsAre("train.ep"));
}

TEST(Validation, of_bare_tensors_counts_their_ranks) {
  Input input;
  input.scenario = parsed(replaced(bare_tensor, "ranks: [6, 4, 5]", "ranks: [6, 4, 15]"));
  EXPECT_THAT(keys_of(validate(input)), ElementsAre("fabric.hosts"));
  EXPECT_EQ(validate(input).violations.front().change, "2");
}

bool resolves(const Scenario& scenario) {
  try {
    resolve(scenario);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

TEST(Validation, of_tensors_that_no_link_moves_in_days_has_a_violation) {
  const auto keys = [](std::string_view shape) {
    Input input;
    input.scenario = parsed(replaced(bare_tensor, "shape: [8, 6]", shape));
    EXPECT_EQ(validate(input).valid(), resolves(input.scenario));
    return keys_of(validate(input));
  };
  EXPECT_THAT(keys("shape: [8, 60000000000000000]"), ElementsAre("fabric"));
  EXPECT_THAT(keys("shape: [8, 600000000000000]"), IsEmpty());
}

RC_GTEST_PROP(Validation, is_valid_exactly_when_the_scenario_resolves, ()) {
  const auto size = [] { return *rc::gen::element(1, 2, 3, 4, 7, 8, 16, 61); };
  Input input =
      read_input(project_folder() / "scenarios/deepseek-v3-h100.yaml",
                 {{"model.layers", "5"}, {"ranks", "{train: {hosts: 0-1}}"}, {"fabric.hosts", "6"}});
  Scenario& scenario = input.scenario;
  scenario.train_ranks.reset();
  TrainSpec& train = *scenario.train;
  train = {*rc::gen::inRange(1, 33), size(),       size(),       size(),
           *rc::gen::inRange(1, 6),  std::nullopt, std::nullopt, std::nullopt};
  if (*rc::gen::arbitrary<bool>()) train.etp = 1;
  if (*rc::gen::arbitrary<bool>()) train.layers_first = *rc::gen::inRange(1, 6);
  if (*rc::gen::arbitrary<bool>()) train.layer_split = LayerSplit::proportional;
  if (*rc::gen::arbitrary<bool>()) train = {16, 2, 1, 8, 1, 1, std::nullopt, std::nullopt};
  scenario.generate = GenerateSpec{*rc::gen::inRange(1, 33), size(), size(), std::nullopt};
  if (*rc::gen::arbitrary<bool>()) scenario.generate = GenerateSpec{16, 8, 1, std::nullopt};
  const Validation validation = validate(input);
  RC_TAG(validation.valid());
  RC_ASSERT(validation.valid() == resolves(scenario));
}

TEST(InputFault, nearest_numbers_lie_on_both_sides) {
  EXPECT_EQ(nearest_divisors(48, 2048), "32 or 64");
  EXPECT_EQ(nearest_divisors(5, 3), "3");
  EXPECT_EQ(nearest_divisors(7, 64), "4 or 8");
  EXPECT_EQ(nearest_multiples(250, 16), "240 or 256");
  EXPECT_EQ(nearest_multiples(5, 16), "16");
}

TEST(InputFault, of_an_error_keeps_place_and_both_parts) {
  const InputError error({"a.yaml", 3, "train.tp"}, "3", "1 or 2");
  const InputFault fault = as_fault(error, "2");
  EXPECT_EQ(fault.where.line, 3);
  EXPECT_EQ(fault.found, "3");
  EXPECT_EQ(fault.allowed, "1 or 2");
  try {
    raise_first({fault});
    FAIL();
  } catch (const InputError& raised) {
    EXPECT_STREQ(raised.what(), error.what());
  }
}

}  // namespace
}  // namespace isthmus::validation_test

#include "model/recipe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/recipe_settings.hpp"
#include "model/refit.hpp"
#include "model/validation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::recipe_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr std::string_view base_text = R"(policy:
  precision: bfloat16
  megatron_cfg:
    enabled: false
    expert_tensor_parallel_size: 1
    tensor_model_parallel_size: 1
    num_layers_in_first_pipeline_stage: null
    optimizer: {lr: 1.0e-6, betas: [0.9, 0.999]}
  generation:
    backend: "vllm"
    val_temperature: ${.temperature}
    colocated: {enabled: true, resources: {num_nodes: null, gpus_per_node: null}}
    vllm_cfg: {precision: "${policy.precision}", tensor_parallel_size: 1}
cluster: {gpus_per_node: 1, num_nodes: 1}
)";

constexpr std::string_view refined_text = R"(defaults: ../base.yaml
policy:
  megatron_cfg:
    enabled: true
    pipeline_model_parallel_size: 16
    expert_model_parallel_size: 16
    num_layers_in_first_pipeline_stage: 3
    num_layers_in_last_pipeline_stage: 2
    optimizer: null
  generation:
    colocated:
      enabled: false
      resources: {num_nodes: 32, gpus_per_node: 8}
    vllm_cfg: {tensor_parallel_size: 32}
cluster: {gpus_per_node: 8, num_nodes: 64}
)";

std::filesystem::path model() { return project_folder() / "scenarios/models/deepseek-v3.json"; }

class Recipe : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.write("base.yaml", base_text);
    file_ = folder_.write("recipes/deep.yaml", refined_text);
  }

  Input read(const std::vector<Override>& overrides = {}) const {
    return read_input(file_, overrides, model());
  }
  /// The keys and what stands there.
  std::vector<std::string> obstacles(const std::vector<Override>& overrides) const {
    std::vector<std::string> texts;
    for (const InputFault& fault : read(overrides).obstacles)
      texts.push_back(fault.where.key + "=" + fault.found);
    return texts;
  }

  TemporaryFolder folder_;
  std::filesystem::path file_;
};

TEST_F(Recipe, becomes_the_scenario_of_its_grids_and_hosts) {
  const Input input = read();
  EXPECT_EQ(input.kind, InputKind::nemo_rl_recipe);
  EXPECT_TRUE(input.obstacles.empty());
  const Scenario& scenario = require_scenario(input);
  EXPECT_EQ(*scenario.train, (TrainSpec{256, 1, 1, 16, 16, 1, 3, 2}));
  EXPECT_EQ(*scenario.generate, (GenerateSpec{256, 32, 1, std::nullopt}));
  EXPECT_EQ(scenario.fabric.preset, "dgx-h100-superpod");
  EXPECT_EQ(scenario.fabric.hosts, 64);
  EXPECT_EQ(scenario.fabric.nic_bandwidth, Bandwidth{50'000'000'000});
  EXPECT_EQ(scenario.calibration, "h100-ib400");
  EXPECT_EQ(scenario.name, "deep");
}

TEST_F(Recipe, resolves_to_the_refit_of_the_hand_written_scenario) {
  const Refit refit = resolve(require_scenario(read()));
  const Refit expected = resolve(read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml"));
  EXPECT_EQ(refit.geometries, expected.geometries);
  EXPECT_EQ(refit.gpu_of_rank, expected.gpu_of_rank);
  EXPECT_EQ(refit.payload(), expected.payload());
}

TEST_F(Recipe, lists_what_it_assumes) {
  const std::vector<std::string> lines = read().assumptions;
  EXPECT_THAT(lines, Contains(HasSubstr("hosts 0 to 31 train, hosts 32 to 63 generate, 8 GPUs each")));
  EXPECT_THAT(lines, Contains(HasSubstr("fabric dgx-h100-superpod with 64 hosts")));
  EXPECT_THAT(lines, Contains(HasSubstr("calibration h100-ib400")));
}

TEST_F(Recipe, overrides_reach_the_recipe_and_the_scenario_made_of_it) {
  const Scenario scenario = read({{"policy.generation.vllm_cfg.tensor_parallel_size", "16"},
                                  {"fabric.preset", "dgx-h200"},
                                  {"refit.streams", "16"}})
                                .scenario;
  EXPECT_EQ(scenario.generate->tp, 16);
  EXPECT_EQ(scenario.fabric.preset, "dgx-h200");
  EXPECT_EQ(scenario.refit.streams, 16);
}

TEST_F(Recipe, names_its_own_keys_with_the_file_that_has_the_last_word) {
  const Scenario scenario = read().scenario;
  const Location tp = scenario.at("generate.tp");
  EXPECT_EQ(tp.key, "policy.generation.vllm_cfg.tensor_parallel_size");
  EXPECT_EQ(tp.file, file_.string());
  EXPECT_EQ(tp.line, 14);
  const Location inherited = scenario.at("train.tp");
  EXPECT_EQ(inherited.key, "policy.megatron_cfg.tensor_model_parallel_size");
  EXPECT_EQ(inherited.file, (folder_.path() / "base.yaml").string());
  EXPECT_EQ(inherited.line, 6);
}

TEST_F(Recipe, precision_is_what_both_sides_agree_on) {
  const std::string vllm = "policy.generation.vllm_cfg.", fp8 = "policy.megatron_cfg.fp8_cfg";
  const Override tp{vllm + "tensor_parallel_size", "16"}, reads{vllm + "precision", "fp8"};
  const Override stores{fp8, "{fp8_param: true, fp8_recipe: blockwise}"}, mx{vllm + "is_mx", "true"};
  const auto ignored = [&](const std::string& list) {
    return Override{vllm + "quantization_ignored_layer_kws", list};
  };
  const auto wire = [this](const std::vector<Override>& overrides) {
    return read(overrides).scenario.model->precision;
  };
  EXPECT_EQ(wire({tp}), WirePrecision::bf16);
  EXPECT_EQ(wire({tp, reads, stores}), WirePrecision::fp8);
  EXPECT_EQ(wire({tp, reads, stores, ignored("[q_proj, k_proj, v_proj, o_proj]")}),
            WirePrecision::fp8_bf16_attention);
  EXPECT_EQ(wire({tp, reads, stores, ignored("[a_proj]")}), WirePrecision::fp8);
  EXPECT_THAT(read({tp, reads, stores, ignored("[a_proj]")}).assumptions,
              Contains(HasSubstr("is not modelled: a_proj count as quantised")));
  EXPECT_EQ(wire({tp, reads}), WirePrecision::bf16);  // nothing produces FP8: the rules refuse it
  EXPECT_THAT(read({tp, reads}).assumptions, Contains(HasSubstr("NeMo RL refuses: sizes are those of BF16")));
  const Scenario receiver = read({tp, reads, mx}).scenario;
  EXPECT_EQ(receiver.model->precision, WirePrecision::bf16);
  EXPECT_TRUE(receiver.generate->quantize_mxfp8);
  EXPECT_FALSE(read({tp}).scenario.generate->quantize_mxfp8);
}

TEST_F(Recipe, precision_that_cuts_blocks_is_a_fault_of_the_recipe) {
  const Input input = read({{"policy.generation.vllm_cfg.precision", "fp8"},
                            {"policy.megatron_cfg.fp8_cfg", "{fp8_param: true, fp8_recipe: blockwise}"}});
  const Validation validation = validate(input);  // TP32 leaves 64 rows of DeepSeek's experts
  ASSERT_EQ(validation.violations.size(), 1U);
  EXPECT_EQ(validation.violations.front().where.key, "policy.generation.vllm_cfg.tensor_parallel_size");
  EXPECT_EQ(validation.violations.front().change, "16");
}

TEST_F(Recipe, etp_of_null_is_unset_and_missing_is_1) {
  const std::string etp = "policy.megatron_cfg.expert_tensor_parallel_size";
  EXPECT_EQ(read({{etp, "null"}}).scenario.train->etp, std::nullopt);
  EXPECT_EQ(read({{"policy.megatron_cfg", "{enabled: true, pipeline_model_parallel_size: 16}"}})
                .scenario.train->etp,
            1);
}

TEST_F(Recipe, hosts_of_four_gpus_are_gb200_trays) {
  const Input input =
      read({{"cluster.gpus_per_node", "4"}, {"policy.generation.colocated.resources.gpus_per_node", "4"}});
  EXPECT_EQ(input.scenario.fabric.preset, "gb200-nvl72");
  EXPECT_EQ(input.scenario.train->gpus, 128);
}

TEST_F(Recipe, that_no_scenario_can_express_has_obstacles) {
  const std::string resources = "policy.generation.colocated.resources.";
  EXPECT_THAT(obstacles({{"policy.generation.colocated.enabled", "true"}}),
              Contains("policy.generation.colocated.enabled=true"));
  EXPECT_THAT(obstacles({{"policy.generation.backend", "trtllm"}}),
              Contains("policy.generation.backend=trtllm"));
  EXPECT_THAT(obstacles({{resources + "num_nodes", "64"}}), Contains(resources + "num_nodes=64"));
  EXPECT_THAT(obstacles({{resources + "num_nodes", "null"}}), Contains(resources + "num_nodes=nothing"));
  EXPECT_THAT(obstacles({{resources + "gpus_per_node", "4"}}), Contains(resources + "gpus_per_node=4"));
  EXPECT_THAT(obstacles({{"cluster.num_nodes", "1"}, {resources + "gpus_per_node", "2"}}),
              Contains(resources + "gpus_per_node=2 of the 8 GPUs of the only host"));
  EXPECT_THAT(obstacles({{"cluster.gpus_per_node", "16"}}), Contains("cluster.gpus_per_node=16"));
  EXPECT_THROW(require_scenario(read({{"policy.generation.colocated.enabled", "true"}})), InputError);
}

TEST_F(Recipe, without_a_model_is_no_scenario) {
  const Input input = read_input(file_);
  EXPECT_FALSE(input.has_model);
  EXPECT_THROW(require_scenario(input), InputError);
}

TEST_F(Recipe, of_more_gpus_than_a_scenario_may_have_is_a_fault_of_the_file) {
  EXPECT_THROW(read({{"cluster.num_nodes", "1000000"}}), InputError);
  try {
    read({{"policy.megatron_cfg.num_layers_in_first_pipeline_stage", "200000"}});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().key, "policy.megatron_cfg.num_layers_in_first_pipeline_stage");
  }
}

// Texts that are almost recipes: a result or one InputError, nothing else.
RC_GTEST_PROP(RecipeReader, survives_any_damage_to_the_text, ()) {
  const TemporaryFolder folder;
  folder.write("base.yaml", base_text);
  std::string text(refined_text);
  const auto place = *rc::gen::inRange<std::size_t>(0, text.size());
  text.erase(place, *rc::gen::inRange<std::size_t>(0, 40));
  text.insert(std::min(place, text.size()),
              *rc::gen::element<std::string>("", "0", "-", ": ", "{", "[", "${", "\n"));
  try {
    const Input input = read_input(folder.write("recipes/deep.yaml", text), {}, model());
    RC_ASSERT(validate(input, RuleSet::nemo_rl).valid() || !input.scenario.file.empty());
  } catch (const InputError& error) {
    RC_ASSERT(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

TEST_F(Recipe, sizes_that_are_no_numbers_are_faults_of_the_file) {
  for (const std::string bad : {"0", "-1", "many", "1.5", "[1]", "{a: 1}", "99999999999", "${nowhere}x"}) {
    EXPECT_THROW(read({{"policy.megatron_cfg.tensor_model_parallel_size", bad}}), InputError) << bad;
  }
}

RecipeSettings settings_of(const TemporaryFolder& folder, const std::string& text) {
  const std::filesystem::path file = folder.write("leaf.yaml", text);
  return RecipeSettings(YamlDocument(text, file.string()), file);
}

TEST(RecipeSettings, merge_mappings_key_by_key_and_replace_all_else) {
  const TemporaryFolder folder;
  folder.write("base.yaml", "a: {x: 1, y: {z: 2}}\nb: [1, 2]\nc: {d: 3}\ne: 5\n");
  const RecipeSettings settings =
      settings_of(folder, "defaults: base.yaml\na: {y: {w: 4}}\nb: [3]\nc: null\ne: {f: 6}\n");
  EXPECT_EQ(settings.number("a.x"), 1);
  EXPECT_EQ(settings.number("a.y.z"), 2);
  EXPECT_EQ(settings.number("a.y.w"), 4);
  EXPECT_TRUE(settings.unset("c"));
  EXPECT_TRUE(settings.missing("c.d"));
  EXPECT_EQ(settings.number("e.f"), 6);
}

TEST(RecipeSettings, items_of_a_list_are_its_plain_ones) {
  const TemporaryFolder folder;
  const RecipeSettings settings = settings_of(folder, "a: [x, {y: 1}, z]\nb: x\nc: ${a}\n");
  EXPECT_EQ(settings.items("a"), (std::vector<std::string>{"x", "z"}));
  EXPECT_EQ(settings.items("c"), settings.items("a"));
  EXPECT_TRUE(settings.items("b").empty());
  EXPECT_TRUE(settings.items("none").empty());
}

TEST(RecipeSettings, of_a_list_of_defaults_take_the_last) {
  const TemporaryFolder folder;
  folder.write("one.yaml", "a: 1\nb: 1\nc: 1\n");
  folder.write("two.yaml", "b: 2\nc: 2\n");
  const RecipeSettings settings = settings_of(folder, "defaults: [one.yaml, two.yaml]\nc: 3\n");
  EXPECT_EQ(settings.number("a"), 1);
  EXPECT_EQ(settings.number("b"), 2);
  EXPECT_EQ(settings.number("c"), 3);
}

TEST(RecipeSettings, follow_references_and_refuse_circles) {
  const TemporaryFolder folder;
  const RecipeSettings settings =
      settings_of(folder, "a: ${b.c}\nb: {c: '${d}'}\nd: 7\ne: ${f}\nf: ${e}\ng: ${mul:${d}, 2}\n");
  EXPECT_EQ(settings.number("a"), 7);
  EXPECT_EQ(settings.where("a").line, 1);
  EXPECT_THROW(settings.number("e"), InputError);
  EXPECT_THROW(settings.number("g"), InputError);
}

TEST(RecipeSettings, refuse_a_chain_that_does_not_end_and_files_that_are_not_there) {
  const TemporaryFolder folder;
  EXPECT_THROW(settings_of(folder, "defaults: leaf.yaml\n"), InputError);
  EXPECT_THROW(settings_of(folder, "defaults: none.yaml\n"), InputError);
  EXPECT_THROW(settings_of(folder, "defaults: ..\n"), InputError);
}

}  // namespace
}  // namespace isthmus::recipe_test

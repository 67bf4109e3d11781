#include "model/precision.hpp"

#include <map>
#include <regex>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/grid.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/validation.hpp"
#include "tests/model/families/moe_case.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/tensor_names.hpp"

namespace isthmus::precision_test {
namespace {

using testing::Draw;
using ::testing::HasSubstr;
using testing::ModelCase;
using enum WirePrecision;

using Shape = std::vector<std::int64_t>;

struct Travelling {
  Shape shape;
  Dtype wire = Dtype::bf16;
  Role role = Role::misc;
  friend bool operator==(const Travelling&, const Travelling&) = default;
};
using Tensors = std::map<std::string, Travelling>;

// The rule a second time, on full names.
bool expected_quantised(const std::string& name, const Shape& shape, WirePrecision precision) {
  static const std::regex plain(
      "(.*\\.)?(embed_tokens|embeddings|lm_head|shared_head\\.head|eh_proj|gate|router)\\.weight");
  if (shape.size() != 2 || shape[0] == 1 || shape[1] == 1) return false;
  if (!std::regex_match(name, std::regex(".*\\.weight")) || std::regex_match(name, plain)) return false;
  return precision != fp8_bf16_attention || name.find("self_attn") == std::string::npos;
}

Tensors expected_tensors(const ModelCase& model, WirePrecision precision) {
  Tensors tensors;
  for (const auto& [name, tensor] : model.tensors) {
    const Role role = role_of(name, model.layers);
    const Role of_scales = role == Role::bulk ? Role::misc : role;
    if (precision == bf16 || !expected_quantised(name, tensor.shape, precision)) {
      tensors[name] = {tensor.shape, Dtype::bf16, role};
      continue;
    }
    tensors[name] = {tensor.shape, Dtype::fp8_e4m3, role};
    const auto blocks = [](std::int64_t n, std::int64_t size) { return n / size + (n % size == 0 ? 0 : 1); };
    const std::int64_t out = tensor.shape[0], in = tensor.shape[1];
    if (precision == mxfp8) {
      tensors[name + "_scale"] = {{out, blocks(in, 32)}, Dtype::u8, of_scales};
    } else {
      tensors[name + "_scale_inv"] = {{blocks(out, 128), blocks(in, 128)}, Dtype::f32, of_scales};
    }
  }
  return tensors;
}

Tensors write_out(const Inventory& inventory) {
  Tensors tensors;
  testing::for_each_tensor(inventory, [&](const std::string& name, const TensorPattern& pattern) {
    tensors[name] = {pattern.shape, pattern.wire, pattern.role};
  });
  return tensors;
}

ModelCase draw_model() {
  if (Draw::flag()) return testing::dense_case("qwen3", true);
  const std::int64_t keys = Draw::size(1, 3), head = Draw::size(1, 90);
  return testing::moe_case("glm4_moe",
                           {{"num_attention_heads", keys},
                            {"num_key_value_heads", keys},
                            {"head_dim", head},
                            {"attention_bias", false},
                            {"use_qk_norm", false}},
                           [=](ModelCase& model, const std::string& layer, std::int64_t hidden) {
                             testing::add_attention(model, layer + "self_attn.", hidden, keys * head,
                                                    keys * head, keys * head);
                           });
}

TEST(Precision, carries_what_a_second_expansion_lists) {
  const bool held = rc::check("names, shapes, dtypes, roles and totals", [] {
    const ModelCase model = draw_model();
    const Inventory inventory = testing::read_config(model.config);
    for (const WirePrecision precision : {bf16, fp8, fp8_bf16_attention, mxfp8}) {
      const Tensors expected = expected_tensors(model, precision);
      const Inventory travelling = in_precision(inventory, precision);
      RC_ASSERT(write_out(travelling) == expected);
      std::int64_t bytes = 0, bulk = 0;
      for (const auto& [name, tensor] : expected) {
        std::int64_t size = element_size(tensor.wire).value;
        for (const std::int64_t extent : tensor.shape) size *= extent;
        bytes += size;
        bulk += tensor.role == Role::bulk ? size : 0;
      }
      const PrecisionTotals sum = precision_totals(travelling, {true, true});
      RC_ASSERT(sum.bytes == Bytes{bytes});
      RC_ASSERT(sum.bulk_bytes == Bytes{bulk});
      RC_ASSERT(sum.misc_bytes == Bytes{bytes - bulk});
      RC_ASSERT(sum.tensor_count == static_cast<std::int64_t>(expected.size()));
    }
  });
  EXPECT_TRUE(held);
}

TEST(Precision, names_read_back_and_others_do_not) {
  for (const WirePrecision precision : {bf16, fp8, fp8_bf16_attention, mxfp8})
    EXPECT_EQ(parse_wire_precision(to_string(precision)), precision);
  for (const char* name : {"f16", "FP8", "", "stored", "mxfp4"})
    EXPECT_EQ(parse_wire_precision(name), std::nullopt) << name;
}

TEST(Precision, takes_fused_experts_apart) {
  TensorPattern fused;
  fused.name = "model.layers.{l}.mlp.experts.gate_up_proj";
  fused.shape = {4, 64, 2 * 160};  // transposed: [experts, in, 2 x out]
  fused.role = Role::bulk;
  fused.home = Home::layer;
  fused.layers = {0, 1};
  fused.experts = 4;
  fused.fused_experts = fused.transposed = true;
  Inventory inventory;
  inventory.patterns = {fused};
  const std::vector<TensorPattern> patterns = in_precision(inventory, fp8).patterns;
  ASSERT_EQ(patterns.size(), 4U);
  EXPECT_EQ(patterns[0].name, "model.layers.{l}.mlp.experts.{e}.gate_proj.weight");
  EXPECT_EQ(patterns[0].shape, (Shape{160, 64}));
  EXPECT_EQ(patterns[0].count(), 8);
  EXPECT_EQ(patterns[1].name, "model.layers.{l}.mlp.experts.{e}.gate_proj.weight_scale_inv");
  EXPECT_EQ(patterns[1].shape, (Shape{2, 1}));
  EXPECT_EQ(patterns[1].role, Role::misc);
  EXPECT_EQ(patterns[2].name, "model.layers.{l}.mlp.experts.{e}.up_proj.weight");
}

TEST(Precision, leaves_vision_routers_and_vectors_alone) {
  TensorPattern pattern;
  pattern.shape = {256, 256};
  pattern.name = "model.layers.{l}.mlp.up_proj.weight";
  EXPECT_TRUE(is_quantised(pattern, fp8));
  EXPECT_FALSE(is_quantised(pattern, bf16));
  pattern.role = Role::vision;
  EXPECT_FALSE(is_quantised(pattern, fp8));
  pattern.role = Role::misc;
  pattern.shape = {1, 256};
  EXPECT_FALSE(is_quantised(pattern, fp8));
  pattern.shape = {256, 256};
  for (const char* name :
       {"model.layers.{l}.mlp.gate.weight", "model.layers.{l}.mlp.router.weight", "mtp.fc.weight",
        "lm_head.weight", "backbone.embeddings.weight", "model.layers.{l}.mlp.experts.gate_up_proj_bias"}) {
    pattern.name = name;
    EXPECT_FALSE(is_quantised(pattern, fp8)) << name;
  }
  pattern.name = "model.layers.{l}.mlp.shared_expert.gate_proj.weight";  // ends in no whole `gate`
  EXPECT_TRUE(is_quantised(pattern, mxfp8));
}

Scenario main_scenario(const std::vector<Override>& overrides) {
  std::vector<Override> all{{"model.layers", "4"},
                            {"train", "{gpus: 16, ep: 16, etp: 1}"},
                            {"ranks", "{train: {hosts: 0-1}}"},
                            {"fabric.hosts", "8"}};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml", all);
}

/// Each quantised tensor's target shard covers the blocks of which its scales' shard has the numbers.
void expect_whole_blocks(const Scenario& scenario, std::int64_t rows, std::int64_t columns) {
  const Refit refit = resolve(scenario);
  std::size_t pairs = 0;
  for (std::size_t i = 1; i < refit.tensors.size(); ++i) {
    const RefitTensor &weight = refit.tensors[i - 1].tensor, &scales = refit.tensors[i].tensor;
    if (weight.dtype != Dtype::fp8_e4m3) continue;
    ++pairs;
    EXPECT_EQ(scales.name.rfind(weight.name + "_scale", 0), 0U) << scales.name;  // right behind its weight
    EXPECT_EQ(scales.role, Role::misc);
    EXPECT_EQ(scales.parts, weight.parts);
    const Geometry &of_weight = refit.geometries[refit.tensors[i - 1].geometry],
                   &of_scales = refit.geometries[refit.tensors[i].geometry];
    for (std::size_t rank = 0; rank < of_weight.target.mesh.size(); ++rank) {
      const Region part = of_weight.target.region(rank), its = of_scales.target.region(rank);
      const std::size_t last = part.dimensions - 1;
      EXPECT_EQ(part.begin[last - 1], its.begin[last - 1] * rows) << weight.name;
      EXPECT_EQ(part.begin[last], its.begin[last] * columns) << weight.name;
      EXPECT_EQ((part.end[last - 1] + rows - 1) / rows, its.end[last - 1]) << weight.name;
      EXPECT_EQ((part.end[last] + columns - 1) / columns, its.end[last]) << weight.name;
    }
  }
  EXPECT_GT(pairs, 20U);
}

TEST(Precision, scales_are_split_with_their_blocks) {
  for (const std::string generate : {"{gpus: 16, tp: 16}", "{gpus: 16, tp: 2}", "{gpus: 16, tp: 8, ep: 8}"}) {
    expect_whole_blocks(main_scenario({{"generate", generate}, {"model.dtype", "fp8"}}), 128, 128);
    expect_whole_blocks(main_scenario({{"generate", generate}, {"model.dtype", "mxfp8"}}), 1, 32);
  }
}

std::vector<InputFault> faults_of(const Scenario& scenario) {
  Input input;
  input.scenario = scenario;
  return validate(input).violations;
}

TEST(Precision, refuses_shards_that_cut_a_block) {
  const Override generate{"generate", "{gpus: 32, tp: 32}"};
  const std::vector<InputFault> faults = faults_of(main_scenario({generate, {"model.dtype", "fp8"}}));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].where.key, "generate.tp");
  EXPECT_EQ(faults[0].found, "32");
  EXPECT_THAT(faults[0].allowed, HasSubstr("a size that leaves whole blocks of 128 of 18432, dimension 0 of "
                                           "model.layers.0.mlp.gate_proj.weight and "));
  EXPECT_EQ(faults[0].change, "16");
  EXPECT_TRUE(faults_of(main_scenario({generate, {"model.dtype", "bf16"}})).empty());
  EXPECT_TRUE(faults_of(main_scenario({{"generate", "{gpus: 32, tp: 16}"}, {"model.dtype", "fp8"}})).empty());
}

TEST(Precision, qwen3_30b_in_fp8_allows_tp_2_and_names_it) {
  const auto scenario = [](const std::string& dtype, int tp) {
    return read_scenario(project_folder() / "scenarios/qwen3-30b-a3b-h100.yaml",
                         {{"model.dtype", dtype},
                          {"generate", fmt::format("{{gpus: 24, tp: {}}}", tp)},
                          {"fabric.hosts", "8"}});
  };
  const std::vector<InputFault> faults = faults_of(scenario("fp8-bf16-attention", 8));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0].allowed, HasSubstr("whole blocks of 128 of 768, dimension 1 of "
                                           "model.layers.0.mlp.experts.gate_proj.weight"));
  EXPECT_EQ(faults_of(scenario("fp8", 8)).at(0).change, "2");
  EXPECT_TRUE(faults_of(scenario("fp8", 2)).empty());
  EXPECT_TRUE(faults_of(scenario("fp8-bf16-attention", 2)).empty());
}

TEST(Precision, a_receiver_that_quantises_leaves_the_wire_as_it_is) {
  const Scenario plain = main_scenario({{"generate", "{gpus: 16, tp: 16}"}});
  const Scenario quantised = main_scenario({{"generate", "{gpus: 16, tp: 16, quantize: mxfp8}"}});
  const Refit before = resolve(plain), after = resolve(quantised);
  EXPECT_EQ(before.geometries, after.geometries);
  EXPECT_EQ(before.payload(), after.payload());
  EXPECT_LT(after.largest_live_share().value, before.largest_live_share().value * 6 / 10);
  // what arrives quantised at the source is as large as what the receiver quantises
  const Refit source = resolve(main_scenario({{"generate", "{gpus: 16, tp: 16}"}, {"model.dtype", "mxfp8"}}));
  EXPECT_EQ(source.largest_live_share(), after.largest_live_share());
  EXPECT_LT(source.payload(), after.payload());
}

TEST(Precision, sources_that_quantise_send_what_training_in_mxfp8_would_send) {
  const std::string generate = "{gpus: 16, tp: 16}", wanting = "{gpus: 16, tp: 16, quantize: mxfp8}";
  const Refit trained = resolve(main_scenario({{"generate", generate}, {"model.dtype", "mxfp8"}}));
  const Refit made = resolve(main_scenario({{"generate", wanting}, {"refit.quantize_at", "source"}}));
  EXPECT_EQ(made.geometries, trained.geometries);
  EXPECT_EQ(made.wire.bytes, trained.wire.bytes);
  EXPECT_TRUE(made.sources_quantise());
  EXPECT_FALSE(trained.sources_quantise());
  ASSERT_EQ(made.tensors.size(), trained.tensors.size());
  std::map<QuantisedPart, int> parts;
  for (std::size_t i = 0; i < made.tensors.size(); ++i) {
    const RefitTensor& tensor = made.tensors[i].tensor;
    EXPECT_EQ(tensor.name, trained.tensors[i].tensor.name);
    EXPECT_FALSE(tensor.receiver_quantises);
    EXPECT_EQ(tensor.quantised == QuantisedPart::none, tensor.dtype == Dtype::bf16) << tensor.name;
    ++parts[tensor.quantised];
    if (tensor.quantised != QuantisedPart::scales) continue;
    EXPECT_EQ(values_name(tensor.name), made.tensors[i - 1].tensor.name);
  }
  EXPECT_GT(parts[QuantisedPart::values], 20);
  EXPECT_EQ(parts[QuantisedPart::values], parts[QuantisedPart::scales]);
}

/// By a second expansion: what one group of 32 costs a source.
TEST(Precision, quantising_reads_bf16_and_writes_what_travels) {
  const std::int64_t group = 32 * 2;
  EXPECT_EQ(quantising_traffic(QuantisedPart::values, {32}).value, group + 32);
  EXPECT_EQ(quantising_traffic(QuantisedPart::scales, {1}).value, group + 1);
  EXPECT_EQ(quantising_traffic(QuantisedPart::none, {32}).value, 0);
}

TEST(Precision, a_receiver_quantises_bf16_in_whole_groups_only) {
  const std::vector<InputFault> beside_fp8 =
      faults_of(main_scenario({{"generate", "{gpus: 16, tp: 16, quantize: mxfp8}"}, {"model.dtype", "fp8"}}));
  ASSERT_EQ(beside_fp8.size(), 1U);
  EXPECT_EQ(beside_fp8[0].where.key, "generate.quantize");
  EXPECT_EQ(beside_fp8[0].found, "mxfp8 beside model.dtype fp8");
  // rows of 18432 over 128 ranks are 144 elements long; BF16 may cut groups, the receiver may not
  const auto over_128 = [](const std::string& quantize) {
    return main_scenario({{"generate", "{gpus: 128, tp: 128" + quantize + "}"}, {"fabric.hosts", "18"}});
  };
  const std::vector<InputFault> cut = faults_of(over_128(", quantize: mxfp8"));
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_EQ(cut[0].where.key, "generate.tp");
  EXPECT_THAT(cut[0].allowed, HasSubstr("whole blocks of 32 of 18432, dimension 1 of "));
  EXPECT_TRUE(faults_of(over_128("")).empty());
}

TEST(Precision, of_rows_without_whole_groups_is_refused) {
  TensorPattern pattern;
  pattern.name = "model.layers.{l}.mlp.up_proj.weight";
  pattern.shape = {96, 90};
  pattern.layers = {0};
  Inventory inventory;
  inventory.patterns = {pattern};
  EXPECT_EQ(first_broken_group(inventory, {}), &inventory.patterns.front());
  inventory.patterns.front().shape = {90, 96};
  EXPECT_EQ(first_broken_group(inventory, {}), nullptr);
  inventory.patterns.front() = pattern;
  inventory.patterns.front().role = Role::mtp;
  EXPECT_EQ(first_broken_group(inventory, {}), nullptr);
  EXPECT_NE(first_broken_group(inventory, {true, false}), nullptr);
}

}  // namespace
}  // namespace isthmus::precision_test

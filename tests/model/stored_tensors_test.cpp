#include "model/stored_tensors.hpp"

#include <gtest/gtest.h>

#include "model/error.hpp"

namespace isthmus::stored_tensors_test {
namespace {

using Shape = std::vector<std::int64_t>;

std::string refusal(const std::vector<StoredTensor>& tensors) {
  try {
    group_tensors(tensors, "list", "model");
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

const TensorPattern* find(const Inventory& inventory, const std::string& name, std::size_t nth = 0) {
  for (const TensorPattern& pattern : inventory.patterns) {
    if (pattern.name == name && nth-- == 0) return &pattern;
  }
  return nullptr;
}

TEST(StoredTensors, experts_of_a_layer_form_one_pattern_with_those_of_other_layers) {
  std::vector<StoredTensor> tensors;
  for (const int layer : {1, 2, 4}) {
    for (const int expert : {0, 1, 2}) {
      tensors.push_back(
          {"model.layers." + std::to_string(layer) + ".experts." + std::to_string(expert) + ".w2.weight",
           {4, 6}});
    }
  }
  const Inventory inventory = group_tensors(tensors, "list", "a model");
  ASSERT_EQ(inventory.patterns.size(), 1U);
  const TensorPattern& pattern = inventory.patterns.front();
  EXPECT_EQ(pattern.layers, (std::vector<int>{1, 2, 4}));
  EXPECT_EQ(pattern.experts, 3);
  EXPECT_EQ(pattern.count(), 9);
  EXPECT_EQ(pattern.tensor_parallel, TensorParallel::columns);
  EXPECT_EQ(pattern.home, Home::layer);
  EXPECT_EQ(inventory.layers, 5);
  EXPECT_EQ(inventory.experts, 3);
  EXPECT_EQ(inventory.model, "a model");
}

TEST(StoredTensors, layers_that_differ_in_shape_dtype_or_experts_form_patterns_of_their_own) {
  const Inventory inventory = group_tensors({{"layers.0.x", {2}},
                                             {"layers.1.x", {3}},
                                             {"layers.2.x", {2}, Dtype::f32},
                                             {"layers.3.x", {2}},
                                             {"layers.0.experts.0.y", {2}},
                                             {"layers.1.experts.0.y", {2}},
                                             {"layers.1.experts.1.y", {2}}},
                                            "list", "model");
  EXPECT_EQ(inventory.patterns.size(), 5U);
  EXPECT_EQ(totals(inventory).tensor_count, 7);
}

TEST(StoredTensors, gaps_among_experts_are_refused) {
  EXPECT_NE(
      refusal({{"layers.7.experts.0.y", {2}}, {"layers.7.experts.2.y", {2}}})
          .find("list: layers.{l}.experts.{e}.y: found 2 experts of shape [2] up to number 2 in layer 7"),
      std::string::npos);
  EXPECT_NE(refusal({{"layers.7.experts.0.y", {2}}, {"layers.7.experts.1.y", {3}}}).find("of one shape"),
            std::string::npos);
}

TEST(StoredTensors, the_largest_stack_is_the_decoder_and_others_stand_on_the_first_stage) {
  const Inventory inventory = group_tensors({{"encoder.layers.0.x", {2}},
                                             {"encoder.layers.9.x", {2}},
                                             {"text.layers.0.x", {30}},
                                             {"text.layers.1.x", {30}},
                                             {"text.embed_tokens.weight", {5, 5}},
                                             {"text.norm.weight", {5}}},
                                            "list", "model");
  EXPECT_EQ(inventory.layers, 2);
  EXPECT_EQ(find(inventory, "encoder.layers.{l}.x")->home, Home::first_stage);
  EXPECT_EQ(find(inventory, "text.layers.{l}.x")->home, Home::layer);
  EXPECT_EQ(find(inventory, "text.embed_tokens.weight")->home, Home::first_stage);
  EXPECT_EQ(find(inventory, "text.norm.weight")->home, Home::last_stage);
}

TEST(StoredTensors, layers_with_an_eh_proj_are_mtp) {
  const Inventory inventory = group_tensors({{"model.layers.0.up_proj.weight", {4, 4}},
                                             {"model.layers.1.up_proj.weight", {4, 4}},
                                             {"model.layers.1.eh_proj.weight", {4, 8}}},
                                            "list", "model");
  EXPECT_EQ(inventory.layers, 1);
  EXPECT_EQ(find(inventory, "model.layers.{l}.up_proj.weight", 0)->role, Role::bulk);
  EXPECT_EQ(find(inventory, "model.layers.{l}.up_proj.weight", 1)->role, Role::mtp);
  EXPECT_EQ(find(inventory, "model.layers.{l}.up_proj.weight", 1)->home, Home::last_stage);
}

TEST(StoredTensors, fused_experts_show_their_orientation_by_their_pair) {
  const auto fused = [](const Shape& gate_up, const Shape& down) {
    return std::vector<StoredTensor>{{"layers.0.experts.gate_up_proj", gate_up},
                                     {"layers.0.experts.gate_up_proj_bias", {3, 10}},
                                     {"layers.0.experts.down_proj", down}};
  };
  const Inventory plain = group_tensors(fused({3, 10, 8}, {3, 8, 5}), "list", "model");
  EXPECT_TRUE(find(plain, "layers.{l}.experts.gate_up_proj")->fused_experts);
  EXPECT_FALSE(find(plain, "layers.{l}.experts.gate_up_proj")->transposed);
  EXPECT_TRUE(find(plain, "layers.{l}.experts.gate_up_proj_bias")->fused_experts);
  EXPECT_EQ(find(plain, "layers.{l}.experts.down_proj")->experts, 3);
  const Inventory transposed = group_tensors(fused({3, 8, 10}, {3, 5, 8}), "list", "model");
  EXPECT_TRUE(find(transposed, "layers.{l}.experts.gate_up_proj")->transposed);
  EXPECT_TRUE(find(transposed, "layers.{l}.experts.down_proj")->transposed);
  EXPECT_FALSE(find(transposed, "layers.{l}.experts.gate_up_proj_bias")->transposed);
  for (const auto& [gate_up, down] : std::vector<std::pair<Shape, Shape>>{{{3, 8, 8}, {3, 8, 8}},
                                                                          {{3, 10, 8}, {4, 8, 5}},
                                                                          {{10, 8}, {8, 5}},
                                                                          {{3, 9, 8}, {3, 8, 5}},
                                                                          {{}, {}}}) {
    EXPECT_NE(refusal(fused(gate_up, down)).find("beside down_proj"), std::string::npos);
  }
  EXPECT_NE(refusal({{"experts.gate_up_proj", {3, 10, 8}}}).find("beside down_proj []"), std::string::npos);
  EXPECT_NE(refusal({{"experts.down_proj", {3, 8, 5}}}).find("[] beside down_proj"), std::string::npos);
}

TEST(StoredTensors, block_scales_and_rotary_tables_are_left_out) {
  const Inventory inventory = group_tensors({{"layers.0.up_proj.weight", {256, 256}, Dtype::fp8_e4m3},
                                             {"layers.0.up_proj.weight_scale_inv", {2, 2}, Dtype::f32},
                                             {"layers.0.self_attn.rotary_emb.inv_freq", {32}, Dtype::f32}},
                                            "list", "model");
  EXPECT_EQ(totals(inventory).parameters, 256 * 256);
  EXPECT_EQ(totals(inventory).bytes, Bytes{2 * 256 * 256});
  EXPECT_EQ(find(inventory, "layers.{l}.up_proj.weight")->stored, Dtype::fp8_e4m3);
}

TEST(StoredTensors, what_is_no_weight_is_refused) {
  EXPECT_EQ(refusal({}), "list: found no tensors; allowed: at least one tensor");
  EXPECT_NE(refusal({{"a", {2}}, {"a", {2}}}).find("a: the tensor stands there twice"), std::string::npos);
  EXPECT_NE(refusal({{"a", {2, 0}}}).find("a: found a dimension of 0"), std::string::npos);
  EXPECT_NE(refusal({{"a", {-2}}}).find("a: found a dimension of -2"), std::string::npos);
  EXPECT_NE(refusal({{"a", {1LL << 40, 1LL << 40}}}).find("a: found more elements"), std::string::npos);
  EXPECT_NE(refusal({{"a", {1LL << 50}}, {"b", {1LL << 50}}}).find("more than 2000000000000000 parameters"),
            std::string::npos);
  EXPECT_NE(refusal({{"a", {2}, Dtype::u8}}).find("a: found dtype u8"), std::string::npos);
  for (const std::string& name :
       {std::string(), std::string("a{l}"), std::string("a\nb"), std::string(1'001, 'x')}) {
    EXPECT_NE(refusal({{name, {2}}}).find("found a tensor of this name"), std::string::npos) << name;
  }
}

TEST(StoredTensors, a_scalar_travels_as_a_tensor_of_one_element) {
  const Inventory inventory = group_tensors({{"layers.0.k_scale", {}, Dtype::f32}}, "list", "model");
  EXPECT_EQ(totals(inventory).parameters, 1);
  const auto tensors = refit_tensors(inventory, {}, [](const TensorPattern&) { return false; });
  ASSERT_EQ(tensors.size(), 1U);
  EXPECT_EQ(tensors.front().shape, (Shape{1}));
}

}  // namespace
}  // namespace isthmus::stored_tensors_test

#include "model/tensor_name.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(TensorName, numbers_after_layers_blocks_and_experts_are_taken_out) {
  const PatternName name = take_apart("model.layers.12.mlp.experts.7.up_proj.weight");
  EXPECT_EQ(name.text, "model.layers.{l}.mlp.experts.{e}.up_proj.weight");
  EXPECT_EQ(name.stack, "model.layers.");
  EXPECT_EQ(name.layer, 12);
  EXPECT_EQ(name.expert, 7);
  EXPECT_EQ(take_apart("model.visual.blocks.0.norm1.bias").text, "model.visual.blocks.{l}.norm1.bias");
}

TEST(TensorName, other_numbers_stay) {
  for (const std::string name : {"lm_head.weight", "mm_projector.proj.0.weight", "model.layers.x.weight",
                                 "model.layers.01.weight", "model.layers.-1.weight", "model.layers.3",
                                 "layers", "", ".", "..", "model.layers.99999999999999999999.w",
                                 "model.layers.10000.weight", "experts.65536.weight", "mylayers.3.weight"}) {
    const PatternName taken = take_apart(name);
    EXPECT_EQ(taken.text, name);
    EXPECT_EQ(taken.layer, -1) << name;
    EXPECT_EQ(taken.expert, -1) << name;
  }
  EXPECT_EQ(take_apart("layers.1.mtp.layers.2.weight").text, "layers.{l}.mtp.layers.2.weight");
}

TEST(TensorName, splits_go_by_whole_parts_of_the_name) {
  EXPECT_EQ(split_of("a.q_proj.weight"), TensorParallel::rows);
  EXPECT_EQ(split_of("q_proj.weight"), TensorParallel::rows);
  EXPECT_EQ(split_of("a.routed_expert_down_proj.weight"), TensorParallel::replicated);
  EXPECT_EQ(split_of("a.down_proj.weight"), TensorParallel::columns);
  EXPECT_EQ(split_of("a.down_proj.weight_scale_inv"), TensorParallel::replicated);
  EXPECT_EQ(split_of("a.o_proj.bias"), TensorParallel::replicated);
  EXPECT_EQ(split_of("lm_head.weight"), TensorParallel::vocabulary);
  EXPECT_EQ(split_of(""), TensorParallel::replicated);
}

TEST(TensorName, dtypes_have_two_names) {
  EXPECT_EQ(parse_stored_dtype("BF16"), Dtype::bf16);
  EXPECT_EQ(parse_stored_dtype("torch.bfloat16"), Dtype::bf16);
  EXPECT_EQ(parse_stored_dtype("F8_E4M3"), Dtype::fp8_e4m3);
  EXPECT_EQ(parse_stored_dtype("float8_e5m2"), Dtype::fp8_e5m2);
  for (const std::string name : {"bf16", "", "F4", "F8_E8M0", "float", "torch."}) {
    EXPECT_EQ(parse_stored_dtype(name), std::nullopt) << name;
  }
}

}  // namespace
}  // namespace isthmus

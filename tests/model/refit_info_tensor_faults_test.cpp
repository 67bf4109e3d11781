// What a description says about itself (model/refit_info_tensor_faults.cpp): examples with the whole message.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit_info_faults.hpp"
#include "tests/support/refit_info_generator.hpp"

namespace isthmus::refit_info_tensor_faults_test {
namespace {

using test::OrderedJson;
using test::RefitInfoShape;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

OrderedJson alone(const RefitInfoShape& shape) {
  return test::make_refit_info(shape)["nccl_reshard_refit_info"];
}

RefitInfoProof proven(const OrderedJson& document) {
  return prove(parse_refit_info(document.dump(), "info.json"));
}

std::vector<std::string> found(const OrderedJson& document) {
  std::vector<std::string> texts;
  for (const InputFault& fault : proven(document).faults)
    texts.push_back(fmt::format("{}; allowed: {}; change: {}", fault.found, fault.allowed, fault.change));
  return texts;
}

/// Two layers, one on each of two stages.
RefitInfoShape staged() {
  RefitInfoShape shape;
  shape.pp = 2;
  shape.layers = {1, 1};
  shape.dense_layers = 2;
  return shape;
}

TEST(RefitInfoTensors, of_a_layer_past_the_last_one_belong_to_no_stage) {
  OrderedJson document = alone(staged());
  OrderedJson tensor = document["per_layer_params"]["model.layers.1"][1];
  tensor["name"] = "model.layers.2.mlp.up_proj.weight";
  tensor.erase("pp_stage");
  document["layer_names"].push_back("model.layers.2");
  document["per_layer_params"]["model.layers.2"].push_back(tensor);
  EXPECT_THAT(
      found(document),
      ElementsAre(
          "tensor model.layers.2.mlp.up_proj.weight: layer 2 belongs to no pipeline stage; allowed: a "
          "stage from 0 to 1 (layers 0 to 1 are on stages 0 to 1); change: send it by the misc path "
          "or name its owner"));
  document["per_layer_params"]["model.layers.2"][0]["pp_stage"] = 1;
  EXPECT_THAT(found(document), IsEmpty());
}

TEST(RefitInfoTensors, that_two_stages_hold_need_one_owner) {
  OrderedJson document = alone(staged());
  OrderedJson tensor = document["per_layer_params"]["model.layers.0"][0];
  tensor["pp_stage"] = 1;
  document["per_layer_params"]["model.layers.1"].push_back(tensor);
  EXPECT_THAT(found(document),
              ElementsAre(HasSubstr("tensor model.layers.0.mlp.gate_proj.weight: held by stages 0 "
                                    "and 1; allowed: each tensor once, with one owner")));
}

TEST(RefitInfoTensors, need_as_many_ranks_as_the_engines_have) {
  RefitInfoShape shape;
  shape.generate_tp = shape.engines = 2;
  OrderedJson document = alone(shape);
  for (OrderedJson& tensor : document["per_layer_params"]["model.layers.0"]) {
    tensor["dst_mesh_info"] = {{"shape", {2}}, {"ranks", {1, 2}}};
    tensor["dst_placements"] = {"Replicate()"};
  }
  EXPECT_THAT(
      found(document),
      ElementsAre("model.layers.0.mlp.gate_proj.weight: 2 ranks assigned on the generation side (and 2 more "
                  "like it); allowed: 2 engines x 2 ranks need 4 ranks; engine 0 should hold ranks 1 to 2, "
                  "engine 1 ranks 3 to 4; change: a mesh of 4 ranks"));
  EXPECT_THAT(found(alone(shape)), IsEmpty());
}

TEST(RefitInfoTensors, that_are_cut_unevenly_are_noted_with_the_rule_that_is_used) {
  RefitInfoShape shape;
  shape.generate_tp = 4;
  OrderedJson document = alone(shape);
  document["per_layer_params"]["model.layers.0"][0]["global_shape"] = {10, 3};
  EXPECT_THAT(found(document), IsEmpty());
  EXPECT_THAT(proven(document).notes,
              Contains(HasSubstr(
                  "model.layers.0.mlp.gate_proj.weight is cut unevenly: read by the chunk rule ceil")));
  const RefitInfo info = parse_refit_info(document.dump(), "info.json");
  EXPECT_EQ(to_string(info.tensors[0].target.region(3)), "[9:10, 0:3]");
}

TEST(RefitInfoTensors, are_refused_sizes_that_do_not_divide_once) {
  OrderedJson document = alone(staged());
  document["train_world_size"] = 3;
  EXPECT_THAT(found(document), ElementsAre("3; allowed: a multiple of pp_size = 2; change: 2 or 4"));
  document = alone(staged());
  document["gen_tp_size"] = 2;
  EXPECT_THAT(found(document), ElementsAre("1; allowed: a multiple of gen_tp_size = 2; change: 2"));
}

}  // namespace
}  // namespace isthmus::refit_info_tensor_faults_test

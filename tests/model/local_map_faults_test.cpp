// One rank's map against the description (model/local_map_faults.cpp): examples with their messages.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit_info_faults.hpp"
#include "tests/support/refit_info_generator.hpp"

namespace isthmus::local_map_faults_test {
namespace {

using test::OrderedJson;
using test::RefitInfoShape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> found(const OrderedJson& document) {
  std::vector<std::string> texts;
  for (const InputFault& fault : prove(parse_refit_info(document.dump(), "info.json")).faults)
    texts.push_back(fmt::format("{}; allowed: {}; change: {}", fault.found, fault.allowed, fault.change));
  return texts;
}

constexpr std::size_t down = 2;  // the entry of down_proj in the samples below

TEST(LocalMap, of_a_shard_that_is_taken_for_a_replica_asks_for_the_axis) {
  RefitInfoShape shape;
  shape.tp = 2;
  shape.inner = 128;
  OrderedJson document = test::make_refit_info(shape);
  EXPECT_THAT(found(document), IsEmpty());
  OrderedJson& tensors = document["nccl_reshard_refit_info"]["per_layer_params"]["model.layers.0"];
  tensors[1]["src_placements"] = {"Replicate()"};
  EXPECT_THAT(
      found(document),
      ElementsAre(
          "tensor model.layers.0.mlp.up_proj.weight on training rank 0: source claims Replicated with "
          "64 rows on dim 0, target needs 128: size not conserved (and 1 more like it); allowed: 128 "
          "on dim 0; is the source sharded on dim 0 over tp?; change: "));
}

TEST(LocalMap, that_uses_local_expert_indices_as_global_ones_names_both_regions) {
  RefitInfoShape shape;
  shape.ep = 2;
  shape.dense_layers = 0;
  OrderedJson document = test::make_refit_info(shape);
  OrderedJson& entries = document["local_maps"][1]["entries"];
  entries[down]["before"][0] = {0, 2};
  EXPECT_THAT(
      found(document),
      ElementsAre(HasSubstr("down_proj.weight on training rank 1: before [0:2, 0:3, 0:8]; allowed: a part of "
                            "[2:4, 0:3, 0:8], the region that mesh and placements give this rank")));
}

TEST(LocalMap, may_fill_another_name_from_a_tensor_when_it_says_so) {
  OrderedJson document = test::make_refit_info({});
  OrderedJson& map = document["local_maps"][1];
  OrderedJson copy = map["entries"][down];
  copy["tensor"] = copy["base"] = "model.layers.1.mlp.down_proj.weight";
  map["entries"].push_back(copy);
  EXPECT_THAT(
      found(document),
      ElementsAre(HasSubstr("target tensor model.layers.1.mlp.down_proj.weight on generation rank 0 has no "
                            "source of that name")));
  map["ties"] = {{"model.layers.1.mlp.down_proj.weight", "model.layers.0.mlp.down_proj.weight"}};
  EXPECT_THAT(found(document), IsEmpty());
}

TEST(LocalMap, of_a_training_rank_offers_each_element_once) {
  OrderedJson document = test::make_refit_info({});
  OrderedJson copy = document["local_maps"][0]["entries"][down];
  copy["base"] = "another.linear_fc2.weight";
  document["local_maps"][0]["entries"].push_back(copy);
  EXPECT_THAT(found(document), ElementsAre(HasSubstr("entries offer 48 elements for a region of 24")));
}

TEST(LocalMap, of_which_a_base_has_another_number_of_dimensions_is_named) {
  OrderedJson document = test::make_refit_info({});
  OrderedJson& entry = document["local_maps"][1]["entries"][down];
  entry["base_shape"] = {24};
  entry["base_strides"] = {1};
  entry["after"] = OrderedJson::array({{0, 24}});
  EXPECT_THAT(
      found(document),
      ElementsAre(HasSubstr("base model.layers.0.mlp.down_proj.weight has 1 dimensions, the tensor 2")));
}

TEST(LocalMap, of_each_training_rank_is_needed_once_there_is_one) {
  RefitInfoShape shape;
  shape.copies = 4;
  OrderedJson document = test::make_refit_info(shape);
  OrderedJson& maps = document["local_maps"];
  maps.erase(1);
  EXPECT_THAT(found(document),
              ElementsAre(HasSubstr("no map of training rank 1; allowed: a map of each of the 4")));
  for (int rank = 0; rank < 3; ++rank) maps.erase(0);
  const RefitInfoProof proof = prove(parse_refit_info(document.dump(), "info.json"));
  EXPECT_THAT(proof.faults, IsEmpty());
  EXPECT_THAT(proof.notes, ElementsAre(HasSubstr("no local maps of the training side are given")));
}

}  // namespace
}  // namespace isthmus::local_map_faults_test

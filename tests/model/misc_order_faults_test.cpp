// Names and order of the misc tensors (model/misc_order_faults.cpp).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit_info_faults.hpp"
#include "tests/support/refit_info_generator.hpp"

namespace isthmus::misc_order_faults_test {
namespace {

using test::OrderedJson;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

OrderedJson sample() { return test::make_refit_info({}); }

/// Of the generation rank: embed_tokens, layers.0.input_layernorm, layers.1.input_layernorm.
OrderedJson& order(OrderedJson& document) { return document["local_maps"][1]["misc_order"]; }

RefitInfoProof proven(const OrderedJson& document) {
  return prove(parse_refit_info(document.dump(), "info.json"));
}

TEST(MiscOrder, that_differs_is_shown_with_its_neighbours_on_both_sides) {
  OrderedJson document = sample();
  std::swap(order(document)[0], order(document)[1]);
  const std::vector<InputFault> faults = proven(document).faults;
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].where.key, "local_maps.1.misc_order");
  EXPECT_EQ(faults[0].found,
            "'model.layers.0.input_layernorm.weight' before 'model.embed_tokens.weight', at the start of "
            "generation "
            "rank 0 at position 0");
  EXPECT_EQ(faults[0].allowed,
            "'model.embed_tokens.weight' before 'model.layers.0.input_layernorm.weight', at the start, as "
            "misc_meta "
            "has it");
  EXPECT_THAT(proven(sample()).faults, IsEmpty());
}

TEST(MiscOrder, names_that_one_side_lacks_are_listed_before_any_order) {
  OrderedJson document = sample();
  order(document)[0] = "model.layers.0.mlp.gate.e_score_correction_bias";
  const std::vector<InputFault> faults = proven(document).faults;
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_EQ(faults[0].found,
            "1 of misc_meta not in the order of generation rank 0: 'model.embed_tokens.weight'");
  EXPECT_THAT(faults[1].found, HasSubstr("e_score_correction_bias' on generation rank 0 has no source"));
}

TEST(MiscOrder, an_output_layer_without_source_may_be_tied) {
  OrderedJson document = sample();
  order(document).push_back("output_layer.weight");
  const std::vector<InputFault> faults = proven(document).faults;
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].found,
            "target tensor 'output_layer.weight' on generation rank 0 has no source of that name: misc_meta "
            "lacks it");
  EXPECT_EQ(faults[0].change,
            "if it is tied to model.embed_tokens.weight, say so: \"ties\": {\"output_layer.weight\": "
            "\"model.embed_tokens.weight\"}");
  document["local_maps"][1]["ties"] = {{"output_layer.weight", "model.embed_tokens.weight"}};
  EXPECT_THAT(proven(document).faults, IsEmpty());
}

TEST(MiscOrder, that_is_not_given_is_a_note) {
  OrderedJson document = sample();
  document["local_maps"][1].erase("misc_order");
  EXPECT_THAT(proven(document).faults, IsEmpty());
  EXPECT_THAT(proven(document).notes, ElementsAre(HasSubstr("1 local map without misc_order")));
}

TEST(MiscOrder, names_of_the_other_path_are_notes) {
  OrderedJson document = sample();
  document["nccl_reshard_refit_info"]["misc_meta"]["mixer.up_proj.weight"] = {{"shape", {4}},
                                                                              {"dtype", "bf16"}};
  for (OrderedJson& map : document["local_maps"]) map["misc_order"].push_back("mixer.up_proj.weight");
  EXPECT_THAT(proven(document).faults, IsEmpty());
  EXPECT_THAT(proven(document).notes,
              Contains(HasSubstr("misc tensor mixer.up_proj.weight has a name of the bulk")));
}

}  // namespace
}  // namespace isthmus::misc_order_faults_test

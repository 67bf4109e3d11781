// One buffer of one rank (model/base_faults.cpp): examples with their messages, each with its accepted twin.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/refit_info_faults.hpp"
#include "tests/support/refit_info_generator.hpp"

namespace isthmus {
namespace {

using test::OrderedJson;
using test::RefitInfoShape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// One layer of experts on one training and one generation rank.
RefitInfoShape experts(std::int64_t count, std::int64_t inner, std::int64_t hidden) {
  RefitInfoShape shape;
  shape.dense_layers = 0;
  shape.experts = count;
  shape.expert_inner = inner;
  shape.hidden = hidden;
  return shape;
}

std::vector<std::string> found(const OrderedJson& document) {
  std::vector<std::string> texts;
  for (const InputFault& fault : prove(parse_refit_info(document.dump(), "info.json")).faults)
    texts.push_back(fmt::format("{}; allowed: {}; change: {}", fault.found, fault.allowed, fault.change));
  return texts;
}

/// Entries of the generation rank: gate, up, down.
OrderedJson& entries(OrderedJson& document) { return document["local_maps"][1]["entries"]; }

constexpr std::string_view w13 = "base model.layers.0.mlp.experts.w13_weight on generation rank 0";

TEST(Base, whose_halves_are_exchanged_names_the_element) {
  OrderedJson document = test::make_refit_info(experts(2, 4, 2));
  EXPECT_THAT(found(document), IsEmpty());
  std::swap(entries(document)[0]["after"], entries(document)[1]["after"]);
  EXPECT_THAT(
      found(document),
      ElementsAre(HasSubstr(fmt::format("{}: element (0,0,0): expected gate (0,0,0), found up (0,0,0); "
                                        "the two halves are exchanged",
                                        w13))));
  for (const std::size_t entry : {0U, 1U}) entries(document)[entry]["storage"] = "up_gate";
  EXPECT_THAT(found(document), IsEmpty());
}

TEST(Base, that_a_backend_repacks_is_no_place_for_canonical_bytes) {
  OrderedJson document = test::make_refit_info(experts(2, 2, 256));
  for (const std::size_t entry : {0U, 1U}) entries(document)[entry]["storage"] = "block128";
  EXPECT_THAT(
      found(document),
      ElementsAre(HasSubstr(fmt::format("target {} is in layout block128, the transfer writes canonical "
                                        "[2, 4, 256]; allowed: canonical, or up_gate for gate and up in "
                                        "one buffer; change: receive into a canonical buffer and repack",
                                        w13))));
  for (const std::size_t entry : {0U, 1U}) entries(document)[entry]["storage"] = "canonical";
  EXPECT_THAT(found(document), IsEmpty());
}

TEST(Base, with_a_slot_that_nobody_writes_keeps_an_old_expert) {
  OrderedJson document = test::make_refit_info(experts(4, 1, 1));
  OrderedJson copies = OrderedJson::array();
  for (OrderedJson& entry : entries(document)) {
    entry["base_shape"][0] = 5;
    OrderedJson copy = entry;
    copy["before"][0] = {0, 1};
    copy["after"][0] = {4, 5};
    copies.push_back(copy);
  }
  const std::vector<std::string> faults = found(document);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults[0], HasSubstr("slot 4 of rank 0 is never written; it would keep the previous version"));
  for (const OrderedJson& copy : copies) entries(document).push_back(copy);
  EXPECT_THAT(found(document), IsEmpty());
}

/// BF16 on the wire, FP8 with scales in the engine.
OrderedJson quantised() {
  OrderedJson document = test::make_refit_info(experts(2, 64, 96));
  for (OrderedJson& entry : entries(document)) {
    OrderedJson scales = entry["base_shape"];
    scales.back() = scales.back().get<int>() / 32;
    entry["dtype"] = "torch.float8_e4m3fn";
    entry["scale"] = {
        {"name", entry["base"].get<std::string>() + "_scale"}, {"shape", scales}, {"dtype", "uint8"}};
  }
  return document;
}

TEST(Base, of_fp8_receives_bf16_with_a_scale_for_each_32_elements) {
  EXPECT_THAT(found(quantised()), IsEmpty());
  OrderedJson without = quantised();
  entries(without)[2].erase("scale");
  EXPECT_THAT(found(without), ElementsAre(HasSubstr("with no scales; allowed: scales [2, 96, 2] of u8")));
  OrderedJson wrong = quantised();
  entries(wrong)[2]["scale"]["dtype"] = "float32";
  EXPECT_THAT(found(wrong), ElementsAre(HasSubstr("with scales [2, 96, 2] of f32")));
  OrderedJson sends = quantised();
  sends["local_maps"][0]["entries"][0]["dtype"] = "float8_e4m3fn";
  EXPECT_THAT(found(sends), ElementsAre(HasSubstr("is fp8_e4m3, ")));
}

TEST(Base, of_fp8_needs_whole_blocks) {
  OrderedJson document = test::make_refit_info(experts(2, 64, 40));
  for (const std::size_t entry : {0U, 1U}) {
    entries(document)[entry]["dtype"] = "fp8_e4m3";
    entries(document)[entry]["scale"] = {{"shape", {2, 128, 1}}};
  }
  const std::vector<std::string> faults = found(document);
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_THAT(faults[0], HasSubstr("40 elements of model.layers.0.mlp.experts.gate_proj.weight in the last"));
  EXPECT_THAT(faults[0], HasSubstr("multiples of 32"));
}

TEST(Base, may_be_a_strided_view) {
  OrderedJson document = test::make_refit_info(experts(2, 4, 3));
  for (OrderedJson& entry : entries(document)) {  // rows padded, and stored column by column
    const auto rows = entry["base_shape"][1].get<int>();
    entry["base_strides"] = {1000, 1, rows + 5};
  }
  EXPECT_THAT(found(document), IsEmpty());
  for (OrderedJson& entry : entries(document)) entry["base_strides"] = {1000, 1, 7};
  EXPECT_THAT(found(document),
              ElementsAre(HasSubstr("dimension 2 steps 7 elements, the dimensions inside it span 8")));
}

TEST(Base, that_holds_another_projection_than_its_name_says_is_named) {
  RefitInfoShape shape = experts(2, 3, 3);  // square, so that only names tell
  shape.gated = false;
  OrderedJson document = test::make_refit_info(shape);
  EXPECT_THAT(found(document), IsEmpty());
  std::swap(entries(document)[0]["base"], entries(document)[1]["base"]);
  EXPECT_THAT(found(document).front(), HasSubstr("down_proj, as its name says"));
}

TEST(Base, of_which_both_sides_of_an_overlap_are_named) {
  OrderedJson document = test::make_refit_info(experts(2, 4, 2));
  entries(document)[1]["after"] = entries(document)[0]["after"];
  const std::vector<std::string> faults = found(document);
  ASSERT_EQ(faults.size(), 2U);
  EXPECT_THAT(faults[0],
              HasSubstr("element (0,0,0) is written twice, by model.layers.0.mlp.experts.gate_proj.weight "
                        "and by model.layers.0.mlp.experts.up_proj.weight ([0:2, 0:4, 0:2])"));
  EXPECT_THAT(faults[1], HasSubstr("element (0,4,0) ([0:2, 4:8, 0:2]) is never written"));
}

}  // namespace
}  // namespace isthmus

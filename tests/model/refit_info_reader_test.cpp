#include "model/refit_info.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/refit_info_generator.hpp"

namespace isthmus::refit_info_reader_test {
namespace {

using test::OrderedJson;
using test::RefitInfoShape;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two stages of 2 ranks, TP2, to one engine of 2: one dense layer, one of 4 experts.
RefitInfoShape small() {
  RefitInfoShape shape;
  shape.tp = shape.ep = shape.pp = shape.generate_tp = 2;
  shape.layers = {1, 1};
  return shape;
}

RefitInfo parsed(const OrderedJson& document) { return parse_refit_info(document.dump(2), "info.json"); }

std::string message(const OrderedJson& document) {
  try {
    parsed(document);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

OrderedJson& description(OrderedJson& document) { return document["nccl_reshard_refit_info"]; }
OrderedJson& first_tensor(OrderedJson& document) {
  return description(document)["per_layer_params"]["model.layers.0"][0];
}

TEST(RefitInfo, is_read_with_both_sides_of_each_tensor_in_transfer_order) {
  const RefitInfo info = parsed(test::make_refit_info(small()));
  EXPECT_THAT(info.layer_names, ElementsAre("model.layers.0", "model.layers.1"));
  EXPECT_EQ(info.train_ranks, 4);
  EXPECT_EQ(info.generate_ranks, 2);
  EXPECT_EQ(info.stages, 2);
  EXPECT_EQ(info.generate_tp, 2);
  ASSERT_EQ(info.tensors.size(), 6U);
  const BulkTensor& down = info.tensors[5];
  EXPECT_EQ(down.name, "model.layers.1.mlp.experts.down_proj.weight");
  EXPECT_EQ(down.projection, "down_proj");
  EXPECT_EQ(down.stage, 1);
  EXPECT_EQ(down.source, (Layout{{4, 3, 8}, Dtype::bf16, contiguous_mesh({2}, {0}), {{0}}, ChunkRule::ceil}));
  EXPECT_EQ(down.target, (Layout{{4, 3, 8}, Dtype::bf16, contiguous_mesh({2}, {2}), {{2}}, ChunkRule::ceil}));
  EXPECT_THAT(down.source_axes, ElementsAre("ep"));
  EXPECT_EQ(down.where.key, "nccl_reshard_refit_info.per_layer_params.model.layers.1.2");
  EXPECT_GT(down.where.line, 1);
  ASSERT_EQ(info.misc.size(), 3U);
  EXPECT_EQ(info.misc[1].name, "model.layers.0.input_layernorm.weight");
  EXPECT_EQ(info.local.maps.size(), 6U);
  EXPECT_EQ(info.local.misc_orders.size(), 1U);
  EXPECT_THAT(info.notes, IsEmpty());
}

RC_GTEST_PROP(RefitInfo, spellings_of_placements_meshes_and_dtypes_mean_the_same, ()) {
  RefitInfoShape shape = *test::any_refit_info_shape();
  const RefitInfo info = parsed(test::make_refit_info(shape));
  shape.spelling = 0;
  const RefitInfo plain = parsed(test::make_refit_info(shape));
  RC_ASSERT(info.tensors.size() == plain.tensors.size());
  for (std::size_t i = 0; i < info.tensors.size(); ++i) {
    RC_ASSERT(info.tensors[i].source == plain.tensors[i].source);
    RC_ASSERT(info.tensors[i].target == plain.tensors[i].target);
  }
  for (std::size_t i = 0; i < info.misc.size(); ++i) RC_ASSERT(info.misc[i].shape == plain.misc[i].shape);
}

TEST(RefitInfo, placements_are_read_in_the_ways_people_print_them) {
  for (const OrderedJson& shard :
       {OrderedJson("Shard(0)"), OrderedJson("Shard(dim=0)"), OrderedJson("shard(0)"),
        OrderedJson("Sharded(0)"), OrderedJson("Shard(-2)"), OrderedJson{{"shard", 0}},
        OrderedJson{{"type", "Shard"}, {"dim", 0}}}) {
    OrderedJson document = test::make_refit_info(small());
    first_tensor(document)["src_placements"][0] = shard;
    EXPECT_EQ(parsed(document).tensors[0].source.placements[0], Placement{0}) << shard;
  }
  for (const OrderedJson& replica : {OrderedJson("Replicate()"), OrderedJson("replicated"),
                                     OrderedJson(nullptr), OrderedJson{{"type", "replicate"}}}) {
    OrderedJson document = test::make_refit_info(small());
    first_tensor(document)["src_placements"][0] = replica;
    EXPECT_EQ(parsed(document).tensors[0].source.placements[0], Placement{}) << replica;
  }
}

TEST(RefitInfo, keys_that_are_not_known_are_notes) {
  OrderedJson document = test::make_refit_info(small());
  description(document)["version"] = 2;
  first_tensor(document)["requires_grad"] = false;
  EXPECT_THAT(parsed(document).notes,
              ElementsAre(HasSubstr("'requires_grad' of tensors"), HasSubstr("'version'")));
}

struct Bad {
  void (*change)(OrderedJson& document);
  std::string says;
};

std::vector<Bad> bad_descriptions() {
  return {
      {[](OrderedJson& d) { first_tensor(d)["dtype"] = "bf17"; }, "model.layers.0.0.dtype: found 'bf17'"},
      {[](OrderedJson& d) {
         first_tensor(d)["global_shape"] = {1 << 30, 1 << 30, 4};
       },
       "at most 2^60"},
      {[](OrderedJson& d) {
         first_tensor(d)["global_shape"] = {1, 1, 1, 1, 1};
       },
       "global_shape"},
      {[](OrderedJson& d) {
         first_tensor(d)["global_shape"] = {0, 4};
       },
       "whole number from 1"},
      {[](OrderedJson& d) { first_tensor(d)["src_placements"][0] = "Partial()"; },
       "src_placements.0: found 'Partial()'"},
      {[](OrderedJson& d) { first_tensor(d)["src_placements"][0] = "Shard(-3)"; }, "does not have"},
      {[](OrderedJson& d) {
         first_tensor(d)["src_mesh_info"]["ranks"] = {-1, 0};
       },
       "src_mesh_info.ranks.0: found -1"},
      {[](OrderedJson& d) {
         first_tensor(d)["src_mesh_info"]["shape"] = {1 << 20, 1 << 20};
       },
       "at most 1048576 ranks"},
      {[](OrderedJson& d) {
         first_tensor(d)["src_mesh_info"] = {{0, 1}, {2}};
       },
       "a list of 1 items beside one of 2"},
      {[](OrderedJson& d) {
         first_tensor(d)["src_mesh_info"]["dim_map"] = {{"tp", 5}};
       },
       "dim_map.tp: found 5"},
      {[](OrderedJson& d) { first_tensor(d).erase("name"); }, "name: found nothing"},
      {[](OrderedJson& d) { first_tensor(d).erase("dst_mesh_info"); }, "dst_mesh_info: found nothing"},
      {[](OrderedJson& d) { description(d)["layer_names"].push_back("model.layers.7"); },
       "per_layer_params lacks"},
      {[](OrderedJson& d) { description(d)["layer_names"].erase(0); }, "a layer that layer_names lacks"},
      {[](OrderedJson& d) { description(d)["layer_names"].push_back("model.layers.0"); }, "twice"},
      {[](OrderedJson& d) { description(d)["train_world_size"] = 0; }, "train_world_size: found 0"},
      {[](OrderedJson& d) {
         description(d)["misc_meta"] = {{"a", 5}};
       },
       "misc_meta.a: found 5"},
      {[](OrderedJson& d) { d["more"] = 1; }, "more: found an unknown key"},
  };
}

TEST(RefitInfo, that_cannot_be_read_names_file_line_and_key) {
  for (const Bad& bad : bad_descriptions()) {
    OrderedJson document = test::make_refit_info(small());
    bad.change(document);
    EXPECT_THAT(message(document), HasSubstr(bad.says));
    EXPECT_THAT(message(document), HasSubstr("info.json"));
  }
}

TEST(RefitInfo, is_told_from_other_json_by_its_keys) {
  OrderedJson document = test::make_refit_info(small());
  EXPECT_TRUE(find_refit_info(document.dump(), "a.json"));
  EXPECT_TRUE(find_refit_info(" \n" + description(document).dump(), "a.json"));
  for (const char* other :
       {"", "[]", "{}", R"({"train": {"num_gpus": 8}})", R"({"name": "per_layer_params"})"})
    EXPECT_FALSE(find_refit_info(other, "a.json")) << other;
}

RC_GTEST_PROP(RefitInfo, damaged_texts_are_input_errors_at_worst, ()) {
  std::string text = test::make_refit_info(small()).dump();
  for (int changes = *rc::gen::inRange(1, 4); changes > 0; --changes) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    const std::string replacement = *rc::gen::element<std::string>(
        "", "9", "-", "[", "]", "{", "}", "\"", ",", "1e9", "null", "99999999999999999999");
    text.replace(at, 1, replacement);
  }
  try {
    parse_refit_info(text, "info.json");
    RC_TAG("read");
  } catch (const InputError&) {
    RC_TAG("refused");
  }
}

}  // namespace
}  // namespace isthmus::refit_info_reader_test

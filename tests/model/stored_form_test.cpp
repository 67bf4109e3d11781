#include "model/stored_form.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/precision.hpp"
#include "tests/model/families/dense_case.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StoredFormTest : public ::testing::Test {
 protected:
  static nlohmann::json with(const nlohmann::json& quantization) {
    nlohmann::json config = testing::dense_case_config("qwen3");
    config["quantization_config"] = quantization;
    return config;
  }
  StoredForm read(const nlohmann::json& config) const {
    return read_stored_form(folder.write("config.json", config.dump()));
  }
  std::string refusal(const nlohmann::json& config) const {
    try {
      read(config);
      return "accepted";
    } catch (const InputError& error) {
      return error.what();
    }
  }

  nlohmann::json fp8 = {{"quant_method", "fp8"}, {"weight_block_size", {128, 128}}};
  TemporaryFolder folder;
};

TEST_F(StoredFormTest, without_a_quantization_is_the_stored_dtype) {
  EXPECT_EQ(read(testing::dense_case_config("qwen3")), StoredForm{});
  EXPECT_EQ(read(with(nullptr)), StoredForm{});
  TensorPattern pattern;
  pattern.name = "a.weight";
  pattern.shape = {3};
  pattern.stored = Dtype::f32;
  Inventory inventory;
  inventory.patterns = {pattern};
  EXPECT_EQ(precision_totals(as_stored(inventory, {})).bytes, Bytes{12});
}

TEST_F(StoredFormTest, of_fp8_leaves_out_what_the_list_names_and_what_lies_below_it) {
  fp8["modules_to_not_convert"] = {"lm_head", "model.layers.0.mlp", "model.layers.1.mlp.up"};
  const Inventory inventory = testing::read_config(with(fp8));
  const Inventory stored = as_stored(inventory, read(with(fp8)));
  std::vector<int> plain, quantised;
  for (const TensorPattern& pattern : stored.patterns) {
    if (pattern.name != "model.layers.{l}.mlp.up_proj.weight") continue;
    std::vector<int>& layers = pattern.wire == Dtype::fp8_e4m3 ? quantised : plain;
    layers.insert(layers.end(), pattern.layers.begin(), pattern.layers.end());
  }
  EXPECT_THAT(plain, ElementsAre(0));
  EXPECT_THAT(quantised, ElementsAre(1));  // "model.layers.1.mlp.up" names no whole part
  EXPECT_EQ(precision_totals(as_stored(inventory, {true, {}})).tensor_count,
            precision_totals(in_precision(inventory, WirePrecision::fp8)).tensor_count);
}

TEST_F(StoredFormTest, of_any_other_kind_is_refused_with_its_key) {
  EXPECT_EQ(refusal(with(fp8)), "accepted");
  EXPECT_THAT(refusal(with({{"quant_method", "mxfp4"}})),
              HasSubstr("quantization_config.quant_method: found \"mxfp4\"; allowed: \"fp8\""));
  EXPECT_THAT(refusal(with({{"quant_method", "fp8"}})),
              HasSubstr("quantization_config.weight_block_size: found nothing"));
  EXPECT_THAT(refusal(with("fp8")), HasSubstr("quantization_config: found \"fp8\""));
  fp8["modules_to_not_convert"] = {1};
  EXPECT_THAT(refusal(with(fp8)), HasSubstr("modules_to_not_convert"));
  EXPECT_THAT(refusal({{"a.weight", {{"shape", {1}}, {"dtype", "BF16"}}}}), HasSubstr("no configuration"));
}

}  // namespace
}  // namespace isthmus

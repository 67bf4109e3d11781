// Quantised forms of published models against published figures: the FP8 payloads of models.md's table as
// expected_totals.json has them, the six published bulk shares, and checkpoints to the last byte.

#include <gtest/gtest.h>

#include "model/checkpoint.hpp"
#include "model/precision.hpp"
#include "model/stored_form.hpp"
#include "tests/support/published_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

PrecisionTotals totals_in(const std::string& model, WirePrecision precision, PayloadOptions options = {}) {
  return precision_totals(in_precision(read_inventory(published_config(model)), precision), options);
}

class PublishedPrecisions : public ::testing::Test {
 protected:
  void SetUp() override {
    if (expected.is_null()) GTEST_SKIP() << "no data in " << data_folder() << "; set ISTHMUS_DATA";
  }

  nlohmann::json expected = expected_totals();
};

struct Row {
  std::string model;
  std::int64_t bulk, misc, scales;
  double percent, percent_bf16_attention;
};

TEST_F(PublishedPrecisions, fp8_payloads_are_exact) {
  const std::vector<Row> rows{
      {"qwen3-30b-a3b", 28'991'029'248, 2'183'516'160, 7'299'072, 92.9958, 90.3702},
      {"qwen3-235b-a22b", 227'096'395'776, 9'349'059'584, 57'079'808, 96.0460, 93.3991},
      {"deepseek-v3", 655'097'856'000, 18'052'726'112, 163'352'928, 97.3182, 95.6960},
      {"kimi-k2", 1'015'082'385'408, 14'090'818'400, 249'980'768, 98.6309, 98.0434}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.model);
    const PrecisionTotals sum = totals_in(row.model, WirePrecision::fp8);
    EXPECT_EQ(sum.bulk_bytes.value, row.bulk);
    EXPECT_EQ(sum.misc_bytes.value, row.misc);
    EXPECT_EQ(sum.scale_bytes.value, row.scales);
    EXPECT_EQ(sum.bytes, sum.bulk_bytes + sum.misc_bytes);
    EXPECT_NEAR(100 * sum.bulk_fraction(), row.percent, 0.5e-4);
    const PrecisionTotals attention = totals_in(row.model, WirePrecision::fp8_bf16_attention);
    EXPECT_NEAR(100 * attention.bulk_fraction(), row.percent_bf16_attention, 0.5e-4);
    const nlohmann::json& listed = expected.at("models").at(row.model);
    EXPECT_EQ(sum.bulk_bytes.value, listed.at("fp8_block128_payload").at("bulk_bytes"));
    EXPECT_EQ(sum.misc_bytes.value, listed.at("fp8_block128_payload").at("misc_bytes"));
    const nlohmann::json& plain = listed.at("fp8_block128_payload_bf16_attention");
    EXPECT_EQ(attention.bulk_bytes.value, plain.at("bulk_bytes"));
    EXPECT_EQ(attention.misc_bytes.value, plain.at("misc_bytes"));
  }
}

TEST_F(PublishedPrecisions, of_the_fp8_variants_are_exact) {
  EXPECT_GE(expected.at("variants").size(), 1U);
  for (const auto& [variant, figures] : expected.at("variants").items()) {
    SCOPED_TRACE(variant);
    const std::int64_t weights = figures.at("weights");
    EXPECT_EQ(totals(read_inventory(published_config(variant))).parameters, weights);
    const std::string base = figures.at("base_model");
    const Inventory stored =
        as_stored(read_inventory(published_config(variant)), read_stored_form(published_config(variant)));
    for (const PrecisionTotals& sum : {totals_in(base, WirePrecision::fp8), precision_totals(stored)}) {
      EXPECT_EQ(sum.bytes.value, figures.at("payload_bytes"));
      EXPECT_EQ(sum.bulk_bytes.value, figures.at("bulk_bytes"));
      EXPECT_EQ(sum.misc_bytes.value, figures.at("misc_bytes"));
      EXPECT_EQ(sum.tensor_count, figures.at("tensor_count"));
      EXPECT_EQ(sum.bulk_tensor_count, figures.at("bulk_tensor_count"));
      EXPECT_EQ(sum.scale_tensor_count, figures.at("scale_tensor_count"));
      EXPECT_EQ(sum.scale_bytes.value, figures.at("scale_bytes"));
      EXPECT_NEAR(100 * sum.bulk_fraction(), figures.at("bulk_percent"), 0.5e-4);
    }
  }
}

TEST_F(PublishedPrecisions, bulk_shares_follow_to_the_printed_digit) {
  struct Share {
    std::string model;
    WirePrecision precision;
    double percent;
  };
  for (const Share& share :
       {Share{"qwen3-4b", WirePrecision::bf16, 66.9}, Share{"qwen3-30b-a3b", WirePrecision::bf16, 95.0},
        Share{"qwen3-30b-a3b", WirePrecision::fp8, 93.0}, Share{"deepseek-v3", WirePrecision::bf16, 97.6},
        Share{"qwen3.5-397b-a17b", WirePrecision::bf16, 97.4},
        Share{"nemotron3-ultra-550b-a55b", WirePrecision::bf16, 93.8}}) {
    const PrecisionTotals sum = totals_in(share.model, share.precision, {false, true});
    EXPECT_NEAR(100 * sum.bulk_fraction(), share.percent, 0.05) << share.model;
  }
}

TEST_F(PublishedPrecisions, of_bf16_agree_with_the_totals_and_count_mtp_on_demand) {
  for (const auto& [model, figures] : expected.at("models").items()) {
    SCOPED_TRACE(model);
    const PrecisionTotals sum = totals_in(model, WirePrecision::bf16);
    EXPECT_EQ(sum.bytes.value, figures.at("bf16_bytes"));
    EXPECT_EQ(sum.bulk_bytes.value, figures.at("bulk_bytes"));
    EXPECT_EQ(sum.misc_bytes.value, figures.at("misc_bytes"));
    EXPECT_EQ(sum.tensor_count, figures.at("tensor_count"));
    EXPECT_EQ(sum.bulk_tensor_count, figures.at("bulk_tensor_count"));
    const PrecisionTotals with_mtp = totals_in(model, WirePrecision::bf16, {true, false});
    EXPECT_EQ(with_mtp.bytes.value - sum.bytes.value, 2 * figures.at("mtp_params").get<std::int64_t>());
    EXPECT_EQ(with_mtp.tensor_count - sum.tensor_count, figures.at("mtp_tensor_count"));
    std::int64_t unmatched = 0;
    for (const TensorPattern& pattern : read_inventory(published_config(model)).patterns) {
      if (is_expert_unknown_to_bulk_rule(pattern)) unmatched += 2 * pattern.count() * pattern.elements();
    }
    EXPECT_EQ(unmatched, figures.value("unmatched_routed_bytes", std::int64_t{0}));
    if (!figures.contains("bulk_percent_with_mtp_as_misc")) continue;
    const PrecisionTotals all = totals_in(model, WirePrecision::bf16, {true, true});
    EXPECT_NEAR(100 * all.bulk_fraction(), figures.at("bulk_percent_with_mtp_as_misc"), 0.5e-4);
  }
}

/// The published configuration with the quantization_config that models.md quotes.
std::filesystem::path with_fp8(const TemporaryFolder& folder, const std::string& model) {
  std::ifstream file(published_config(model));
  nlohmann::json config = nlohmann::json::parse(file);
  config["quantization_config"] = {{"quant_method", "fp8"},
                                   {"fmt", "e4m3"},
                                   {"weight_block_size", {128, 128}},
                                   {"activation_scheme", "dynamic"}};
  return folder.write("config.json", config.dump());
}

std::int64_t elements_of(const Inventory& inventory, Dtype dtype) {
  std::int64_t sum = 0;
  for (const TensorPattern& pattern : inventory.patterns)
    sum += pattern.wire == dtype ? pattern.count() * pattern.elements() : 0;
  return sum;
}

TEST_F(PublishedPrecisions, of_the_fp8_checkpoints_are_exact) {
  const TemporaryFolder folder;
  const std::filesystem::path deepseek = with_fp8(folder, "deepseek-v3");
  const Inventory stored = as_stored(read_inventory(deepseek), read_stored_form(deepseek));
  EXPECT_EQ(elements_of(stored, Dtype::fp8_e4m3), 680'571'043'840);
  EXPECT_EQ(elements_of(stored, Dtype::bf16), 3'918'786'560);
  EXPECT_EQ(elements_of(stored, Dtype::f32), 41'555'600);
  EXPECT_EQ(precision_totals(stored, {true, true}).bytes.value, 688'574'839'360);
  const std::filesystem::path kimi = with_fp8(folder, "kimi-k2");
  const PrecisionTotals sum = precision_totals(as_stored(read_inventory(kimi), read_stored_form(kimi)));
  EXPECT_EQ(sum.bytes.value, 1'029'173'256'720 - 6'832);  // 61 rotary tables are no parameters
  EXPECT_EQ(sum.tensor_count, 139'644 - 61);
}

TEST_F(PublishedPrecisions, of_the_plain_checkpoints_are_exact) {
  for (const std::string model : {"qwen3.5-397b-a17b", "qwen3.8-2.4t-a95b"}) {
    const std::filesystem::path config = published_config(model);
    const PrecisionTotals sum =
        precision_totals(as_stored(read_inventory(config), read_stored_form(config)), {true, true});
    EXPECT_EQ(sum.bytes.value, expected.at("models").at(model).at("published_checkpoint_bytes")) << model;
  }
}

}  // namespace
}  // namespace isthmus

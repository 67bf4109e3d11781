#include "report/inventory.hpp"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/checkpoint.hpp"
#include "model/precision.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Inventory deepseek() { return read_inventory(project_folder() / "scenarios/models/deepseek-v3.json"); }

nlohmann::json document(const Inventory& travelling, InventoryView view) {
  view.json = true;
  return nlohmann::json::parse(inventory_document(travelling, view));
}

TEST(InventoryDocument, lists_every_tensor_once_by_its_name) {
  for (const WirePrecision precision : {WirePrecision::bf16, WirePrecision::fp8}) {
    const nlohmann::json json =
        document(in_precision(deepseek(), precision), {"bf16", {false, true}, true, true});
    std::set<std::string> names;
    std::int64_t main = 0, bytes = 0;
    for (const nlohmann::json& tensor : json["tensors"]) {
      EXPECT_TRUE(names.insert(tensor["name"]).second) << tensor["name"];
      if (tensor["role"] == "mtp" || tensor["role"] == "vision") continue;
      ++main;
      bytes += tensor["bytes"].get<std::int64_t>();
    }
    EXPECT_EQ(main, json["tensor_count"]);
    EXPECT_EQ(bytes, json["bytes"]);
    EXPECT_TRUE(names.contains("model.layers.60.mlp.experts.255.down_proj.weight"));
    EXPECT_EQ(names.contains("model.layers.60.mlp.experts.255.down_proj.weight_scale_inv"),
              precision == WirePrecision::fp8);
  }
}

TEST(InventoryDocument, text_and_json_list_the_same_tensors) {
  const std::string text = inventory_document(deepseek(), {"bf16", {false, true}, true, false});
  const nlohmann::json json = document(deepseek(), {"bf16", {false, true}, true, true});
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_EQ(static_cast<std::size_t>(lines), json["tensors"].size() + 3);  // a blank line and the totals
}

TEST(InventoryDocument, keeps_the_keys_of_the_totals) {
  const nlohmann::json json = document(deepseek(), {});
  const InventoryTotals sum = totals(deepseek());
  EXPECT_EQ(json["parameters"], sum.parameters);
  EXPECT_EQ(json["bytes"], sum.bytes.value);
  EXPECT_EQ(json["bulk_bytes"], sum.bulk_bytes.value);
  EXPECT_EQ(json["misc_bytes"], sum.misc_bytes.value);
  EXPECT_EQ(json["bulk_fraction"], sum.bulk_fraction());
  EXPECT_EQ(json["tensor_count"], sum.tensor_count);
  EXPECT_EQ(json["payload_bytes"], sum.payload_bytes.value);
  EXPECT_EQ(json["payload_bulk_fraction"], sum.payload_bulk_fraction());
  EXPECT_EQ(json["patterns"].size(), deepseek().patterns.size());
  EXPECT_FALSE(json.contains("tensors"));
}

TEST(InventoryDocument, counts_mtp_into_the_payload_when_told_to) {
  const nlohmann::json without = document(deepseek(), {});
  const nlohmann::json with = document(deepseek(), {"bf16", {true, true}, false, true});
  EXPECT_EQ(with["payload_bytes"].get<std::int64_t>() - without["payload_bytes"].get<std::int64_t>(),
            2 * 13'463'426'304);
  EXPECT_EQ(with["bytes"], without["bytes"]);
}

TEST(InventoryDocument, shows_patterns_with_the_bulk_share_unless_told_otherwise) {
  const std::string text = inventory_document(in_precision(deepseek(), WirePrecision::fp8), {.form = "fp8"});
  EXPECT_THAT(text, HasSubstr("model.layers.{l}.mlp.experts.{e}.gate_proj.weight_scale_inv "));
  EXPECT_THAT(text, HasSubstr("bytes in fp8: bulk 655097856000, misc 18052726112; bulk 97.32 %"));
  EXPECT_THAT(text, HasSubstr("of which scales: 163352928 bytes in 45032 tensors"));
  EXPECT_THAT(text, Not(HasSubstr("note:")));
}

TEST(InventoryDocument, reports_experts_that_the_bulk_rule_misses) {
  TensorPattern expert;
  expert.name = "model.layers.{l}.moe.experts.{e}.w1.weight";
  expert.shape = {4, 8};
  expert.layers = {0, 1};
  expert.experts = 3;
  Inventory inventory;
  inventory.patterns = {expert};
  EXPECT_THAT(inventory_document(inventory, {}),
              HasSubstr("note: experts such as model.layers.{l}.moe.experts"));
  EXPECT_EQ(document(inventory, {})["unmatched_expert_bytes"], 2 * 4 * 8 * 6);
  inventory.patterns.front().role = Role::bulk;
  EXPECT_THAT(inventory_document(inventory, {}), Not(HasSubstr("note:")));
}

}  // namespace
}  // namespace isthmus::report

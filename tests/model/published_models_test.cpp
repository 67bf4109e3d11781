// The inventories of published models against published figures. The data lie outside the repository: in
// $ISTHMUS_DATA, else in ../shared/data. Without them the tests are skipped.
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/checkpoint.hpp"
#include "tests/model/families/family_testing.hpp"
#include "tests/support/published_data.hpp"
#include "tests/support/tensor_names.hpp"

namespace isthmus {
namespace {

namespace fs = std::filesystem;

fs::path models_folder() { return data_folder() / "models"; }

Inventory read_model(const std::string& model) {
  return read_model_config(models_folder() / model / "config.json");
}

bool by_name(const TensorPattern& pattern) { return pattern.role == Role::bulk; }

// Kimi K3 as one would wish it: w1, w3, w2 taken for gate, up, down, the latent projections left in misc.
bool mapped(const TensorPattern& pattern) {
  if (pattern.name.find("routed_expert_") != std::string::npos) return false;
  return pattern.role == Role::bulk || pattern.name.find(".experts.{e}.w") != std::string::npos;
}

struct BulkFigures {
  std::int64_t bulk_bytes = 0, misc_bytes = 0, bulk_tensors = 0, parts = 0;
};

BulkFigures bulk_figures(const Inventory& inventory,
                         const std::function<bool(const TensorPattern&)>& is_bulk) {
  BulkFigures figures;
  for (const RefitTensor& tensor : refit_tensors(inventory, {}, is_bulk)) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    (tensor.role == Role::bulk ? figures.bulk_bytes : figures.misc_bytes) += 2 * elements;
    figures.bulk_tensors += tensor.role == Role::bulk ? 1 : 0;
    figures.parts += tensor.parts;
  }
  return figures;
}

struct RoleFigures {
  std::int64_t parameters = 0, tensors = 0, stored_bytes = 0;
};

RoleFigures role_figures(const Inventory& inventory, Role role) {
  RoleFigures figures;
  for (const TensorPattern& pattern : inventory.patterns) {
    const bool main = role == Role::misc && pattern.role == Role::bulk;
    if (pattern.role != role && !main) continue;
    figures.parameters += pattern.count() * pattern.elements();
    figures.tensors += pattern.count();
    figures.stored_bytes += pattern.count() * pattern.elements() * element_size(pattern.stored).value;
  }
  return figures;
}

std::int64_t routed_expert_parameters(const Inventory& inventory) {
  std::int64_t sum = 0;
  for (const TensorPattern& pattern : inventory.patterns) {
    if (pattern.experts == 0 || pattern.role == Role::mtp || pattern.name.ends_with("_bias")) continue;
    sum += pattern.count() * pattern.elements();
  }
  return sum;
}

class PublishedModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (expected.is_null()) GTEST_SKIP() << "no data in " << models_folder() << "; set ISTHMUS_DATA";
  }

  nlohmann::json expected = expected_totals();
};

TEST_F(PublishedModels, totals_are_exact) {
  EXPECT_GE(expected.at("models").size(), 18U);
  for (const auto& [model, figures] : expected.at("models").items()) {
    SCOPED_TRACE(model);
    const Inventory inventory = read_model(model);
    const InventoryTotals sum = totals(inventory);
    EXPECT_EQ(inventory.model, model);
    EXPECT_EQ(sum.parameters, figures.at("params"));
    EXPECT_EQ(sum.bytes.value, figures.at("bf16_bytes"));
    EXPECT_EQ(sum.bulk_bytes.value, figures.at("bulk_bytes"));
    EXPECT_EQ(sum.misc_bytes.value, figures.at("misc_bytes"));
    EXPECT_EQ(sum.tensor_count, figures.at("tensor_count"));
    EXPECT_NEAR(100 * sum.bulk_fraction(), figures.at("bulk_percent"), 0.5e-4);
    EXPECT_EQ(sum.payload_bytes.value,
              figures.value("payload_bytes_with_vision", figures.at("bf16_bytes").get<std::int64_t>()));
    EXPECT_EQ(sum.payload_bulk_bytes.value, figures.at("bulk_bytes"));
    EXPECT_NEAR(100 * sum.payload_bulk_fraction(),
                figures.value("bulk_percent_with_vision", figures.at("bulk_percent").get<double>()), 0.5e-4);
  }
}

TEST_F(PublishedModels, mtp_vision_stored_bytes_and_experts_are_exact) {
  for (const auto& [model, figures] : expected.at("models").items()) {
    SCOPED_TRACE(model);
    const Inventory inventory = read_model(model);
    EXPECT_EQ(role_figures(inventory, Role::mtp).parameters, figures.at("mtp_params"));
    EXPECT_EQ(role_figures(inventory, Role::mtp).tensors, figures.at("mtp_tensor_count"));
    EXPECT_EQ(role_figures(inventory, Role::vision).parameters, figures.at("vision_params"));
    EXPECT_EQ(role_figures(inventory, Role::vision).tensors, figures.at("vision_tensor_count"));
    EXPECT_EQ(role_figures(inventory, Role::misc).stored_bytes, figures.at("stored_bytes_main"));
    EXPECT_EQ(routed_expert_parameters(inventory), figures.at("routed_expert_params"));
  }
}

TEST_F(PublishedModels, grouped_tensors_are_exact) {
  for (const auto& [model, figures] : expected.at("models").items()) {
    SCOPED_TRACE(model);
    const BulkFigures grouped = bulk_figures(read_model(model), by_name);
    EXPECT_EQ(grouped.bulk_tensors, figures.at("grouped_bulk_tensor_count"));
    EXPECT_EQ(grouped.bulk_bytes, figures.at("bulk_bytes"));
    EXPECT_EQ(grouped.misc_bytes, figures.at("misc_bytes"));
  }
}

TEST_F(PublishedModels, kimi_k3_with_its_experts_mapped_is_exact) {
  const nlohmann::json& figures = expected.at("models").at("kimi-k3").at("mapped");
  const BulkFigures grouped = bulk_figures(read_model("kimi-k3"), mapped);
  EXPECT_EQ(grouped.bulk_tensors, figures.at("grouped_bulk_tensor_count"));
  EXPECT_EQ(grouped.bulk_bytes, figures.at("bulk_bytes"));
  EXPECT_EQ(grouped.misc_bytes, figures.at("misc_bytes"));
}

// (name, shape, dtype, role) -> (tensors, parameters)
using Rows = std::map<std::tuple<std::string, std::string, std::string, std::string>,
                      std::pair<std::int64_t, std::int64_t>>;

Rows read_rows(const fs::path& path) {
  Rows rows;
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name, shape, dtype, role, count, parameters;
    for (std::string* field : {&name, &shape, &dtype, &role, &count, &parameters})
      std::getline(fields, *field, '\t');
    rows[{name, shape, dtype, role}] = {std::stoll(count), std::stoll(parameters)};
  }
  return rows;
}

// Patterns of one name, shape, dtype and role are one row (Kimi K3: o_proj of both kinds of attention).
Rows rows_of(const Inventory& inventory) {
  Rows rows;
  for (const TensorPattern& pattern : inventory.patterns) {
    const std::string dtype = pattern.stored == Dtype::f32 ? "F32" : "BF16";
    std::string shape;
    for (const std::int64_t extent : pattern.shape)
      shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    auto& [count, parameters] =
        rows[{pattern.name, "[" + shape + "]", dtype, std::string(to_string(pattern.role))}];
    count += pattern.count();
    parameters += pattern.count() * pattern.elements();
  }
  return rows;
}

TEST_F(PublishedModels, inventories_agree_row_by_row) {
  for (const auto& [model, figures] : expected.at("models").items()) {
    SCOPED_TRACE(model);
    const Rows listed = read_rows(models_folder() / model / "grouped.tsv");
    const Rows found = rows_of(read_model(model));
    EXPECT_GT(listed.size(), 10U);
    for (const auto& [key, value] : listed) {
      EXPECT_TRUE(found.contains(key)) << "missing: " << std::get<0>(key) << " " << std::get<1>(key);
      const auto match = found.find(key);
      EXPECT_EQ(match == found.end() ? value : match->second, value) << std::get<0>(key);
    }
    for (const auto& [key, value] : found)
      EXPECT_TRUE(listed.contains(key)) << "too much: " << std::get<0>(key);
  }
}

TEST_F(PublishedModels, the_stored_form_does_not_change_the_model) {
  Inventory quantized = read_model("qwen3-30b-a3b-fp8");
  quantized.model = "qwen3-30b-a3b";
  EXPECT_EQ(quantized, read_model("qwen3-30b-a3b"));
}

// The model file of NCCL M2N's benchmark lists every tensor of Qwen3-32B.
TEST_F(PublishedModels, a_published_manifest_is_the_inventory_of_its_configuration) {
  const fs::path file = models_folder().parent_path() / "m2n_configs" / "qwen3-32b.model.json";
  if (!fs::exists(file)) GTEST_SKIP() << "no " << file;
  const Inventory manifest = read_inventory(file), inventory = read_model("qwen3-32b");
  EXPECT_EQ(manifest.layers, inventory.layers);
  EXPECT_EQ(rows_of(manifest), rows_of(inventory));
}

// Every tensor of the inventory, each with its full name.
std::string manifest_of(const Inventory& inventory) {
  nlohmann::json manifest;
  testing::for_each_tensor(inventory, [&](const std::string& name, const TensorPattern& pattern) {
    manifest[name] = {{"shape", pattern.shape}, {"dtype", pattern.stored == Dtype::f32 ? "F32" : "BF16"}};
  });
  return manifest.dump();
}

TEST_F(PublishedModels, a_list_of_all_tensors_gives_the_same_inventory) {
  for (const std::string model :
       {"deepseek-v3", "qwen3.5-397b-a17b", "nemotron3-super-120b-a12b", "gpt-oss-120b"}) {
    const Inventory inventory = read_model(model);
    const testing::TemporaryFile file(manifest_of(inventory));
    const Inventory listed = read_inventory(file.path());
    EXPECT_EQ(listed.layers, inventory.layers) << model;
    EXPECT_EQ(listed.experts, inventory.experts) << model;
    EXPECT_EQ(rows_of(listed), rows_of(inventory)) << model;
  }
}

TEST_F(PublishedModels, refit_tensors_of_kimi_k3_stay_grouped) {
  EXPECT_LT(refit_tensors(read_model("kimi-k3"), {true, true}, by_name).size(), 3'000U);  // of 249,924
}

}  // namespace
}  // namespace isthmus

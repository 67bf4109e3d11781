#include "model/inventory.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/model/families/dense_case.hpp"

namespace isthmus {
namespace {

using testing::dense_case_config;
using testing::refusal;
using testing::TemporaryFile;

std::string refusal_of_text(const std::string& text) {
  const TemporaryFile file(text);
  try {
    read_model_config(file.path());
    return "accepted";
  } catch (const InputError& error) {
    EXPECT_EQ(error.where().file, file.path().string());
    return std::string(error.what()).substr(file.path().string().size());
  }
}

void expect_refused(const nlohmann::json& config, const std::string& message) {
  EXPECT_NE(refusal(config).find(message), std::string::npos)
      << refusal(config) << "\nshould say: " << message;
}

TEST(Role, follows_the_published_name_rule) {
  const std::vector<std::pair<std::string, Role>> cases{
      {"model.embed_tokens.weight", Role::misc},
      {"model.layers.3.mlp.gate_proj.weight", Role::bulk},
      {"model.layers.3.mlp.up_proj.weight", Role::bulk},
      {"model.layers.3.mlp.down_proj.weight", Role::bulk},
      {"model.layers.3.mlp.experts.17.down_proj.weight", Role::bulk},
      {"model.layers.3.mlp.experts.gate_up_proj", Role::bulk},
      {"model.layers.3.mlp.experts.down_proj", Role::bulk},
      {"model.layers.3.mlp.gate_up_proj.weight", Role::bulk},  // ends in up_proj.weight
      {"model.layers.3.mlp.experts.down_proj_bias", Role::misc},
      {"model.layers.3.mlp.down_proj.weight_scale_inv", Role::misc},
      {"model.layers.3.mlp.shared_experts.down_proj.weight", Role::misc},
      {"model.layers.3.mlp.shared_expert.down_proj.weight", Role::misc},
      {"model.layers.3.mlp.shared_expert_gate.weight", Role::misc},
      {"model.layers.3.block_sparse_moe.routed_expert_down_proj.weight",
       Role::bulk},  // no dot before the suffix
      {"model.layers.3.block_sparse_moe.experts.0.w1.weight", Role::misc},
      {"model.layers.3.self_attn.o_proj.weight", Role::misc},
      {"mtp.layers.0.mlp.experts.0.up_proj.weight", Role::mtp},
      {"mtp_head.up_proj.weight", Role::bulk},
      {"model.visual.blocks.0.mlp.up_proj.weight", Role::vision},
      {"vision_tower.encoder.blocks.0.wo.weight", Role::vision},
      {"mm_projector.proj.0.weight", Role::vision},
      {"", Role::misc},
  };
  for (const auto& [name, role] : cases) EXPECT_EQ(role_of(name, 61), role) << name;
}

TEST(Role, layers_past_the_decoder_are_mtp) {
  EXPECT_EQ(role_of("model.layers.60.mlp.up_proj.weight", 61), Role::bulk);
  EXPECT_EQ(role_of("model.layers.61.mlp.up_proj.weight", 61), Role::mtp);
  EXPECT_EQ(role_of("model.layers.99999999999999999999999.norm.weight", 61), Role::mtp);
  EXPECT_EQ(role_of("model.layers.x.up_proj.weight", 61), Role::bulk);
  EXPECT_EQ(role_of("model.layers.", 61), Role::misc);
  EXPECT_EQ(role_of("model.layers.61", 61), Role::misc);
  EXPECT_EQ(role_of("model.layers.-61.norm.weight", 61), Role::misc);
  EXPECT_EQ(role_of("model.language_model.layers.61.mlp.up_proj.weight", 61), Role::bulk);
}

TEST(Totals, count_every_tensor_at_two_bytes_per_element) {
  Inventory inventory;
  inventory.layers = 3;
  TensorPattern pattern;
  pattern.home = Home::layer;
  pattern.layers = {0, 1, 2};
  pattern.shape = {5, 7};
  pattern.stored = Dtype::f32;
  pattern.experts = 4;
  pattern.role = Role::bulk;
  inventory.patterns.push_back(pattern);  // 12 tensors of 35
  pattern.fused_experts = true;
  pattern.shape = {4, 5, 7};
  pattern.role = Role::misc;
  inventory.patterns.push_back(pattern);  // 3 of 140
  pattern.role = Role::mtp;
  inventory.patterns.push_back(pattern);
  pattern.role = Role::vision;
  pattern.layers = {1};
  inventory.patterns.push_back(pattern);  // 1 of 140
  const InventoryTotals sum = totals(inventory);
  EXPECT_EQ(sum.parameters, 840);
  EXPECT_EQ(sum.bytes, Bytes{1680});
  EXPECT_EQ(sum.bulk_bytes, Bytes{840});
  EXPECT_EQ(sum.misc_bytes, Bytes{840});
  EXPECT_EQ(sum.tensor_count, 15);
  EXPECT_EQ(sum.payload_bytes, Bytes{1960});
  EXPECT_EQ(sum.payload_bulk_bytes, Bytes{840});
  EXPECT_DOUBLE_EQ(sum.bulk_fraction(), 0.5);
  EXPECT_DOUBLE_EQ(sum.payload_bulk_fraction(), 840.0 / 1960.0);
}

TEST(Totals, an_empty_inventory_has_no_share_of_anything) {
  EXPECT_EQ(totals({}).bytes, Bytes{0});
  EXPECT_EQ(totals({}).bulk_fraction(), 0.0);
  EXPECT_EQ(totals({}).payload_bulk_fraction(), 0.0);
}

TEST(Architectures, are_listed_in_order) {
  const std::vector<std::string> names = known_architectures();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(names.size(), 11U);
}

TEST(ModelConfig, is_named_after_its_file_or_folder) {
  const auto folder = std::filesystem::temp_directory_path() / "isthmus-named-model";
  std::filesystem::create_directories(folder);
  const TemporaryFile file(dense_case_config("llama").dump());
  std::filesystem::copy_file(file.path(), folder / "config.json",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(read_model_config(file.path()).model, file.path().stem().string());
  EXPECT_EQ(read_model_config(folder / "config.json").model, "isthmus-named-model");
  std::filesystem::remove_all(folder);
}

TEST(ModelConfig, an_unknown_architecture_is_named_with_the_known_ones_and_the_ways_out) {
  const std::string message = refusal_of_text(R"({"model_type": "mamba9"})");
  EXPECT_EQ(message,
            ": model_type: unknown architecture \"mamba9\"; known: deepseek_v3, glm4_moe, gpt_oss, kimi_k2, "
            "kimi_k3, "
            "llama, nemotron_h, qwen3, qwen3_5_moe, qwen3_5_moe_text, qwen3_moe. For any other, give a "
            "manifest (JSON: "
            "name -> shape, dtype) or a checkpoint, whose safetensors headers are read");
}

TEST(ModelConfig, a_file_that_is_no_json_is_refused_with_its_line) {
  EXPECT_EQ(refusal_of_text("{\n\"a\": 1,\n\"b\": tru\n}").substr(0, 14), ":3: not JSON: ");
  EXPECT_EQ(refusal_of_text("").substr(0, 14), ":1: not JSON: ");
  EXPECT_EQ(refusal_of_text("[1]"), ":1: found a list of 1; allowed: an object, as in config.json");
  EXPECT_EQ(refusal_of_text("{} {}").substr(0, 14), ":1: not JSON: ");
  EXPECT_NE(refusal_of_text(std::string(100'000, '[')).find("nested deeper"), std::string::npos);
  EXPECT_NE(refusal_of_text("{\"a\": 1e999}").find("not JSON"), std::string::npos);
  EXPECT_NE(refusal_of_text("{\"a\": \"\xff\"}").find("not JSON"), std::string::npos);
}

TEST(ModelConfig, a_repeated_key_is_refused) {
  EXPECT_EQ(refusal_of_text(R"({"model_type": "llama", "hidden_size": 4, "hidden_size": 8})"),
            ": hidden_size: the key stands twice in one JSON object");
}

TEST(ModelConfig, a_path_that_is_no_readable_file_is_refused) {
  EXPECT_THROW(read_model_config("/does/not/exist.json"), InputError);
  EXPECT_THROW(read_model_config(std::filesystem::temp_directory_path()), InputError);
  EXPECT_THROW(read_model_config("/dev/zero"), InputError);
}

TEST(ModelConfig, every_key_must_be_there_have_its_type_and_lie_in_its_range) {
  const nlohmann::json good = dense_case_config("llama");
  EXPECT_EQ(refusal(good), "accepted");
  for (const std::string key :
       {"hidden_size", "num_hidden_layers", "vocab_size", "intermediate_size", "num_attention_heads"}) {
    nlohmann::json config = good;
    config.erase(key);
    expect_refused(config, key + ": found nothing; allowed: a whole number from 1 to ");
    const std::vector<std::pair<nlohmann::json, std::string>> bad{
        {nullptr, "null"},
        {0, "0"},
        {-4, "-4"},
        {"8", "\"8\""},
        {8.0, "8.0"},
        {true, "true"},
        {{8}, "a list of 1"},
        {nlohmann::json::object(), "an object"},
        {1'000'000'000, "1000000000"},
        {18446744073709551615U, "18446744073709551615"},
        {std::string(500, 'x'), "\"" + std::string(79, 'x') + "..."}};
    for (const auto& [value, found] : bad) {
      config[key] = value;
      expect_refused(config, key + ": found " + found + "; allowed: a whole number from 1 to ");
    }
  }
}

TEST(ModelConfig, flags_and_heads_are_checked) {
  nlohmann::json config = dense_case_config("qwen3");
  config["tie_word_embeddings"] = "no";
  expect_refused(config, "tie_word_embeddings: found \"no\"; allowed: true or false");
  config = dense_case_config("qwen3");
  config["num_key_value_heads"] = 3;
  expect_refused(config, "num_key_value_heads: found 3; allowed: a divisor of num_attention_heads, 4");
  config = dense_case_config("qwen3");
  config["model_type"] = 3;
  expect_refused(config, "model_type: found 3; allowed: a text");
  config.erase("model_type");
  expect_refused(config, "model_type: found nothing");
}

TEST(ModelConfig, sizes_whose_product_leaves_64_bits_are_refused) {
  nlohmann::json config = dense_case_config("llama");
  for (const char* key : {"hidden_size", "vocab_size", "intermediate_size"}) config[key] = 1 << 24;
  config["num_hidden_layers"] = 10'000;
  config["num_attention_heads"] = config["head_dim"] = 1 << 16;
  expect_refused(config, "found more than 2000000000000000 parameters");
}

}  // namespace
}  // namespace isthmus

#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {
namespace {

TEST(Llama, inventory_is_that_of_a_plain_loop) {
  expect_family("llama", [] { return dense_case("llama", false); });
}

TEST(Llama, takes_as_many_key_value_heads_as_query_heads_where_none_are_given) {
  const Inventory inventory = read_config({{"model_type", "llama"},
                                           {"hidden_size", 8},
                                           {"num_hidden_layers", 1},
                                           {"vocab_size", 10},
                                           {"intermediate_size", 12},
                                           {"num_attention_heads", 4},
                                           {"num_key_value_heads", nullptr}});
  for (const TensorPattern& pattern : inventory.patterns) {
    if (!pattern.name.ends_with("k_proj.weight")) continue;
    EXPECT_EQ(pattern.shape, (std::vector<std::int64_t>{8, 8}));
    EXPECT_EQ(pattern.key_value_heads, 4);
  }
}

TEST(Llama, refuses_biases) {
  nlohmann::json config = dense_case_config("llama");
  config["attention_bias"] = true;
  EXPECT_NE(refusal(config).find("attention_bias: found true; allowed: false"), std::string::npos)
      << refusal(config);
}

TEST(Llama, refuses_heads_that_do_not_divide_the_hidden_size) {
  nlohmann::json config = dense_case_config("llama");
  config["hidden_size"] = 10;
  config.erase("head_dim");
  EXPECT_NE(refusal(config).find("head_dim: found nothing"), std::string::npos) << refusal(config);
}

}  // namespace
}  // namespace isthmus::testing

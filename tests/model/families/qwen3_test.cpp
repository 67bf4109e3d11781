#include <gtest/gtest.h>

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {
namespace {

TEST(Qwen3, inventory_is_that_of_a_plain_loop) {
  expect_family("qwen3", [] { return dense_case("qwen3", true); });
}

TEST(Qwen3, tied_embeddings_count_once) {
  nlohmann::json config = dense_case_config("qwen3");
  const std::int64_t untied = totals(read_config(config)).parameters;
  config["tie_word_embeddings"] = true;
  EXPECT_EQ(untied - totals(read_config(config)).parameters, 10 * 8);
}

}  // namespace
}  // namespace isthmus::testing

#include <gtest/gtest.h>

#include "tests/model/families/moe_case.hpp"

namespace isthmus::testing {
namespace {

using enum TensorParallel;

ModelCase glm_case() {
  const std::int64_t groups = Draw::size(), keys = Draw::size(), head = Draw::size();
  const bool biases = Draw::flag(), norms = Draw::flag();
  return moe_case("glm4_moe",
                  {{"num_attention_heads", groups * keys},
                   {"num_key_value_heads", keys},
                   {"head_dim", head},
                   {"attention_bias", biases},
                   {"use_qk_norm", norms}},
                  [=](ModelCase& model, const std::string& layer, std::int64_t hidden) {
                    const std::int64_t queries = groups * keys * head;
                    add_attention(model, layer + "self_attn.", hidden, queries, keys * head, queries);
                    if (biases) {
                      model.add(layer + "self_attn.q_proj.bias", {queries}, rows);
                      model.add(layer + "self_attn.k_proj.bias", {keys * head}, rows);
                      model.add(layer + "self_attn.v_proj.bias", {keys * head}, rows);
                    }
                    if (norms) {
                      model.add(layer + "self_attn.q_norm.weight", {head});
                      model.add(layer + "self_attn.k_norm.weight", {head});
                    }
                  });
}

TEST(Glm4Moe, inventory_is_that_of_a_plain_loop) { expect_family("glm4_moe", glm_case); }

}  // namespace
}  // namespace isthmus::testing

#include "report/tensor_names.hpp"

#include <gtest/gtest.h>

#include "tests/support/refit_generator.hpp"

namespace isthmus::report {
namespace {

Refit refit_of(const std::vector<std::string>& names) {
  std::vector<TensorSpec> specs;
  for (const std::string& name : names) {
    TensorSpec spec;
    spec.name = name;
    spec.source = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
    spec.target = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{1}), {{}}, ChunkRule::even};
    specs.push_back(spec);
  }
  return test::make_refit({specs, 2});
}

TEST(TensorNames, are_found_as_whole_words_the_longest_first) {
  const Refit refit = refit_of({"a.weight", "layer.a.weight", "a.weight_scale"});
  const TensorNames names(refit);
  EXPECT_EQ(names.find_in("a.weight"), TensorId{0});
  EXPECT_EQ(names.find_in("copy a.weight to layer.a.weight!"), TensorId{1});
  EXPECT_EQ(names.find_in("[a.weight_scale]"), TensorId{2});
  EXPECT_EQ(names.find_in("b.a.weight"), std::nullopt);
  EXPECT_EQ(names.find_in(""), std::nullopt);
}

TEST(TensorNames, of_experts_stand_for_the_stack) {
  const Refit refit = refit_of({"mlp.experts.up.weight", "mlp.shared.weight"});
  const TensorNames names(refit);
  EXPECT_EQ(names.find("mlp.experts.up.weight"), TensorId{0});
  EXPECT_EQ(names.find("mlp.experts.0.up.weight"), TensorId{0});
  EXPECT_EQ(names.find("mlp.experts.127.up.weight"), TensorId{0});
  EXPECT_EQ(names.find("mlp.experts..up.weight"), std::nullopt);
  EXPECT_EQ(names.find("mlp.experts.127"), std::nullopt);
  EXPECT_EQ(names.find("mlp.experts.127.down.weight"), std::nullopt);
}

}  // namespace
}  // namespace isthmus::report

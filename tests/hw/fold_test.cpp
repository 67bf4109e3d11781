// Ranks on GPUs: the two sides apart, in contiguous blocks, arenas that do not overlap.

#include "hw/fold.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

using ::testing::ElementsAre;

/// `sources` ranks with a part of one tensor each, then `targets`.
Refit two_sides(std::int64_t sources, std::int64_t targets) {
  TensorSpec tensor;
  tensor.name = "w";
  const Rank first_target{static_cast<std::uint32_t>(sources)};
  tensor.source = {{24, 8}, Dtype::bf16, contiguous_mesh({sources}, {0}), {Placement{0}}};
  tensor.target = {{24, 8}, Dtype::bf16, contiguous_mesh({targets}, first_target), {Placement{0}}};
  return test::make_refit({{tensor}, static_cast<std::size_t>(sources + targets)});
}

std::vector<std::uint32_t> gpus_of(const Refit& refit, std::uint32_t gpus) {
  const PlanResult result = plan_p2p(refit);
  const Program program(refit, std::get<Plan>(result));
  return fold(program, gpus).gpu;
}

TEST(Fold, puts_the_sides_on_gpus_of_their_own) {
  EXPECT_THAT(gpus_of(two_sides(1, 1), 2), ElementsAre(0, 1));
  EXPECT_THAT(gpus_of(two_sides(2, 4), 2), ElementsAre(0, 0, 1, 1, 1, 1));
  EXPECT_THAT(gpus_of(two_sides(2, 2), 4), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(gpus_of(two_sides(2, 6), 4), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(gpus_of(two_sides(6, 1), 2), ElementsAre(0, 0, 0, 0, 0, 0, 1));
  EXPECT_THAT(gpus_of(two_sides(2, 2), 1), ElementsAre(0, 0, 0, 0));
}

TEST(Fold, gives_each_rank_memory_of_its_own) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    const PlanResult result = plan_p2p(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    if (plan == nullptr) continue;
    const Program program(refit, *plan);
    const auto gpus = static_cast<std::uint32_t>(1 + seed % 4);
    const Folding folding = fold(program, gpus);
    std::vector<std::int64_t> end(gpus, 0);
    for (std::uint32_t r = 0; r < program.ranks(); ++r) {
      ASSERT_LT(folding.gpu[r], gpus);
      EXPECT_EQ(folding.base[r] % arena_alignment, 0);
      EXPECT_GE(folding.base[r], end[folding.gpu[r]]);
      end[folding.gpu[r]] = folding.base[r] + program.arena({r}).size.value;
      EXPECT_LE(end[folding.gpu[r]], folding.memory[folding.gpu[r]]);
    }
  }
}

}  // namespace
}  // namespace isthmus::hw

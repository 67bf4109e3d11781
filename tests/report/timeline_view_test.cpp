#include "report/timeline_view.hpp"

#include <gtest/gtest.h>

#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::report {
namespace {

struct ViewedPlan {
  explicit ViewedPlan(std::uint64_t seed) : refit(test::make_refit(test::sample_case(seed))) {
    refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
    for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * 5 % 16};
    plan = test::plans_of(refit).front();
    operations = expand(refit, plan);
  }
  Refit refit;
  Plan plan;
  Operations operations;
};

TEST(TimelineView, keeps_all_bytes_or_counts_them_as_dropped) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ViewedPlan viewed(seed);
    const Timeline timeline = sim::simulate(viewed.refit, viewed.operations, wire_only()).timeline;
    Bytes all, shown;
    for (const Operation& each : viewed.operations.list) all += each.bytes;
    const KeptOperations view = keep_operations(viewed.operations, timeline, 3);
    EXPECT_EQ(view.kept.size(), std::min<std::size_t>(3, viewed.operations.list.size()));
    for (const std::uint32_t i : view.kept) shown += viewed.operations.list[i].bytes;
    EXPECT_EQ(shown + view.dropped_bytes, all);
    EXPECT_EQ(keep_operations(viewed.operations, timeline, 1'000'000).dropped_bytes, Bytes{0});
  }
}

TEST(TimelineView, says_how_far_an_operation_reaches_and_what_it_is) {
  const ViewedPlan viewed(1);
  Operations operations;
  operations.members = {{Rank{0}, Rank{2}}};
  Operation each;
  each.kind = StepKind::send;
  each.source = Rank{0};
  each.target = Rank{0};
  EXPECT_FALSE(leaves_gpu(viewed.refit, operations, each));
  EXPECT_EQ(operation_name(operations, each), "send 0 to 0");
  each.kind = StepKind::pack;
  EXPECT_EQ(operation_name(operations, each), "pack on rank 0");
  each.kind = StepKind::broadcast;
  EXPECT_EQ(operation_name(operations, each), "broadcast of 2 from rank 0");
  if (viewed.refit.ranks() < 3) return;
  EXPECT_TRUE(leaves_gpu(viewed.refit, operations, each));
  EXPECT_TRUE(leaves_domain(viewed.refit, operations, each));  // GPUs 0 and 10: two hosts
}

}  // namespace
}  // namespace isthmus::report

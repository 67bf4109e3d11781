#include "sim/activity.hpp"

#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::sim {
namespace {

RC_GTEST_PROP(Activity, carries_every_byte_and_keeps_ranks_busy_while_they_work, ()) {
  const Refit refit = test::make_refit(*test::refit_cases());
  const Calibration calibration = read_calibration("h100-ib400", project_folder() / "scenarios");
  const auto steps = *rc::gen::inRange<std::size_t>(1, 40);
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    if (plan == nullptr) continue;
    const Operations operations = expand(refit, *plan);
    const Prediction prediction = simulate(refit, operations, calibration, Detail::terms);
    const Activity seen =
        activity(refit, operations, prediction.timeline, prediction.flow_begins, &calibration, steps);
    RC_ASSERT(seen.step * static_cast<std::int64_t>(steps) >= prediction.time);
    std::set<std::uint32_t> listed;
    for (const LinkActivity& link : seen.links) {
      RC_ASSERT(link.load.size() == steps);
      RC_ASSERT(link.bytes == prediction.timeline.link_bytes[link.link.index()]);
      const double sum = std::accumulate(link.load.begin(), link.load.end(), 0.0);
      const double carried = sum * static_cast<double>(link.rate.value) * seconds(seen.step);
      const auto bytes = static_cast<double>(link.bytes.value);
      RC_ASSERT(std::abs(carried - bytes) <= 1e-6 * bytes + 1e3);  // shares of routes are rounded
      listed.insert(link.link.value);
    }
    for (std::uint32_t l = 0; l < refit.fabric.links().size(); ++l) {
      RC_ASSERT((prediction.timeline.link_bytes[l].value > 0) == (listed.count(l) > 0));
    }
    for (const RankActivity& rank : seen.ranks) {
      RC_ASSERT(rank.active <= prediction.time && rank.operations > 0U);
      const double sum = std::accumulate(rank.share.begin(), rank.share.end(), 0.0);
      RC_ASSERT(std::abs(sum * seconds(seen.step) - seconds(rank.active)) <= 1e-9 * (1 + sum));
      for (const double share : rank.share) RC_ASSERT(share >= 0 && share <= 1 + 1e-9);
    }
  }
}

TEST(Activity, of_two_sends_after_each_other_is_full_and_then_empty) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{16}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = spec.source;
  Refit refit = test::make_refit({{spec}, 16});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  Operation send;
  send.source = Rank{0};
  send.target = Rank{8};
  send.bytes = {1'000'000'000};
  Operations operations;
  operations.lanes = {{"lane", 1, false}};
  operations.list = {send, send};
  operations.list[1].group = 1;
  operations.list[1].target = Rank{1};
  operations.list[1].bytes = {9'000'000'000};
  const Timeline timeline = simulate(refit, operations, wire_only()).timeline;  // 20 ms each
  const Activity seen = activity(refit, operations, timeline, {}, nullptr, 4);
  EXPECT_EQ(seen.step.value, 10'000'000'000);
  for (const LinkActivity& link : seen.links) {
    const LinkClass kind = refit.fabric.links()[link.link.index()].link_class;
    const bool nvlink = kind == LinkClass::nvlink;
    EXPECT_NEAR(link.load[nvlink ? 0 : 3], 0, 1e-9);
    if (kind != LinkClass::nic && !nvlink) continue;
    EXPECT_NEAR(link.load[nvlink ? 2 : 1], 1, 1e-6);
  }
  ASSERT_EQ(seen.ranks.size(), 3U);
  EXPECT_EQ(seen.ranks[0].active, timeline.end - Instant{});
  EXPECT_EQ(seen.ranks[2].rank, Rank{8});
  EXPECT_EQ(seen.ranks[2].share, (std::vector<double>{1, 1, 0, 0}));
}

}  // namespace
}  // namespace isthmus::sim

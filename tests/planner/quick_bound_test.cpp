#include "planner/quick_bound.hpp"

#include <gtest/gtest.h>

#include "model/placement.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "planner/bound.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus {
namespace {

CutTimes quick(const Scenario& scenario, const Fabric& fabric) {
  const Inventory inventory = cut_inventory(scenario, read_full_inventory(scenario));
  const ClassedTensors tensors = classed(list_tensors(scenario, inventory));
  const std::vector<GpuId> gpus = rank_places(scenario, fabric);
  const TargetNeeds needs = target_needs(
      scenario, tensors, generate_stage_counts(scenario, tensors, inventory.layers), fabric, gpus);
  const std::vector<SourceStage> stages =
      source_stages(scenario, tensors, train_stage_counts(scenario, tensors, inventory.layers), fabric, gpus);
  return cut_times(stages, needs, domain_rates(fabric, wire_only()));
}

TEST(QuickBound, is_never_above_the_lower_bound_of_the_refit) {
  int equal = 0, all = 0;
  for (const char* const name :
       {"deepseek-v3-h100", "qwen3-235b-h100", "deepseek-v3-gb200", "qwen3-30b-a3b-h100-to-gb200",
        "qwen3-30b-a3b-h100-ep4tp2pp2-tp4dp4", "qwen3-4b-h100", "qwen3-235b-p5"}) {
    const Scenario scenario = read_scenario(project_folder() / "scenarios" / (std::string(name) + ".yaml"));
    const Refit refit = resolve(scenario);
    const CutTimes times = quick(scenario, refit.fabric);
    const LowerBound bound = lower_bound(refit);
    EXPECT_LE(times.all, bound.any_route) << name;
    EXPECT_LE(times.bulk, times.all) << name;
    EXPECT_GT(times.all.value, 0) << name;
    equal += times.all == bound.time ? 1 : 0;
    ++all;
  }
  EXPECT_GE(2 * equal, all) << "the cheap bound is far off";
}

TEST(QuickBound, of_a_policy_counts_its_software) {
  const Calibration calibration = read_calibration("h100-ib400", project_folder() / "scenarios");
  const CutTimes cuts{Duration{1000}, Duration{900}};
  SoftwareCounts counts;
  counts.tensors = 10;
  counts.bulk_tensors = 6;
  counts.parts = 1000;
  counts.misc_parts = 100;
  const Duration per_part{60'000'000}, per_call{1'500'000'000};  // 0.06 ms, 1.5 ms
  EXPECT_EQ(floor_of("balanced", cuts, counts, calibration, true), cuts.all);
  EXPECT_EQ(floor_of("gather-broadcast", cuts, counts, calibration, true), per_part * 1000);
  EXPECT_EQ(floor_of("p2p", cuts, counts, calibration, true), per_call * 10);
  EXPECT_EQ(floor_of("striped", cuts, counts, calibration, true), per_call * 6 + per_part * 100);
  EXPECT_EQ(floor_of("m2n-uniform", cuts, counts, calibration, true), cuts.bulk + per_part * 100);
  EXPECT_EQ(floor_of("striped", cuts, counts, wire_only(), true), cuts.all);
  counts.one_stage = false;  // then bulk and misc may overlap on some ranks
  EXPECT_EQ(floor_of("striped", cuts, counts, calibration, true), per_part * 100);
}

}  // namespace
}  // namespace isthmus

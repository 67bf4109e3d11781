#include "report/gaps.hpp"

#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "hw/host.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"
#include "report/operation_tensors.hpp"
#include "report/trace.hpp"
#include "sim/simulation.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::report {
namespace {

Calibration h100() { return read_calibration("h100-ib400", project_folder() / "scenarios"); }

/// On every fifth GPU of two hosts.
Refit random_refit() {
  Refit refit = test::make_refit(*test::refit_cases());
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * 5 % 16};
  return refit;
}

/// An operation takes longer by `delay`, and all that begins when it had ended, or later, is late by as much.
Timeline delayed(Timeline timeline, std::uint32_t operation, Duration delay) {
  const Instant before = timeline.spans[operation].end;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    Span& span = timeline.spans[i];
    if (i != operation && span.ready < before) continue;
    if (i != operation) span.ready = span.ready + delay;
    span.end = span.end + delay;
    timeline.end = std::max(timeline.end, span.end);
  }
  return timeline;
}

/// What `compare` makes of a trace of this timeline.
GapReport gaps_of_trace(const Refit& refit, const Plan& plan, const Timeline& timeline) {
  const TemporaryFolder folder;
  const Operations operations = expand(refit, plan);
  std::string text;
  write_trace({refit, operations, timeline, plan.policy, "of a test"}, 1'000'000,
              [&](std::string_view piece) { text += piece; });
  const std::filesystem::path file = folder.write("trace.json", text);
  return find_gaps(refit, plan, h100(), read_observation(file, refit), file.string());
}

Timeline predicted(const Refit& refit, const Plan& plan) {
  const Operations operations = expand(refit, plan);
  Timeline timeline = sim::simulate(refit, operations, h100()).timeline;
  return timeline;
}

RC_GTEST_PROP(Gaps, are_none_where_a_run_goes_as_predicted, ()) {
  const Refit refit = random_refit();
  const Plan plan = *rc::gen::elementOf(test::plans_of(refit));
  const GapReport report = gaps_of_trace(refit, plan, predicted(refit, plan));
  RC_ASSERT(report.gaps.empty());
  RC_ASSERT(report.measured == report.predicted);
  RC_ASSERT(report.only_measured + report.only_predicted == 0U);
  RC_ASSERT(report.cells == expand(refit, plan).list.size());
}

RC_GTEST_PROP(Gaps, show_a_planted_delay_where_it_is_and_as_long_as_it_is, ()) {
  const Refit refit = random_refit();
  const Plan plan = *rc::gen::elementOf(test::plans_of(refit));
  const Timeline before = predicted(refit, plan);
  const auto late = static_cast<std::uint32_t>(*rc::gen::inRange<std::size_t>(0, before.spans.size()));
  const Duration delay{*rc::gen::inRange<std::int64_t>(1, 1'000'000'000)};
  const GapReport report = gaps_of_trace(refit, plan, delayed(before, late, delay));
  RC_ASSERT(report.gaps.size() == 1U);
  const Gap& gap = report.gaps.front();
  RC_ASSERT(gap.size == delay);
  // Others may end at the same moment, should they take no time.
  const Cell& cell = gap.cell;
  RC_ASSERT(cell.measured.end - cell.predicted.end == delay);
  if (*cell.operation != late) RC_ASSERT(cell.predicted.begin == cell.predicted.end);
  const Operations operations = expand(refit, plan);
  RC_ASSERT(cell.tensor == tensors_of(plan, operations)[*cell.operation].front());
  RC_ASSERT(cell.stage == refit.tensors[cell.tensor->index()].stage);
  RC_ASSERT(cell.lane == plan.lanes[operations.list[*cell.operation].lane.index()].name);
  RC_ASSERT(!gap.before || *cell.operation != late);
}

RC_GTEST_PROP(Gaps, are_negative_where_the_prediction_is_the_slower_one, ()) {
  const Refit refit = random_refit();
  const Plan plan = *rc::gen::elementOf(test::plans_of(refit));
  const Timeline full = predicted(refit, plan);
  Timeline half = full;
  for (Span& span : half.spans) span = {{span.ready.value / 2}, {span.end.value / 2}, span.cause};
  half.end = {half.end.value / 2};
  const GapReport report = gaps_of_trace(refit, plan, half);
  RC_ASSERT(!report.gaps.empty());
  for (const Gap& gap : report.gaps) RC_ASSERT(gap.size.value < 0);
  RC_ASSERT(report.error() < 0);
}

/// Two stages with a weight each, from rank s to rank 8 + s, on two hosts.
Refit two_stages(std::int64_t bytes) {
  std::vector<TensorSpec> specs;
  for (std::uint32_t s = 0; s < 2; ++s) {
    TensorSpec spec;
    spec.name = s == 0 ? "first.weight" : "model.experts.second.weight";
    spec.source = {{bytes}, Dtype::u8, contiguous_mesh({1}, Rank{s}), {{}}, ChunkRule::even};
    spec.target = {{bytes}, Dtype::u8, contiguous_mesh({1}, Rank{8 + s}), {{}}, ChunkRule::even};
    specs.push_back(spec);
  }
  Refit refit = test::make_refit({specs, 10});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  refit.tensors[1].stage = 1;
  refit.stages = 2;
  return refit;
}

GapReport gaps_of_text(const Refit& refit, const Plan& plan, std::string_view text) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.write("run", text);
  return find_gaps(refit, plan, h100(), read_observation(file, refit), file.string());
}

Plan p2p(const Refit& refit) { return std::get<Plan>(plan_p2p(refit)); }

TEST(Gaps, of_a_table_name_stage_tensor_and_the_term) {
  const Refit large = two_stages(std::int64_t{50} << 30);
  const Plan plan = p2p(large);
  const GapReport report = gaps_of_text(
      large, plan,
      "stage,tensor,start_s,end_s\n0,first.weight,100,101.2\n1,model.experts.second.weight,100,104.5\n");
  ASSERT_FALSE(report.gaps.empty());
  const Gap& gap = report.gaps.front();
  EXPECT_EQ(gap.cell.stage, 1);
  EXPECT_EQ(gap.cell.tensor, TensorId{1});
  EXPECT_GT(seconds(gap.size), 3.0);
  EXPECT_FALSE(gap.before);
  EXPECT_EQ(gap.term, "network wire");
  EXPECT_EQ(report.stages.size(), 2U);
  EXPECT_NEAR(seconds(report.measured), 4.5, 1e-6);
}

TEST(Gaps, of_small_tensors_are_those_of_the_software) {
  const Refit small = two_stages(64);
  const GapReport report = gaps_of_text(small, p2p(small), "tensor,start_us,end_us\nfirst.weight,0,900\n");
  ASSERT_EQ(report.gaps.size(), 1U);
  EXPECT_NE(report.gaps.front().term, "network wire");
  EXPECT_EQ(report.only_predicted, 1U) << "the other tensor";
}

TEST(Gaps, before_a_cell_are_told_from_those_in_it) {
  const Refit refit = two_stages(std::int64_t{1} << 30);
  const GapReport late =
      gaps_of_text(refit, p2p(refit),
                   "tensor,start_s,end_s\nfirst.weight,0,0.0221\nmodel.experts.second.weight,5,5.0221\n");
  ASSERT_FALSE(late.gaps.empty());
  EXPECT_EQ(late.gaps.front().cell.tensor, TensorId{1});
  EXPECT_TRUE(late.gaps.front().before);
}

TEST(Gaps, of_a_replay_in_host_memory_show_a_planted_delay) {
  const Refit refit = resolve(read_scenario(project_folder() / "scenarios/cases/uneven-ceil.yaml"));
  for (const Plan& plan : test::plans_of(refit)) {
    const hw::Program program(refit, plan);
    const Timeline measured = hw::HostExecutor().run(program, {}).timeline;
    const std::uint32_t late = static_cast<std::uint32_t>(measured.spans.size() / 2);
    const Duration delay{1000 * picoseconds_per_second};
    const GapReport report = gaps_of_trace(refit, plan, delayed(measured, late, delay));
    ASSERT_FALSE(report.gaps.empty()) << plan.policy;
    const Gap& gap = report.gaps.front();
    EXPECT_NEAR(seconds(gap.size), seconds(delay), 10) << plan.policy;
    EXPECT_EQ(gap.cell.operation, late) << plan.policy;
  }
}

TEST(Gaps, documents_agree) {
  const Refit refit = two_stages(1000);
  const GapReport report = gaps_of_text(refit, p2p(refit), "stage\tstart_ms\tend_ms\n0\t0\t1\n1\t0\t7\n");
  const nlohmann::json json = nlohmann::json::parse(gap_document(report, true));
  EXPECT_EQ(json["gaps"].size(), report.gaps.size());
  EXPECT_EQ(json["stages"].size(), 2U);
  EXPECT_EQ(json["form"], "table");
  EXPECT_DOUBLE_EQ(json["error"].get<double>(), report.error());
  EXPECT_EQ(json["gaps"][0]["tensor"], nullptr);
  EXPECT_NE(gap_document(report, false).find("largest gaps"), std::string::npos);
}

std::string refusal(const Refit& refit, const Plan& plan, std::string_view text) {
  try {
    gaps_of_text(refit, plan, text);
  } catch (const InputError& error) {
    return error.message();
  }
  return "none";
}

TEST(Gaps, refuse_a_run_of_another_plan) {
  const Refit refit = two_stages(1000);
  const Plan plan = p2p(refit);
  EXPECT_NE(refusal(refit, plan, "tensor,lane,start_s,end_s\nfirst.weight,no-such-lane,0,1\n")
                .find("'no-such-lane'"),
            std::string::npos);
  EXPECT_EQ(refusal(refit, plan,
                    fmt::format("tensor,lane,start_s,end_s\nfirst.weight,{},0,1\n", plan.lanes.front().name)),
            "none");
  const std::string other =
      R"({"traceEvents":[{"ph":"X","name":"a","cat":"operation","ts":0,"dur":1,"args":{"operation":0}}],)"
      R"("otherData":{"policy":"golden","operations":7,"dropped_operations":0}})";
  EXPECT_NE(refusal(refit, plan, other).find("7 operations by 'golden'"), std::string::npos);
  EXPECT_NE(
      refusal(refit, plan, "stage,tensor,start_s,end_s\n1,first.weight,0,1\n").find("none is in the plan"),
      std::string::npos);
}

}  // namespace
}  // namespace isthmus::report

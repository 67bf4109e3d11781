#include "sim/staging.hpp"

#include <algorithm>
#include <map>
#include <variant>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::sim {
namespace {

std::vector<Rank> ranks_at(const Operations& operations, const Operation& operation, Rank single) {
  return operations.collective(operation) ? operations.members[operation.members] : std::vector<Rank>{single};
}

/// By the definition: for each staged region from when to when it is there, then all changes of a GPU sorted.
Bytes sorted_peak(const Refit& refit, const Operations& operations, const Timeline& timeline) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Instant> freed;  // by operation and rank
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    if (operation.staged_target) {
      for (const Rank rank : ranks_at(operations, operation, operation.target)) {
        Instant& until = freed[{i, rank.value}];
        until = std::max(until, timeline.spans[i].end);
      }
    }
    if (!operation.staged_source) continue;
    for (const std::uint32_t before : operations.dependencies(operation)) {
      std::vector<Rank> readers{operation.source};
      if (operation.kind == StepKind::all_gather) readers = operations.members[operation.members];
      for (const Rank rank : readers) {
        Instant& until = freed[{before, rank.value}];
        until = std::max(until, timeline.spans[i].end);
      }
    }
  }
  std::map<std::uint32_t, std::vector<std::pair<Instant, std::int64_t>>> changes;  // by GPU
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    if (!operation.staged_target) continue;
    for (const Rank rank : ranks_at(operations, operation, operation.target)) {
      auto& list = changes[refit.gpu(rank).value];
      list.emplace_back(timeline.spans[i].ready, operation.bytes.value);
      list.emplace_back(freed[{i, rank.value}], -operation.bytes.value);
    }
  }
  std::int64_t most = 0;
  for (auto& [gpu, list] : changes) {
    std::sort(list.begin(), list.end());
    std::int64_t now = 0;
    for (const auto& [when, bytes] : list) most = std::max(most, now += bytes);
  }
  return {most};
}

RC_GTEST_PROP(Staging, peaks_where_sorted_changes_do, ()) {
  Refit refit = isthmus::test::make_refit(*isthmus::test::refit_cases());
  refit.fabric = Fabric({"dgx-h100", 8, std::nullopt, std::nullopt});
  for (const Policy& policy : policies()) {
    const PlanResult plan = policy.make(refit);
    if (!std::holds_alternative<Plan>(plan)) continue;
    const Operations operations = expand(refit, std::get<Plan>(plan));
    const Calibration calibrated = read_calibration("h100-ib400", project_folder() / "scenarios");
    for (const Calibration& calibration : {wire_only(), calibrated}) {
      const Prediction prediction = simulate(refit, operations, calibration);
      RC_ASSERT(prediction.peak_staging.value == sorted_peak(refit, operations, prediction.timeline).value);
    }
  }
}

}  // namespace
}  // namespace isthmus::sim

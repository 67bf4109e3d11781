#include "sim/room.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::sim {
namespace {

/// 1 - load of the busiest link of an operation's route, by the definition: operation by operation.
double room_by_definition(const FinishedRun& run, const RoomQuery& query) {
  const auto time = static_cast<double>((query.end - query.begin).value);
  double room = 1;
  for (const Usage& needed : run.routes.usages(run.routes.of(run.operations.list[query.operation]))) {
    double carried = 0;
    for (std::uint32_t i = 0; i < run.operations.list.size(); ++i) {
      const std::uint32_t route = run.routes.of(run.operations.list[i]);
      if (route == Routes::local) continue;
      const Instant begin = run.phase_begin(i, 1), end = run.timeline.spans[i].end;
      const std::int64_t both = (std::min(end, query.end) - std::max(begin, query.begin)).value;
      if (both <= 0) continue;
      for (const Usage& usage : run.routes.usages(route)) {
        if (usage.resource != needed.resource) continue;
        carried += static_cast<double>(run.operations.list[i].bytes.value) * usage.weight / Usage::one *
                   static_cast<double>(both) / static_cast<double>((end - begin).value);
      }
    }
    const Bandwidth rate = run.calibration.achieved(run.refit.fabric.links()[needed.resource]);
    room = std::min(room, 1 - carried / (static_cast<double>(rate.value) * time * 1e-12));
  }
  return std::max(room, 0.0);
}

RC_GTEST_PROP(Room, is_that_of_the_definition, ()) {
  Refit refit = test::make_refit(*test::refit_cases());
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * 5 % 16};
  const Calibration calibration = wire_only();
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    const Plan* plan = std::get_if<Plan>(&result);
    if (plan == nullptr) continue;
    const Operations operations = expand(refit, *plan);
    const Prediction prediction = simulate(refit, operations, calibration, Detail::terms);
    const Routes routes(refit, operations);
    const QueuePlan queues(operations);
    const Flows flows = build_flows(refit, operations, routes, calibration);
    std::vector<Instant> begins;  // wire-only: all phases but the last take no time
    for (const Instant begin : prediction.flow_begins) begins.insert(begins.end(), 2, begin);
    const FinishedRun run{refit,         operations,          routes, calibration, queues,
                          flows.demands, prediction.timeline, begins};
    std::vector<RoomQuery> queries;
    for (std::uint32_t i = 0; i < operations.list.size() && queries.size() < 20; ++i) {
      const Span& span = prediction.timeline.spans[*rc::gen::inRange<std::size_t>(0, operations.list.size())];
      if (span.ready < span.end && routes.of(operations.list[i]) != Routes::local)
        queries.push_back({i, span.ready, span.end});
    }
    const std::vector<Room> rooms = room(run, queries);
    for (std::size_t q = 0; q < queries.size(); ++q) {
      RC_ASSERT(std::abs(rooms[q].least() - room_by_definition(run, queries[q])) < 1e-6);
      RC_ASSERT(rooms[q].cap == 1.0 && rooms[q].own == 1.0);
    }
  }
}

}  // namespace
}  // namespace isthmus::sim

#include "sim/simulation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/queues.hpp"
#include "sim/account.hpp"
#include "sim/flows.hpp"
#include "sim/interference.hpp"
#include "sim/quotient.hpp"
#include "sim/run.hpp"
#include "sim/staging.hpp"
#include "sim/terms.hpp"

namespace isthmus::sim {
namespace {

/// Along the critical path, the members of parts that held operations back; elsewhere any member of the part
/// is named, which ended at the same time.
void find_causes(const Operations& operations, const QueuePlan& queues, const Parts& symmetric,
                 Timeline& timeline) {
  const std::vector<std::uint32_t> path = timeline.critical_path();
  if (path.empty()) return;
  for (std::uint32_t i = path.back(); timeline.spans[i].cause != Span::no_cause;
       i = timeline.spans[i].cause) {
    const std::uint32_t part = symmetric.part_of[timeline.spans[i].cause];
    const auto before = operations.dependencies(operations.list[i]);
    const auto cause = std::find_if(before.begin(), before.end(),
                                    [&](std::uint32_t other) { return symmetric.part_of[other] == part; });
    timeline.spans[i].cause = cause != before.end() ? *cause : queues.held_by(i, part, symmetric.part_of);
  }
}

/// From parts to operations.
Ran spread(const Operations& operations, const QueuePlan& queues, const Parts& symmetric, Ran parts) {
  constexpr std::size_t phases = std::tuple_size_v<decltype(Demand::phases)>;
  Ran all;
  const std::size_t count = symmetric.part_of.size();
  all.timeline.end = parts.timeline.end;
  all.timeline.spans.reserve(count);
  if (!parts.phase_begins.empty()) all.phase_begins.reserve(phases * count);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint32_t part = symmetric.part_of[i];
    Span span = parts.timeline.spans[part];
    if (span.cause != Span::no_cause) span.cause = symmetric.representative[span.cause];
    all.timeline.spans.push_back(span);
    if (parts.phase_begins.empty()) continue;
    const auto begin = parts.phase_begins.begin() + static_cast<std::ptrdiff_t>(phases * part);
    all.phase_begins.insert(all.phase_begins.end(), begin, begin + phases);
  }
  find_causes(operations, queues, symmetric, all.timeline);
  if (parts.events.empty()) return all;
  std::vector<std::uint32_t> first(symmetric.representative.size() + 1, 0), members(count);
  for (const std::uint32_t part : symmetric.part_of) ++first[part + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::uint32_t i = 0; i < count; ++i) members[next[symmetric.part_of[i]]++] = i;
  all.events.reserve(2 * count);
  for (const Event& event : parts.events) {
    for (std::uint32_t m = first[event.operation]; m < first[event.operation + 1]; ++m) {
      all.events.push_back({members[m], event.ended});
    }
  }
  return all;
}

/// Whether operations that follow each other lie so far apart that little of what one brought into the caches
/// serves the next: 256 of them, of 150 bytes or so each, fill a first level of 32 to 48 KiB.
bool scattered(const std::vector<std::uint32_t>& order) {
  constexpr std::uint64_t near = 256;
  std::uint64_t jumps = 0;
  for (std::size_t place = 1; place < order.size(); ++place) {
    const auto [low, high] = std::minmax(order[place - 1], order[place]);
    jumps += high - low;
  }
  return jumps > near * order.size();
}

/// Brings values by operation into the order of places. Within their memory: a fresh copy costs a page fault
/// per 4 KiB.
template <class Value>
void sort_by_place(const std::vector<std::uint32_t>& order, std::vector<Value>& values) {
  std::vector<bool> done(order.size());
  for (std::uint32_t start = 0; start < order.size(); ++start) {
    if (done[start]) continue;
    const Value first = values[start];
    std::uint32_t place = start;
    for (done[place] = true; order[place] != start; done[place] = true) {
      values[place] = values[order[place]];
      place = order[place];
    }
    values[place] = first;
  }
}

/// The way back.
template <class Value>
void sort_by_operation(const std::vector<std::uint32_t>& order, std::vector<Value>& values) {
  std::vector<bool> done(order.size());
  for (std::uint32_t start = 0; start < order.size(); ++start) {
    if (done[start]) continue;
    Value carried = values[start];
    std::uint32_t place = start;
    do {
      done[place] = true;
      place = order[place];
      std::swap(carried, values[place]);
    } while (place != start);
  }
}

/// From places to operations.
void name_operations(const std::vector<std::uint32_t>& order, Ran& ran) {
  constexpr std::size_t phases = std::tuple_size_v<decltype(Demand::phases)>;
  for (Span& span : ran.timeline.spans) {
    if (span.cause != Span::no_cause) span.cause = order[span.cause];
  }
  sort_by_operation(order, ran.timeline.spans);
  for (Event& event : ran.events) event.operation = order[event.operation];
  if (ran.phase_begins.empty()) return;
  std::vector<Instant> begins(ran.phase_begins.size());
  for (std::size_t place = 0; place < order.size(); ++place) {
    for (std::size_t p = 0; p < phases; ++p) {
      begins[phases * order[place] + p] = ran.phase_begins[phases * place + p];
    }
  }
  ran.phase_begins = std::move(begins);
}

/// When the last flow of each operation began; its end where it has none.
std::vector<Instant> last_flows(const FinishedRun& run) {
  std::vector<Instant> begins;
  begins.reserve(run.demands.size());
  for (std::uint32_t i = 0; i < run.demands.size(); ++i) {
    begins.push_back(run.timeline.spans[i].end);
    const auto& phases = run.demands[i].phases;
    for (std::size_t p = 0; p < phases.size(); ++p) {
      if (phases[p].flow_class != Demand::none) begins.back() = run.phase_begin(i, p);
    }
  }
  return begins;
}

/// Bytes that each link carried, on the ways that attempts took.
std::vector<Bytes> moved_bytes(const Routes& routes, const Flows& flows, const Ran& ran) {
  std::vector<Bytes> links(routes.link_bytes().size());
  for (std::size_t c = 0; c < ran.moved_by_class.size(); ++c) {
    if (flows.route_of_class[c] == Routes::local) continue;
    for (const Usage& usage : routes.usages(flows.route_of_class[c])) {
      const Int128 share = Int128{ran.moved_by_class[c].value} * usage.weight;
      links[usage.resource].value += static_cast<std::int64_t>(share / Usage::one);
    }
  }
  return links;
}

}  // namespace

struct Simulator::Prepared {
  const Refit& refit;
  const Operations& operations;
  Routes routes;
  QueuePlan queues;
  Staging staging;
  Interference interference{};
  std::optional<Parts> parts{};
  std::optional<QueuePlan> by_place{};  // in place of `queues`
};

Simulator::Simulator(const Refit& refit, const Operations& operations, Symmetry symmetry)
    : Simulator(refit, operations, refit.disturbances, symmetry) {}

Simulator::Simulator(const Refit& refit, const Operations& operations, const Disturbances& disturbances,
                     int ctas)
    : Simulator(refit, operations, disturbances, ctas > 0 ? Symmetry::never : Symmetry::where_useful) {
  prepared_->interference.ctas = ctas;
}

Simulator::Simulator(const Refit& refit, const Operations& operations, const Disturbances& disturbances,
                     Symmetry symmetry) {
  auto prepared = std::make_unique<Prepared>(Prepared{refit, operations, Routes(refit, operations),
                                                      QueuePlan(operations), Staging(refit, operations)});
  const std::size_t least = symmetry == Symmetry::always ? 1 : 4;
  prepared->interference = interference(refit, operations, disturbances, prepared->routes);
  const bool plain = symmetry == Symmetry::never || !prepared->interference.none();
  const std::vector<std::uint32_t>& order = prepared->queues.order();
  if (!plain && symmetry != Symmetry::by_place) {
    prepared->parts = find_parts(refit, operations, prepared->routes, prepared->queues, least);
  }
  if (!plain && !prepared->parts && (symmetry == Symmetry::by_place || scattered(order))) {
    prepared->by_place = prepared->queues.by_place();
  }
  prepared_ = std::move(prepared);
}

Simulator::~Simulator() = default;

Prediction Simulator::run(const Calibration& calibration, Detail detail) const {
  const Refit& refit = prepared_->refit;
  const Operations& operations = prepared_->operations;
  Flows flows = build_flows(refit, operations, prepared_->routes, calibration, prepared_->interference);
  Prediction prediction;
  const Staging& staging = prepared_->staging;
  const bool all = detail == Detail::terms;
  const Duration enqueue{std::llround(calibration.enqueue_time.value * 1e12)};
  const auto run_all = [&](Fluid fluid, const std::vector<Demand>& demands, const QueuePlan& queues) {
    return Run(fluid, demands, queues, enqueue, {!staging.empty(), all}, flows.schedule,
               flows.route_of_class.size(), operations)
        .run();
  };
  Ran ran;
  std::optional<PartFlows> of_parts;
  if (prepared_->parts) of_parts = part_flows(*prepared_->parts, flows);
  if (of_parts) {
    ran = run_all(std::move(of_parts->fluid), of_parts->demands, prepared_->parts->queues);
    ran = spread(operations, prepared_->queues, *prepared_->parts, std::move(ran));
    prediction.parts = prepared_->parts->representative.size();
  } else if (prepared_->by_place) {
    const std::vector<std::uint32_t>& order = prepared_->queues.order();
    sort_by_place(order, flows.demands);
    ran = run_all(flows.network.fluid(), flows.demands, *prepared_->by_place);
    name_operations(order, ran);
    if (all) sort_by_operation(order, flows.demands);
    prediction.parts = operations.list.size();
  } else {
    ran = run_all(flows.network.fluid(), flows.demands, prepared_->queues);
    prediction.parts = operations.list.size();
  }
  prediction.timeline = std::move(ran.timeline);
  if (!staging.empty()) prediction.peak_staging = staging.peak(prediction.timeline, ran.events);
  prediction.timeline.link_bytes =
      ran.outcome.failures == 0 ? prepared_->routes.link_bytes() : moved_bytes(prepared_->routes, flows, ran);
  prediction.outcome = std::move(ran.outcome);
  for (std::size_t b = 0; b < ran.background.size(); ++b) {
    const Schedule::Background& flow = flows.schedule.background[b];
    const Interference::Load& load = prepared_->interference.loads[flow.load];
    prediction.background.push_back(
        {load.load, load.on_memory, load.where, {flow.wanted}, ran.background[b]});
  }
  account(refit, operations, calibration, flows.work, prediction);
  if (all) {
    const FinishedRun finished{
        refit,         operations,          prepared_->routes, calibration, prepared_->queues,
        flows.demands, prediction.timeline, ran.phase_begins};
    if (prepared_->interference.none()) prediction.terms = critical_terms(finished);
    prediction.flow_begins = last_flows(finished);
    prediction.work = std::move(flows.work);
  }
  return prediction;
}

Prediction simulate(const Refit& refit, const Operations& operations, const Calibration& calibration,
                    Detail detail) {
  return Simulator(refit, operations).run(calibration, detail);
}

}  // namespace isthmus::sim

#include "report/comparison.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>

#include <fmt/format.h>

#include "planner/operations.hpp"
#include "planner/policies/local_puts.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

class Stopwatch {
 public:
  /// Seconds since construction or the last call.
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::duration<double> passed = now - start_;
    start_ = now;
    return passed.count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::string stopped_text(const sim::Prediction& prediction) {
  if (!prediction.outcome.stopped()) return "";
  return fmt::format("stopped at {:.6f} s: {} operations failed, {} never started", seconds(prediction.time),
                     prediction.outcome.failed.size(), prediction.outcome.never_started.size());
}

bool same_constants(const Calibration& a, const Calibration& b) {
  const std::vector<ConstantField>& fields = calibration_fields();
  return std::all_of(fields.begin(), fields.end(), [&](const ConstantField& field) {
    return (a.*field.member).value == (b.*field.member).value;
  });
}

/// `stages`: one calibration after the other; where nothing changed, nothing is simulated again.
void predict(const Refit& refit, const Plan& plan, const Calibration& calibration, const LowerBound& bound,
             const std::vector<Calibration>& stages, sim::Detail detail, std::size_t link_steps,
             PolicyRow& row) {
  const Operations operations = expand(refit, plan);
  const sim::Simulator simulator(refit, operations);
  sim::Prediction full = simulator.run(calibration, detail);
  const sim::Prediction wire = simulator.run(wire_only());
  row.seconds = seconds(full.time);
  row.stopped = stopped_text(full);
  row.bulk_seconds = seconds(full.bulk);
  row.misc_seconds = seconds(full.misc);
  row.other_seconds = seconds(full.other);
  row.software_seconds = seconds(full.time - wire.time);
  row.efficiency = full.time.value > 0 ? seconds(bound.time) / row.seconds : 1;
  row.network_bytes = full.network_bytes;
  row.nvlink_bytes = full.nvlink_bytes;
  row.peak_staging_bytes = full.peak_staging;
  row.binding_resource = full.binding_resource;
  row.digest = full.timeline.digest();
  if (link_steps > 0) {
    row.links = {sim::activity(refit, operations, full.timeline, full.flow_begins, &calibration, link_steps),
                 std::move(full.work)};
  }
  row.terms = std::move(full.terms);
  const Calibration* before = &calibration;
  double seconds_before = row.seconds;
  for (const Calibration& stage : stages) {
    if (same_constants(stage, wire_only())) {
      seconds_before = seconds(wire.time);
    } else if (!same_constants(stage, *before)) {
      seconds_before = seconds(simulator.run(stage).time);
    }
    row.stages.push_back(seconds_before);
    before = &stage;
  }
}

/// The plan, once it is proven; what the row says of it.
std::optional<Plan> proven_plan(const Refit& refit, const Policy& policy, const Calibration& calibration,
                                Stopwatch& watch, PolicyRow& row) {
  row.policy = policy.name;
  PlanResult result = plan_under(policy, refit, calibration);
  row.plan_wall_seconds = watch.lap();
  if (const Refused* refused = std::get_if<Refused>(&result)) {
    row.refused = refused->reason;
    return std::nullopt;
  }
  Proof proof = check(refit, std::get<Plan>(result));
  row.check_wall_seconds = watch.lap();
  row.proven = proof.proven();
  row.violations = std::move(proof.violations);
  row.full_tensor_materialised = proof.full_tensor_materialised;
  if (!row.proven) return std::nullopt;
  return std::get<Plan>(std::move(result));
}

PolicyRow run_variant(const SourceVariant& variant, const Policy& policy, const Calibration& calibration,
                      std::size_t link_steps) {
  PolicyRow row;
  row.policy = policy.name;
  row.refused = variant.refused;
  if (!variant.refit) return row;
  row = run_policy(*variant.refit, policy, calibration, variant.bound, {}, sim::Detail::terms, link_steps);
  row.quantised = QuantisedRow{variant.refit->payload(), variant.bound};
  return row;
}

}  // namespace

PolicyRow run_policy(const Refit& refit, const Policy& policy, const Calibration& calibration,
                     const LowerBound& bound, const std::vector<Calibration>& stages, sim::Detail detail,
                     std::size_t link_steps) {
  PolicyRow row;
  Stopwatch watch;
  const std::optional<Plan> plan = proven_plan(refit, policy, calibration, watch, row);
  if (plan) predict(refit, *plan, calibration, bound, stages, detail, link_steps, row);
  row.simulate_wall_seconds = watch.lap();
  return row;
}

PolicyRow time_policy(const Refit& refit, const Policy& policy, const Calibration& calibration) {
  PolicyRow row;
  Stopwatch watch;
  const std::optional<Plan> plan = proven_plan(refit, policy, calibration, watch, row);
  if (plan) {
    const sim::Prediction prediction = sim::simulate(refit, expand(refit, *plan), calibration);
    row.seconds = seconds(prediction.time);
    row.stopped = stopped_text(prediction);
  }
  row.simulate_wall_seconds = watch.lap();
  return row;
}

const PolicyRow* Comparison::fastest() const {
  const PolicyRow* best = nullptr;
  for (const PolicyRow& row : policies) {
    if (row.predicted() && (best == nullptr || row.seconds < best->seconds)) best = &row;
  }
  return best;
}

Comparison compare(const Refit& refit, const std::vector<Published>& published,
                   const Calibration& calibration, const std::vector<std::string>& names,
                   std::size_t link_steps, const SourceVariant* variant) {
  Comparison result{
      refit.name, calibration.name, refit.totals, refit.payload(), lower_bound(refit), published, {}};
  result.wire = refit.wire;
  result.quantised = quantised_where(refit);
  result.live_bytes = refit.largest_live_share();
  if (link_steps > 0) result.links = refit.fabric.links();
  std::vector<std::future<PolicyRow>> rows;
  for (const std::string& name : names) {
    rows.push_back(std::async(std::launch::async, [&, policy = find_policy(name)] {
      const bool other_refit = policy->name == balanced_quantized && !refit.sources_quantise();
      if (other_refit && variant != nullptr) return run_variant(*variant, *policy, calibration, link_steps);
      return run_policy(refit, *policy, calibration, result.bound, {}, sim::Detail::terms, link_steps);
    }));
  }
  for (std::future<PolicyRow>& row : rows) result.policies.push_back(row.get());
  return result;
}

}  // namespace isthmus::report

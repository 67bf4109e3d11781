#include "report/comparison.hpp"

#include <algorithm>
#include <chrono>
#include <future>

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

bool same_constants(const Calibration& a, const Calibration& b) {
  const std::vector<ConstantField>& fields = calibration_fields();
  return std::all_of(fields.begin(), fields.end(), [&](const ConstantField& field) {
    return (a.*field.member).value == (b.*field.member).value;
  });
}

/// `stages`: one calibration after the other; where nothing changed, nothing is simulated again.
void predict(const Refit& refit, const Plan& plan, const Calibration& calibration, const LowerBound& bound,
             const std::vector<Calibration>& stages, std::size_t link_steps, PolicyRow& row) {
  const Operations operations = expand(refit, plan);
  const sim::Simulator simulator(refit, operations);
  sim::Prediction full = simulator.run(calibration, sim::Detail::terms);
  const sim::Prediction wire = simulator.run(wire_only());
  row.seconds = seconds(full.time);
  if (full.outcome.stopped()) {
    row.stopped = fmt::format("stopped at {:.6f} s: {} operations failed, {} never started", row.seconds,
                              full.outcome.failed.size(), full.outcome.never_started.size());
  }
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

}  // namespace

PolicyRow run_policy(const Refit& refit, const Policy& policy, const Calibration& calibration,
                     const LowerBound& bound, const std::vector<Calibration>& stages,
                     std::size_t link_steps) {
  PolicyRow row;
  row.policy = policy.name;
  Stopwatch watch;
  const PlanResult result = plan_under(policy, refit, calibration);
  row.plan_wall_seconds = watch.lap();
  if (const Refused* refused = std::get_if<Refused>(&result)) {
    row.refused = refused->reason;
    return row;
  }
  const Plan& plan = std::get<Plan>(result);
  Proof proof = check(refit, plan);
  row.check_wall_seconds = watch.lap();
  row.proven = proof.proven();
  row.violations = std::move(proof.violations);
  row.full_tensor_materialised = proof.full_tensor_materialised;
  if (row.proven) predict(refit, plan, calibration, bound, stages, link_steps, row);
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
                   std::size_t link_steps) {
  Comparison result{
      refit.name, calibration.name, refit.totals, refit.payload(), lower_bound(refit), published, {}};
  result.wire = refit.wire;
  result.live_bytes = refit.largest_live_share();
  if (link_steps > 0) result.links = refit.fabric.links();
  std::vector<std::future<PolicyRow>> rows;
  for (const std::string& name : names) {
    rows.push_back(std::async(std::launch::async, [&, policy = find_policy(name)] {
      return run_policy(refit, *policy, calibration, result.bound, {}, link_steps);
    }));
  }
  for (std::future<PolicyRow>& row : rows) result.policies.push_back(row.get());
  return result;
}

}  // namespace isthmus::report

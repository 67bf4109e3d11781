#include "report/failure.hpp"

#include <algorithm>
#include <future>

#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policies/local_puts.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

constexpr double day_seconds = 86'400, month_days = 30;

/// What the fault costs with the plan of one policy.
class FailureJudge {
 public:
  FailureJudge(const Refit& refit, const Calibration& calibration, const FailureQuestion& question)
      : refit_(refit), calibration_(calibration), question_(question) {}

  FailureRow run(const Policy& policy) const {
    FailureRow row;
    row.policy = policy.name;
    const PlanResult made = plan_under(policy, refit_, calibration_);
    if (const Refused* refused = std::get_if<Refused>(&made)) {
      row.refused = refused->reason;
      return row;
    }
    const Plan& plan = std::get<Plan>(made);
    if (const Proof proof = check(refit_, plan); !proof.proven()) {
      row.refused = "not proven: " + proof.violations.front().message;
      return row;
    }
    predict(plan, row);
    return row;
  }

 private:
  void predict(const Plan& plan, FailureRow& row) const {
    const Operations operations = expand(refit_, plan);
    Disturbances disturbances = refit_.disturbances;
    disturbances.faults.clear();
    const sim::Simulator healthy(refit_, operations, disturbances);
    row.healthy_seconds = seconds(healthy.run(calibration_).time);
    row.deadline_seconds = row.healthy_seconds;
    disturbances = refit_.disturbances;
    disturbances.faults.push_back(question_.fault);
    for (const FailedSteps rule : question_.rules) {
      disturbances.failed_steps.policy = rule;
      FailureRun run;
      run.rule = rule;
      sim::Prediction prediction = sim::Simulator(refit_, operations, disturbances).run(calibration_);
      run.seconds = seconds(prediction.time);
      run.outcome = std::move(prediction.outcome);
      run.arrivals = sim::arrivals(refit_, plan, operations, run.outcome);
      if (!run.outcome.stopped()) row.deadline_seconds = std::max(row.deadline_seconds, run.seconds);
      row.runs.push_back(std::move(run));
    }
    const double timeout = seconds(refit_.disturbances.failed_steps.timeout);
    row.deadline_seconds += timeout;
    for (FailureRun& run : row.runs) add_cost(row, timeout, run);
  }

  void add_cost(FailureRow& row, double timeout, FailureRun& run) const {
    if (run.outcome.stopped()) {
      const double back = question_.fault.until ? seconds(*question_.fault.until) : 0;
      run.lost_seconds = std::max(run.seconds + timeout, back);
    } else {
      run.lost_seconds = run.seconds - row.healthy_seconds;
    }
    const double period = row.healthy_seconds + seconds(question_.interval);
    if (period <= 0) return;
    row.healthy_refits_per_month = month_days * day_seconds / period;
    const double hit = row.healthy_seconds / period;
    const double lost_share = question_.failures_per_day * hit * run.lost_seconds / day_seconds;
    run.goodput = std::max(0.0, 1 - lost_share);
    run.refits_per_month = row.healthy_refits_per_month * run.goodput;
  }

  const Refit& refit_;
  const Calibration& calibration_;
  const FailureQuestion& question_;
};

}  // namespace

std::size_t FailureRun::serving(sim::Serves what) const {
  return to_size(std::count_if(arrivals.begin(), arrivals.end(),
                               [what](const sim::RankArrival& each) { return each.serves == what; }));
}

FailureReport judge_failure(const Refit& refit, const Calibration& calibration,
                            const std::vector<std::string>& policies, const FailureQuestion& question) {
  FailureReport report{refit.name, calibration.name, question, refit.disturbances.failed_steps.timeout};
  const FailureJudge judge(refit, calibration, report.question);
  std::vector<std::future<FailureRow>> rows;
  for (const std::string& name : policies) {
    rows.push_back(
        std::async(std::launch::async, [&judge, policy = find_policy(name)] { return judge.run(*policy); }));
  }
  for (std::future<FailureRow>& row : rows) report.rows.push_back(row.get());
  return report;
}

}  // namespace isthmus::report

#include "report/membership.hpp"

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policies/local_puts.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

/// A constant with its interval, and sums of them.
struct CostRange {
  double value = 0, low = 0, high = 0;

  void add(const Constant& constant) {
    value += constant.value;
    low += constant.low;
    high += constant.high;
  }
};

PlannedMove planned(const Refit& refit, const std::string& policy, const Calibration& calibration) {
  PlannedMove move;
  move.policy = policy;
  const PlanResult made = plan_under(*find_policy(policy), refit, calibration);
  if (const Refused* refused = std::get_if<Refused>(&made)) {
    move.refused = refused->reason;
    return move;
  }
  const Plan& plan = std::get<Plan>(made);
  if (const Proof proof = check(refit, plan); !proof.proven()) {
    move.refused = "not proven: " + proof.violations.front().message;
    return move;
  }
  move.seconds = seconds(sim::simulate(refit, expand(refit, plan), calibration).time);
  return move;
}

std::vector<PlannedMove> planned_by_all(const Refit& refit, const std::vector<std::string>& policies,
                                        const Calibration& calibration) {
  std::vector<std::future<PlannedMove>> running;
  for (const std::string& policy : policies)
    running.push_back(std::async(
        std::launch::async, [&refit, &policy, &calibration] { return planned(refit, policy, calibration); }));
  std::vector<PlannedMove> moves;
  for (std::future<PlannedMove>& each : running) moves.push_back(each.get());
  return moves;
}

/// Generation GPUs of the new membership that lack something, and others that send.
void count_busy(const CatchUp& catch_up, const Refit& after, CatchUpRow& row) {
  std::set<Rank> needing, sending;
  for (const RefitEntry& entry : catch_up.refit.tensors) {
    const Geometry& geometry = catch_up.refit.geometries[entry.geometry];
    for (const Rank rank : geometry.target.mesh.ranks) needing.insert({entry.target_base.value + rank.value});
    for (const Rank rank : geometry.source.mesh.ranks) sending.insert({entry.source_base.value + rank.value});
  }
  for (std::size_t r = after.train_ranks; r < after.members(); ++r) {
    const Rank rank{static_cast<std::uint32_t>(r)};
    row.needing_gpus += needing.contains(rank) ? 1 : 0;
    row.busy_gpus += sending.contains(rank) && !needing.contains(rank) ? 1 : 0;
  }
}

/// Phases one after the other; those without a length are left out.
class WayTimeline {
 public:
  void add(std::string what, double length, int serving) {
    if (length <= 0) return;
    phases_.push_back({std::move(what), now_, now_ + length, serving});
    now_ += length;
  }
  double now() const { return now_; }
  std::vector<MembershipPhase> take() { return std::move(phases_); }

 private:
  double now_ = 0;
  std::vector<MembershipPhase> phases_;
};

class MembershipStudy {
 public:
  MembershipStudy(const Scenario& scenario, const Refit& before, const Calibration& calibration,
                  const MembershipCosts& costs, const MembershipQuestion& question)
      : scenario_(scenario),
        before_(before),
        calibration_(calibration),
        costs_(costs),
        after_(change_membership(scenario, before, question.change)) {
    report_.scenario = scenario.name;
    report_.calibration = calibration.name;
    report_.question = question;
    report_.train_before = scenario.train->gpus;
    report_.generate_before = scenario.generate->gpus;
    report_.train_after = after_.scenario.train->gpus;
    report_.generate_after = after_.scenario.generate->gpus;
    report_.idle = after_.idle;
  }

  MembershipReport run() {
    for (const RefitEntry& entry : after_.refit.tensors) {
      const Layout& target = after_.refit.geometries[entry.geometry].target;
      for (const Region& region : target.regions()) report_.full_bytes += target.bytes(region);
    }
    report_.catch_ups.push_back(caught(CatchUpFrom::own_side));
    if (moves()) report_.catch_ups.push_back(caught(CatchUpFrom::other_side));
    for (const PlannedMove& refit : planned_by_all(after_.refit, report_.question.policies, calibration_)) {
      if (!change().empty()) add_way(Way::recreate, refit);
      add_way(Way::shrink_grow, refit);
    }
    add_spares();
    count_losses();
    return std::move(report_);
  }

 private:
  const MembershipChange& change() const { return report_.question.change; }
  bool moves() const {
    const CatchUpRow& first = report_.catch_ups.front();
    return first.tensors > 0 || !first.refused.empty();
  }

  CatchUpRow caught(CatchUpFrom from) const {
    const CatchUp catch_up = isthmus::catch_up(before_, after_.refit, change().leave, from);
    CatchUpRow row;
    row.from = from;
    row.refused = catch_up.refused;
    row.moved = catch_up.moved;
    row.kept = catch_up.kept;
    row.needed = catch_up.needed;
    row.tensors = catch_up.refit.tensors.size();
    if (!row.refused.empty()) return row;
    const std::vector<std::string> faults = catch_up_faults(before_, after_.refit, change().leave, catch_up);
    if (!faults.empty()) row.refused = "not proven: " + faults.front();
    if (!faults.empty() || catch_up.nothing_moves()) return row;
    count_busy(catch_up, after_.refit, row);
    std::vector<std::string> policies = report_.question.policies;
    if (std::find(policies.begin(), policies.end(), "p2p") == policies.end()) policies.emplace_back("p2p");
    row.plans = planned_by_all(catch_up.refit, policies, calibration_);
    return row;
  }

  void add_way(Way way, const PlannedMove& refit) {
    WayRow row{way, refit.policy, refit.refused};
    const CatchUpRow* const catch_up = report_.chosen();
    if (row.refused.empty() && moves() && catch_up == nullptr) row.refused = no_catch_up();
    if (row.refused.empty()) lay_out(refit.seconds, moves() ? catch_up : nullptr, row);
    report_.ways.push_back(std::move(row));
  }

  std::string no_catch_up() const {
    std::string reason = report_.catch_ups.front().refused;
    for (const PlannedMove& plan : report_.catch_ups.front().plans) reason = plan.refused;
    return "no catch-up: " + reason;
  }

  void lay_out(double refit_seconds, const CatchUpRow* catch_up, WayRow& row) {
    const bool leaves = !change().leave.empty();
    const bool joins = !change().join_generate.empty() || !change().join_train.empty();
    const double moving = catch_up == nullptr ? 0 : catch_up->fastest()->seconds;
    const int whole = report_.generate_after - (catch_up == nullptr ? 0 : catch_up->needing_gpus);
    const int spare = row.way == Way::spares ? spare_gpus_ : 0;
    const auto serving = [&](int gpus) { return std::min(gpus + spare, wanted()); };
    WayTimeline timeline;
    CostRange ready, extra;
    const auto pay = [&](const char* what, const Constant& constant, int gpus) {
      ready.add(constant);
      timeline.add(what, constant.value, gpus);
    };
    if (row.way == Way::recreate) {
      pay("destroy communicators", costs_.communicator_destroy_time, 0);
      pay("create communicators", costs_.communicator_create_time, 0);
      extra.add(costs_.first_refit_after_create);
    } else if (leaves || joins) {
      if (leaves) pay("shrink communicators", costs_.communicator_shrink_time, 0);
      if (joins) pay("grow communicators", costs_.communicator_grow_time, 0);
      const Constant &shrunk = costs_.first_refit_after_shrink, &grown = costs_.first_refit_after_grow;
      extra.add(leaves && (!joins || shrunk.value >= grown.value) ? shrunk : grown);
    }
    if (row.way == Way::spares) {  // beside what communicators take
      const Constant& takeover = costs_.spare_takeover_time;
      timeline.add("spares take over", takeover.value - timeline.now(), whole);
      ready = {std::max(ready.value, takeover.value), std::max(ready.low, takeover.low),
               std::max(ready.high, takeover.high)};
    }
    if (catch_up != nullptr) timeline.add("catch up", moving, serving(whole - catch_up->busy_gpus));
    const double next = report_.question.next_refit;
    timeline.add("wait for the refit", next - timeline.now(), serving(report_.generate_after));
    timeline.add("first refit", refit_seconds + extra.value, 0);
    const auto ended = [&](double before, double after) {
      return std::max(next, before + moving) + refit_seconds + after;
    };
    row.refit_seconds = refit_seconds;
    row.seconds = ended(ready.value, extra.value);
    row.low = ended(ready.low, extra.low);
    row.high = ended(ready.high, extra.high);
    row.phases = timeline.take();
  }

  int wanted() const { return std::max(report_.generate_before, report_.generate_after); }

  /// Replicas that stood by and have got every refit stand in for those that are lost.
  void add_spares() {
    const int staying = serving_without(scenario_, before_, change().leave);
    const int lost = report_.generate_before - staying;
    if (lost <= 0) {
      if (!change().empty()) report_.ways.push_back({Way::spares, "", "no generation replica is lost"});
      return;
    }
    const auto per_host = static_cast<int>(before_.fabric.gpus_on({0}));
    Scenario larger = scenario_;
    if (!choose_spares((lost + per_host - 1) / per_host, larger)) return;
    const Refit before = resolve(larger);
    MembershipChange with_spares = change();
    with_spares.join_generate.insert(with_spares.join_generate.end(), report_.spares.begin(),
                                     report_.spares.end());
    const Membership membership = change_membership(larger, before, with_spares);
    spare_gpus_ = membership.scenario.generate->gpus - report_.generate_after;
    for (const PlannedMove& refit : planned_by_all(membership.refit, report_.question.policies, calibration_))
      add_way(Way::spares, refit);
  }

  /// Hosts that nobody uses, then further ones of the same kind.
  bool choose_spares(int count, Scenario& larger) {
    const std::vector<int>& joining = change().join_generate;
    for (const int host : free_hosts(before_)) {
      const bool joins = std::find(joining.begin(), joining.end(), host) != joining.end() ||
                         std::find(change().join_train.begin(), change().join_train.end(), host) !=
                             change().join_train.end();
      if (!joins && static_cast<int>(report_.spares.size()) < count) report_.spares.push_back(host);
    }
    const int missing = count - static_cast<int>(report_.spares.size());
    if (missing == 0) return true;
    if (!larger.fabric.parts.empty()) {
      report_.ways.push_back(
          {Way::spares, "", fmt::format("{} hosts for spares, and no part of the fabric has more", count)});
      return false;
    }
    for (int i = 0; i < missing; ++i)
      report_.spares.push_back(static_cast<int>(before_.fabric.host_count()) + i);
    larger.fabric.hosts += missing;
    return true;
  }

  void count_losses() {
    double end = 0;
    for (const WayRow& row : report_.ways) end = std::max(end, row.seconds);
    for (WayRow& row : report_.ways) {
      if (!row.refused.empty()) continue;
      for (const MembershipPhase& phase : row.phases)
        row.lost_gpu_seconds += (phase.end - phase.begin) * (wanted() - phase.serving);
      const int spare = row.way == Way::spares ? spare_gpus_ : 0;
      const int serving = std::min(report_.generate_after + spare, wanted());
      row.lost_gpu_seconds += (end - row.seconds) * (wanted() - serving);
    }
  }

  const Scenario& scenario_;
  const Refit& before_;
  const Calibration& calibration_;
  const MembershipCosts& costs_;
  Membership after_;
  MembershipReport report_;
  int spare_gpus_ = 0;
};

}  // namespace

std::string_view to_string(Way way) {
  switch (way) {
    case Way::recreate: return "recreate";
    case Way::shrink_grow: return "shrink/grow";
    case Way::spares: return "spares";
  }
  return "";
}

const PlannedMove* CatchUpRow::fastest() const {
  const PlannedMove* best = nullptr;
  for (const PlannedMove& plan : plans)
    if (plan.refused.empty() && (best == nullptr || plan.seconds < best->seconds)) best = &plan;
  return best;
}

const CatchUpRow* MembershipReport::chosen() const {
  const CatchUpRow* best = nullptr;
  for (const CatchUpRow& row : catch_ups) {
    const PlannedMove* const plan = row.fastest();
    if (plan != nullptr && (best == nullptr || plan->seconds < best->fastest()->seconds)) best = &row;
  }
  return best;
}

const WayRow* MembershipReport::fastest() const {
  const WayRow* best = nullptr;
  for (const WayRow& row : ways) {
    if (!row.refused.empty()) continue;
    if (best == nullptr ||
        std::pair(row.seconds, row.lost_gpu_seconds) < std::pair(best->seconds, best->lost_gpu_seconds))
      best = &row;
  }
  return best;
}

MembershipReport judge_membership(const Scenario& scenario, const Refit& before,
                                  const Calibration& calibration, const MembershipCosts& costs,
                                  const MembershipQuestion& question) {
  return MembershipStudy(scenario, before, calibration, costs, question).run();
}

}  // namespace isthmus::report

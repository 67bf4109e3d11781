#include "report/explain.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/traffic_rules.hpp"
#include "planner/check.hpp"
#include "planner/policies/local_puts.hpp"
#include "report/sweep_crew.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

constexpr std::size_t most_resources = 6;

std::string_view kind_text(const Operation& operation) {
  switch (operation.kind) {
    case StepKind::send: return "sends";
    case StepKind::put: return "writes into peers";
    case StepKind::copy: return "copies";
    case StepKind::pack: return "packs";
    case StepKind::unpack: return "unpacks";
    case StepKind::broadcast: return "broadcasts";
    case StepKind::all_gather: return "gathers";
    case StepKind::load: return "loads";
    case StepKind::quantize: return "quantises";
  }
  return "operations";
}

std::string what_text(const Refit& refit, const Operation& operation) {
  const Fabric& fabric = refit.fabric;
  const DomainId from = fabric.domain_of(refit.gpu(operation.source));
  const DomainId to = fabric.domain_of(refit.gpu(operation.target));
  std::string text(kind_text(operation));
  if (operation.kind == StepKind::send) text += from == to ? " over NVLink" : " over the network";
  const bool bulk = operation.bulk_bytes.value * 2 >= operation.bytes.value && operation.bulk_bytes.value > 0;
  return text + (bulk ? ", bulk" : ", misc");
}

std::vector<PathSegment> path_of(const Refit& refit, const Operations& operations, const Timeline& timeline) {
  std::vector<PathSegment> path;
  std::map<std::uint32_t, std::size_t> hosts;
  const auto name_host = [&] {
    if (path.empty()) return;
    const auto most = std::max_element(hosts.begin(), hosts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    path.back().mostly = fmt::format("host {}", most->first);
    hosts.clear();
  };
  for (const std::uint32_t index : timeline.critical_path()) {
    const Operation& operation = operations.list[index];
    std::string what = what_text(refit, operation);
    if (path.empty() || path.back().what != what) {
      name_host();
      path.push_back({timeline.spans[index].ready, {}, std::move(what), 0, {}, ""});
    }
    PathSegment& segment = path.back();
    segment.end = timeline.spans[index].end;
    segment.bytes += operation.bytes;
    ++segment.operations;
    ++hosts[refit.fabric.host_of(refit.gpu(operation.target)).value];
  }
  name_host();
  return path;
}

/// The longest few, in the order of time.
std::vector<PathSegment> longest(std::vector<PathSegment> path, std::size_t most) {
  if (path.size() <= most) return path;
  std::vector<Duration> lengths;
  for (const PathSegment& each : path) lengths.push_back(each.end - each.begin);
  std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(most - 1), lengths.end(),
                   [](Duration a, Duration b) { return a > b; });
  const Duration least = lengths[most - 1];
  std::erase_if(path, [&](const PathSegment& each) { return each.end - each.begin < least; });
  return path;
}

std::vector<ConstantCost> constant_costs(const sim::Simulator& simulator, const Calibration& calibration,
                                         double all) {
  std::vector<ConstantCost> costs;
  for (const ConstantField& field : calibration_fields()) {
    Calibration ideal = calibration;
    double& value = (ideal.*field.member).value;
    const double best = field.unit == "ratio" ? 1
                        : field.unit == "s"   ? 0
                                              : std::numeric_limits<double>::infinity();
    if (value == best) continue;
    value = best;
    const double without = seconds(simulator.run(ideal).time);
    if (without != all) costs.push_back({std::string(field.key), without});
  }
  std::stable_sort(costs.begin(), costs.end(),
                   [](const ConstantCost& a, const ConstantCost& b) { return a.seconds < b.seconds; });
  return costs;
}

std::vector<ResourceUse> busiest(const Refit& refit, const Calibration& calibration,
                                 const sim::Prediction& prediction) {
  std::vector<ResourceUse> uses;
  const std::vector<Link>& links = refit.fabric.links();
  for (std::size_t l = 0; l < links.size(); ++l) {
    const Bytes bytes = prediction.timeline.link_bytes[l];
    if (bytes.value > 0) uses.push_back({links[l].name, seconds(bytes / calibration.achieved(links[l]))});
  }
  for (const sim::Work& work : prediction.work) uses.push_back({work.resource, seconds(work.busy)});
  std::stable_sort(uses.begin(), uses.end(), [](const ResourceUse& a, const ResourceUse& b) {
    return a.busy_seconds > b.busy_seconds;
  });
  uses.resize(std::min(uses.size(), most_resources));
  return uses;
}

void predict_all(const ReadScenario& read, std::vector<ChangeRow>& rows, std::size_t threads) {
  run_jobs(rows.size(), threads, [&](std::size_t job) { predict_change(read, rows[job]); });
  std::stable_sort(rows.begin(), rows.end(), [](const ChangeRow& a, const ChangeRow& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.refused.empty() && a.seconds < b.seconds;
  });
}

/// The fastest policy of all.
std::string fastest_policy(const ReadScenario& read, std::size_t threads) {
  std::vector<ChangeRow> rows;
  for (std::string& name : listed_policies(sources_quantise(read({}))))
    rows.push_back({"", {}, std::move(name), "", 0});
  predict_all(read, rows, threads);
  return rows.front().policy;
}

}  // namespace

void predict_change(const ReadScenario& read, ChangeRow& row) {
  try {
    const Scenario scenario = read(row.settings);
    const Calibration calibration =
        read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
    const PolicyRow predicted = time_policy(resolve(scenario), *find_policy(row.policy), calibration);
    row.seconds = predicted.seconds;
    row.refused = predicted.refused;
    if (row.refused.empty() && !predicted.proven) row.refused = "the plan could not be proven";
  } catch (const InputError& error) {
    row.refused = fmt::format("{}: {}", error.where().key, error.message());
  }
}

std::vector<PathSegment> critical_segments(const Refit& refit, const Operations& operations,
                                           const Timeline& timeline, std::size_t most) {
  return longest(path_of(refit, operations, timeline), most);
}

Explanation explain(const ReadScenario& read, const std::string& policy, std::size_t threads) {
  const Scenario scenario = read({});
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit refit = resolve(scenario);
  Explanation result;
  result.scenario = scenario.name;
  result.calibration = calibration.name;
  result.policy = policy.empty() ? fastest_policy(read, threads) : policy;
  const PlanResult made = plan_under(*find_policy(result.policy), refit, calibration);
  if (const Refused* refused = std::get_if<Refused>(&made))
    throw InputError({"--policy", 0, ""},
                     fmt::format("{}, which refuses: {}", result.policy, refused->reason),
                     "a policy that serves this refit");
  const Plan& plan = std::get<Plan>(made);
  const Proof proof = check(refit, plan);
  ISTHMUS_ASSERT(proof.proven(), "{} made a plan that is not proven", result.policy);
  const LowerBound bound = lower_bound(refit);
  result.lower_bound_seconds = seconds(bound.time);
  result.lower_bound_binding = bound.binding;
  const Operations operations = expand(refit, plan);
  const sim::Simulator simulator(refit, operations);
  sim::Prediction prediction = simulator.run(calibration, sim::Detail::terms);
  result.seconds = seconds(prediction.time);
  result.binding_resource = prediction.binding_resource;
  result.path = critical_segments(refit, operations, prediction.timeline);
  result.constants = constant_costs(simulator, calibration, result.seconds);
  result.wire_only_seconds = seconds(simulator.run(wire_only()).time);
  result.resources = busiest(refit, calibration, prediction);
  result.terms = std::move(prediction.terms);
  result.changes = single_changes(scenario, refit.fabric, result.policy);
  predict_all(read, result.changes, threads);
  return result;
}

}  // namespace isthmus::report

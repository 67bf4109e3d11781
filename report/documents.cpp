#include "report/documents.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/policy.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Refit& refit, const Verdict& verdict) {
  if (!verdict.refused.empty()) return {{"policy", verdict.policy}, {"refused", verdict.refused}};
  Json violations = Json::array();
  for (const Violation& violation : verdict.proof.violations) {
    const std::size_t tensor = violation.tensor.index();
    violations.push_back({{"kind", to_string(violation.fault)},
                          {"tensor", tensor < refit.tensors.size() ? refit.tensors[tensor].tensor.name : ""},
                          {"element", violation.element},
                          {"steps", violation.steps},
                          {"message", violation.message}});
  }
  return {{"policy", verdict.policy},
          {"proven", verdict.proof.proven()},
          {"steps", verdict.proof.steps_checked},
          {"target_bytes", verdict.proof.target_bytes.value},
          {"full_tensor_materialised", verdict.proof.full_tensor_materialised},
          {"violation_count", verdict.proof.violation_count},
          {"violations", std::move(violations)}};
}

std::string to_text(const Verdict& verdict) {
  if (!verdict.refused.empty()) return fmt::format("{}: refused: {}\n", verdict.policy, verdict.refused);
  const Proof& proof = verdict.proof;
  if (proof.proven()) {
    return fmt::format("{}: proven: {} steps write {} of target shards, each element exactly once{}\n",
                       verdict.policy, proof.steps_checked, size_text(proof.target_bytes),
                       proof.full_tensor_materialised ? "; some rank holds a full tensor on the way" : "");
  }
  std::string text = fmt::format("{}: not proven: {} violations\n", verdict.policy, proof.violation_count);
  for (const Violation& violation : proof.violations) text += fmt::format("  {}\n", violation.message);
  return text;
}

}  // namespace

std::string bound_document(const Refit& refit, const LowerBound& bound, bool json) {
  if (json) {
    const Json document{{"scenario", refit.name},
                        {"lower_bound_seconds", seconds(bound.time)},
                        {"lower_bound_any_route_seconds", seconds(bound.any_route)},
                        {"binding", bound.binding},
                        {"cut_bytes", bound.cut_bytes.value},
                        {"cut_bytes_per_second", bound.cut_capacity.value}};
    return document.dump(2) + "\n";
  }
  return fmt::format(
      "{}: no plan is faster than {:.6f} s ({}); {:.6f} s if traffic inside a domain may leave it\n",
      refit.name, seconds(bound.time), bound.binding.empty() ? "nothing has to move" : bound.binding,
      seconds(bound.any_route));
}

bool Verdicts::all_proven() const {
  return std::all_of(list.begin(), list.end(), [](const Verdict& verdict) {
    return !verdict.refused.empty() || verdict.proof.proven();
  });
}

Verdicts verify(const Refit& refit, const std::vector<std::string>& policies) {
  Verdicts verdicts;
  for (const std::string& name : policies) {
    const PlanResult result = find_policy(name)->make(refit);
    if (const Refused* refused = std::get_if<Refused>(&result)) {
      verdicts.list.push_back({name, refused->reason, {}});
    } else {
      verdicts.list.push_back({name, "", check(refit, std::get<Plan>(result))});
    }
  }
  return verdicts;
}

std::string verdict_document(const Refit& refit, const Verdicts& verdicts, bool json) {
  if (json) {
    Json policies = Json::array(), violations = Json::array();
    for (const Verdict& verdict : verdicts.list) {
      policies.push_back(to_json(refit, verdict));
      if (!policies.back().contains("violations")) continue;
      for (const Json& violation : policies.back()["violations"]) violations.push_back(violation);
    }
    const Json document{{"scenario", refit.name},
                        {"proven", verdicts.all_proven()},
                        {"violations", std::move(violations)},
                        {"policies", std::move(policies)}};
    return document.dump(2) + "\n";
  }
  std::string text;
  for (const Verdict& verdict : verdicts.list) text += to_text(verdict);
  return text;
}

}  // namespace isthmus::report

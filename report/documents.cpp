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

std::string bound_document(const Refit& refit, const CertifiedBound& certified, bool json) {
  const LowerBound& bound = certified.bound;
  const std::string relay = refit.settings.relay == Relay::any ? "any" : "members";
  if (json) {
    const Json document{{"scenario", refit.name},
                        {"lower_bound_seconds", seconds(bound.time)},
                        {"lower_bound_any_route_seconds", seconds(bound.any_route)},
                        {"binding", bound.binding},
                        {"cut_bytes", bound.cut_bytes.value},
                        {"cut_bytes_per_second", bound.cut_capacity.value},
                        {"relay", relay},
                        {"verified", certified.verified()},
                        {"refusal", certified.refusal},
                        {"linear_program_solved", certified.program_solved},
                        {"linear_program_tighter", certified.program_tighter}};
    return document.dump(2) + "\n";
  }
  std::string text = fmt::format(
      "{}: no plan is faster than {:.6f} s ({}); {:.6f} s if traffic inside a domain may leave it\n",
      refit.name, seconds(bound.time), bound.binding.empty() ? "nothing has to move" : bound.binding,
      seconds(bound.any_route));
  text += certified.verified() ? "certificate verified" : "certificate not verified: " + certified.refusal;
  text += certified.program_tighter  ? "; the linear program with relays is tighter than every cut"
          : certified.program_solved ? "; the linear program with relays gives no more than the cut"
                                     : "; too large for the linear program with relays";
  return text + (relay == "any" ? "; any GPU may relay\n" : "; only GPUs of both sides may relay\n");
}

namespace {

Json prices_json(const std::vector<LinkPrice>& prices) {
  Json list = Json::array();
  for (const LinkPrice& each : prices) list.push_back({each.link.value, each.price});
  return list;
}

Json gpus_json(const std::vector<GpuId>& gpus) {
  Json list = Json::array();
  for (const GpuId gpu : gpus) list.push_back(gpu.value);
  return list;
}

Json certificate_json(const Refit& refit, const BoundCertificate& certificate) {
  Json wire = Json::array(), links = Json::array(), splits = Json::array();
  for (const Dtype dtype : certificate.model.wire) wire.push_back(to_string(dtype));
  for (const LinkPrice& each : certificate.prices) {
    const Link& link = refit.fabric.links()[each.link.index()];
    links.push_back({{"link", each.link.value},
                     {"name", link.name},
                     {"bytes_per_second", link.nominal.value},
                     {"price", each.price}});
  }
  for (const PriceSplit& split : certificate.splits) {
    Json shares = Json::array();
    for (const PriceSplit::Share& share : split.shares) {
      shares.push_back({{"receiver", share.receiver.value}, {"prices", prices_json(share.prices)}});
    }
    splits.push_back({{"holders", gpus_json(split.holders)},
                      {"receivers", gpus_json(split.receivers)},
                      {"shares", std::move(shares)}});
  }
  return {{"seconds", seconds(certificate.time)},
          {"picoseconds", certificate.time.value},
          {"model",
           {{"unicast", certificate.model.unicast},
            {"detours", certificate.model.detours},
            {"relay", certificate.model.relay == Relay::any ? "any" : "members"},
            {"wire", std::move(wire)},
            {"quantized", to_string(certificate.model.quantised)},
            {"receiver_quantises", certificate.model.quantised == Quantised::target}}},
          {"classes", certificate.classes},
          {"bytes", certificate.bytes.value},
          {"priced_capacity", fmt::format("{}", certificate.priced_capacity)},
          {"prices", std::move(links)},
          {"splits", std::move(splits)}};
}

}  // namespace

std::string certificate_document(const Refit& refit, const CertifiedBound& bound) {
  const Json document{{"scenario", refit.name},
                      {"verified", bound.verified()},
                      {"certificate", certificate_json(refit, bound.certificate)},
                      {"any_route_certificate", certificate_json(refit, bound.any_route)}};
  return document.dump(2) + "\n";
}

bool Verdicts::all_proven() const {
  return std::all_of(list.begin(), list.end(), [](const Verdict& verdict) {
    return !verdict.refused.empty() || verdict.proof.proven();
  });
}

Verdicts verify(const Refit& refit, const std::vector<std::string>& policies, const SourceVariant* variant) {
  Verdicts verdicts;
  for (const std::string& name : policies) {
    const bool other_refit = variant != nullptr && name == balanced_quantized && !refit.sources_quantise();
    if (other_refit && !variant->refit) {
      verdicts.list.push_back({name, variant->refused, {}});
      continue;
    }
    const Refit& planned = other_refit ? *variant->refit : refit;
    const PlanResult result = find_policy(name)->make(planned);
    if (const Refused* refused = std::get_if<Refused>(&result)) {
      verdicts.list.push_back({name, refused->reason, {}});
    } else {
      verdicts.list.push_back({name, "", check(planned, std::get<Plan>(result))});
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

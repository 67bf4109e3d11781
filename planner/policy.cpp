#include "planner/policy.hpp"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "planner/installs.hpp"
#include "planner/policies/rail_hops.hpp"
#include "planner/quantising.hpp"

namespace isthmus {
namespace {

/// For policies that send from any source to any target, whatever lies between.
template <PlanResult (*make)(const Refit&)>
PlanResult where_joined(const Refit& refit) {
  if (rails_joined(refit)) return make(refit);
  return Refused{"nothing joins the rails of this fabric, and it sends across them"};
}

/// A policy's plan, with what engines do after it.
template <PlanResult (*make)(const Refit& refit)>
PlanResult installed(const Refit& refit) {
  if (refit.sources_quantise() && make != plan_balanced_quantized)
    return Refused{fmt::format("it sends what sources hold, which is BF16; refit.quantize_at: target, or {}",
                               balanced_quantized)};
  PlanResult result = make(refit);
  if (Plan* plan = std::get_if<Plan>(&result)) return with_installs(refit, std::move(*plan));
  return result;
}

}  // namespace

const std::vector<Policy>& policies() {
  static const std::vector<Policy> all{
      {"golden", "broadcast every shard to every GPU, one after another (the field's functional reference)",
       installed<where_joined<plan_golden>>, Program::python},
      {"gather-broadcast",
       "gather each full tensor, broadcast it packed to every GPU, load (the conventional refit)",
       installed<where_joined<plan_gather_broadcast>>},
      {"p2p", "every overlap once to each target replica, from the first holder (the naive plan)",
       installed<where_joined<plan_p2p>>, Program::python},
      {"striped", "each byte once to a group of replicas, which gather or broadcast it (NeMo RL's reshard)",
       installed<where_joined<plan_striped>>, Program::python},
      {"m2n-uniform",
       "NCCL M2N: leaders, chains and NVLink copies of bulk tensors, replicas matched by number; misc packed",
       installed<where_joined<plan_m2n_uniform>>, Program::native},
      {"m2n-node-aware", "the same, replicas matched by NVLink domain, in two phases (M2N's default)",
       installed<where_joined<plan_m2n_node_aware>>, Program::native},
      {"balanced", "every tensor by regions, each byte into a domain once, relays, one global order (ours)",
       installed<plan_balanced>},
  };
  return all;
}

const Policy& quantising_policy() {
  static const Policy policy{
      balanced_quantized,
      "balanced, of what sources quantise to MXFP8 first (half the bytes); where generate.quantize is set",
      installed<plan_balanced_quantized>};
  return policy;
}

std::vector<std::string> listed_policies(bool quantised) {
  std::vector<std::string> names;
  for (const Policy& policy : policies()) names.emplace_back(policy.name);
  if (quantised) names.emplace_back(balanced_quantized);
  return names;
}

const Policy* find_policy(std::string_view name) {
  if (name == balanced_quantized) return &quantising_policy();
  for (const Policy& policy : policies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

}  // namespace isthmus

#include "planner/policy.hpp"

#include <utility>
#include <variant>

#include "planner/installs.hpp"
#include "planner/policies/rail_hops.hpp"

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

const Policy* find_policy(std::string_view name) {
  for (const Policy& policy : policies()) {
    if (policy.name == name) return &policy;
  }
  return nullptr;
}

}  // namespace isthmus

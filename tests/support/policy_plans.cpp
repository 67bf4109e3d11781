#include "tests/support/policy_plans.hpp"

#include <utility>
#include <variant>

#include "planner/policy.hpp"

namespace isthmus::test {

std::vector<Plan> plans_of(const Refit& refit) {
  std::vector<Plan> plans;
  for (const Policy& policy : policies()) {
    PlanResult result = policy.make(refit);
    if (Plan* plan = std::get_if<Plan>(&result)) plans.push_back(std::move(*plan));
  }
  return plans;
}

}  // namespace isthmus::test

#pragma once
// Internal to the documents on plans: one step of one instance, bound to global ranks, in words and as JSON.
// Invariant: any plan that can be read can be shown; a lane that does not exist is named by its number.
// Words: "step 3: send rank 0 source [0:2] -> rank 5 target, 4 B, lane main, group 2, after 0, 1".

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "planner/plan_file.hpp"

namespace isthmus::report {

struct PlanStep {
  const PlanFile& file;
  std::size_t instance = 0;
  std::uint32_t index = 0;

  const Instance& bound() const { return file.plan.instances[instance]; }
  const Step& step() const { return file.plan.pattern(bound()).steps[index]; }
  std::vector<Rank> ranks() const;  // that take part, source first; of collectives the members
  std::size_t lane() const { return bound().lane.index() + step().lane; }
  std::uint32_t group() const { return file.plan.group_of(bound(), index); }
};

std::string lane_text(const Plan& plan, std::size_t lane);
/// Runs of consecutive ranks: "0-3, 8".
std::string ranks_text(const std::vector<Rank>& ranks);
std::string to_text(const PlanStep& shown);
nlohmann::ordered_json to_json(const PlanStep& shown);

}  // namespace isthmus::report

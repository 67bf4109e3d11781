#pragma once
// Plans as people read them, or as JSON (docs/json.md): what a plan holds, the steps of a tensor or of a rank
// in words, and where two plans differ. Ranks are global.
// Each document ends with a newline; the JSON carries every number of the text. Sizes are bytes.
// The steps of a tensor stand in the order of their numbers, which `after` speaks of; those of a rank by lane
// and group, which is the order that the rank takes them in.

#include <optional>
#include <string>

#include "planner/plan_difference.hpp"
#include "planner/plan_file.hpp"

namespace isthmus::report {

struct PlanView {
  std::optional<Rank> rank{};        // only steps that it takes part in
  std::optional<TensorId> tensor{};  // only its steps
  bool json = false;
};
/// With neither rank nor tensor the plan as a whole, without its steps.
std::string plan_document(const PlanFile& file, const PlanView& view);

/// What `isthmus plan` wrote.
struct WrittenPlan {
  std::string file;
  std::size_t bytes = 0;
  double plan_seconds = 0, write_seconds = 0;  // wall clock
};
std::string written_plan_document(const Refit& refit, const Plan& plan, const WrittenPlan& written,
                                  bool json);

struct ComparedPlans {
  std::string first_name, second_name;  // as given
  const PlanFile &first, &second;
};
std::string plan_difference_document(const ComparedPlans& plans, const PlanDifference& difference, bool json);

}  // namespace isthmus::report

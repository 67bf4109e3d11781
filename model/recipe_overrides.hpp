#pragma once
// A scenario as overrides of a NeMo RL recipe, as its command line takes them: KEY=VALUE, one a line. Reading
// a recipe with them (model/recipe.hpp) gives the scenario's sides again.
// Invariant: only what NeMo RL's reshard refit supports is expressed; for anything else the reasons are
// given instead.

#include <string>
#include <string_view>
#include <vector>

#include "model/input_fault.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct RecipeOverrides {
  std::vector<std::string> lines;  // empty where there are reasons
  std::vector<InputFault> reasons;
  std::vector<std::string> notes;  // what of the scenario a recipe does not say
};

/// `policy` decides the transport. `gpus_per_host`: of the scenario's fabric. `experts`: the model has some.
RecipeOverrides recipe_overrides(const Scenario& scenario, std::string_view policy, int gpus_per_host,
                                 bool experts);

}  // namespace isthmus

#pragma once
// What NeMo RL's reshard refit supports, judged on a recipe alone as its own validator does: 19 rules
// (docs/validate.md numbers them), every violation at once. Rules 7 to 17 apply when Megatron is enabled, 18
// and 19 when the backend is vLLM; of 13 to 17 at most one is violated. Missing sizes count as 1.
// Source: the validator of the reshard refit in NVIDIA-NeMo/RL at 7ea279a.

#include <vector>

#include "model/input_fault.hpp"
#include "model/recipe_settings.hpp"

namespace isthmus {

std::vector<InputFault> nemo_rl_faults(const RecipeSettings& settings);

/// Those of the faults that keep the recipe from being a scenario at all: sides that share their GPUs,
/// engines other than Megatron and vLLM, layers that do not follow the pipeline's plain rule.
std::vector<InputFault> obstacles_among(const std::vector<InputFault>& faults);

}  // namespace isthmus

#pragma once
// What is said of a whole refit's scenario beyond the general rules: what NeMo RL's reshard refit would
// refuse (of recipes it is model/nemo_rl_rules.hpp), and notes, which no rule forbids.
// Sources: NeMo RL's configuration validator and meshes, which take the order tp-cp-ep-dp-pp for granted.

#include <span>
#include <string>
#include <vector>

#include "model/input_fault.hpp"
#include "model/inventory.hpp"
#include "model/refit.hpp"
#include "model/scenario.hpp"

namespace isthmus {

std::vector<InputFault> nemo_rl_scenario_faults(const Scenario& scenario);

/// etp that is not set, experts that the bulk rule does not know, k and v rows whose heads are not known.
std::vector<std::string> scenario_notes(const Scenario& scenario, const Inventory& inventory,
                                        std::span<const RefitTensor> tensors);

/// The two numbers of GPUs that the printed sizes of a mixture of experts can mean. Requires grids without
/// faults.
void note_readings(const Scenario& scenario, const Inventory& inventory, std::vector<std::string>& notes);

/// How much of its bulk tensors a generation rank of NeMo RL receives into parts of fused buffers, through
/// temporaries; nothing when none.
std::vector<std::string> fused_notes(const Refit& refit);

}  // namespace isthmus

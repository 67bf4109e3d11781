#pragma once
// Training layouts near one that does not fit a number of GPUs: with the fewest other settings (tp, ep, pp,
// or fewer or more GPUs), the given GPUs before others, then with the smallest factors between old and new.
// Each one passes the rules that `isthmus validate` has for the training side; memory is not judged.
// Where pp does not divide the layers, the stages but the first and the last have ceil(layers / pp) of them,
// as in a sweep.

#include <cstddef>
#include <string>
#include <vector>

#include "model/scenario.hpp"

namespace isthmus {

/// At most `most` of them, nearest first. Requires a whole refit whose model can be read.
std::vector<TrainSpec> nearest_train_layouts(const Scenario& scenario, int gpus, std::size_t most);
/// "96 GPUs: tp 1, ep 8, pp 4"
std::string layout_text(const TrainSpec& train);

}  // namespace isthmus

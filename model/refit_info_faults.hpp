#pragma once
// The proof that a refit description and its local maps fit each other: every element of every live buffer of
// the generation side is written exactly once, with the element that belongs there, and every training rank
// offers what the description says it holds. Lists every violation (of many alike the first, with their
// number), each with the tensor, buffer, rank and element at fault; docs/refit-info.md has the rules.
// Invariant: no fault <=> for each rank and buffer the boxes `after` tile the buffer; for each rank and
// tensor the boxes `before` cover the region that mesh and placements give; both sides have the same names in
// the same order. Without local maps only the description is judged, and a note says so.

#include <string>
#include <vector>

#include "model/input_fault.hpp"
#include "model/refit_info.hpp"

namespace isthmus {

struct RefitInfoProof {
  std::vector<InputFault> faults;
  std::vector<std::string> notes;
};

RefitInfoProof prove(const RefitInfo& info);

}  // namespace isthmus

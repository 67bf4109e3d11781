#pragma once
// Bare tensors as a file declares them, and as a refit moves them. A declaration may name several holders,
// tie a tensor to another one's source, say what ranks really hold, place it in fused buffers, and map
// physical slots to experts; it may also leave a side out. tensor_faults() lists whatever is wrong with that.
// plain_tensors() gives tensors with one source and one target layout each:
//   replicas  one source mesh whose leading, replicated axis counts the holders
//   ties      the other tensor's source; a copy
//   slots     runs of consecutive experts in consecutive slots, each a tensor that fills a part of the slots
//             (Layout::frame); a run whose experts stand in earlier slots already is a copy
// Invariant: every slot of the target is written by exactly one of the tensors that a declaration gives.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "model/input_fault.hpp"
#include "model/layout.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct PlainTensor {
  std::string name;
  Layout source, target;
  std::size_t declared = 0;  // the item of Scenario::tensors
  bool copy = false;
};

/// Every fault of the declarations, each with the key at fault.
std::vector<InputFault> tensor_faults(const Scenario& scenario);

/// Of these, the faults of fused views: on each rank those that name one base must tile it.
std::vector<InputFault> view_faults(const Scenario& scenario);

/// In declared order. Requires that tensor_faults() finds nothing.
std::vector<PlainTensor> plain_tensors(const Scenario& scenario);

/// The key of an item as the file has it: "source", or "tensors.3.source" in a list.
std::string tensor_key(const Scenario& scenario, std::size_t item, std::string_view key);

/// What ranks hold of a layout, padding and spare slots included: the layout of its frame.
Layout held_layout(const Layout& layout);

/// Consecutive slots that hold consecutive experts, all of them for the first time or none.
struct SlotRun {
  std::int64_t slot = 0, expert = 0, count = 0;
  bool copy = false;
  friend bool operator==(const SlotRun&, const SlotRun&) = default;
};
/// Requires slots in [0, experts).
std::vector<SlotRun> slot_runs(const std::vector<std::int64_t>& slots, std::int64_t experts);

}  // namespace isthmus

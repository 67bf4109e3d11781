#pragma once
// Quantising at the source: a plan of MXFP8 tensors that training holds in BF16 (RefitTensor::quantised) gets
// a step `quantize` for every step that reads a source shard, which then reads staging.
//   region  that of the reader, out to whole groups of 32 along the last dimension of values: a scale is the
//           exponent of the largest of its group, so all 32 have to be held by the rank that quantises them
//   order   on the reader's lane, two of the rank's own groups before the reader's. So it waits for nothing
//           that the reader does not wait for, adds no group to any rank (windows stay what they were), and
//           staging is taken about as long as its reader is in flight
// Invariant: a plan that check() proves but for `wrong_dtype` is proven afterwards, or is refused.

#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "planner/policy.hpp"

namespace isthmus {

/// Requires that the plan names no rank, pattern or tensor that does not exist. Refused where a source shard
/// cuts a group, where a collective reads source shards, or where staging is shared.
PlanResult with_quantising(const Refit& refit, Plan plan);

}  // namespace isthmus

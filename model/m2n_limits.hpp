#pragma once
// NCCL M2N's published limits, judged on the layouts that a refit really has (never on provisional ones), for
// the tensors that M2N would carry: those of role bulk. Per side: tensors of 1 to 3 dimensions, meshes of 1
// or 2 axes, at most one sharded axis, equal shards, ranks in one contiguous interval, apart from the other
// side's. Between the sides: a target shard meets at most 16 source shards (32 when all ranks share one
// NVLink domain), a source shard at most 64 target shards. Source: NVIDIA/nccl-extensions at 44d2de0;
// NVIDIA's documentation of M2N.

#include <string>
#include <vector>

#include "model/input_fault.hpp"
#include "model/refit.hpp"

namespace isthmus {

/// One fault per key and limit, naming the first tensor and how many others there are.
std::vector<InputFault> m2n_faults(const Scenario& scenario, const Refit& refit);
/// What is no limit: tensors whose shard is larger than the largest staging bucket, a setting (2 GiB by
/// default); and NVLink domains that M2N sees where the fabric has none, which cost network copies.
std::vector<std::string> m2n_notes(const Refit& refit);

}  // namespace isthmus

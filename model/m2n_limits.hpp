#pragma once
// NCCL M2N's published limits, judged on the layouts that a refit really has (never on provisional ones), for
// the tensors that M2N would carry: those of role bulk. Per side: tensors of 1 to 3 dimensions, meshes of 1
// or 2 axes, at most one sharded axis, equal shards, ranks in one contiguous interval, apart from the other
// side's. Between the sides: a target shard meets at most 16 source shards (32 when all ranks share one
// NVLink domain, or by the plan `direct`), a source shard at most 64 target shards (`direct`: ranks), and a
// leader passes on to at most 128 replicas in its domain. Source: NVIDIA/nccl-extensions at 44d2de0;
// NVIDIA's documentation of M2N.

#include <string>
#include <vector>

#include "model/input_fault.hpp"
#include "model/m2n_rules.hpp"
#include "model/refit.hpp"

namespace isthmus {

struct M2nFault {
  bool source = false;  // at fault is the source's side, else the target's
  std::string found, allowed, change;
};
/// Everything for which M2N would refuse a tensor, or move it wrongly: unequal shards are what single calls
/// do not compare. Empty: it serves the tensor.
std::vector<M2nFault> m2n_faults(const Refit& refit, const RefitEntry& entry,
                                 M2nBalance balance = M2nBalance::node_aware);

/// One fault per key and limit, naming the first tensor and how many others there are.
std::vector<InputFault> m2n_faults(const Scenario& scenario, const Refit& refit);
/// What is no limit: tensors whose shard is larger than the largest staging bucket, a setting (2 GiB by
/// default); and NVLink domains that M2N sees where the fabric has none, which cost network copies.
std::vector<std::string> m2n_notes(const Refit& refit);

}  // namespace isthmus

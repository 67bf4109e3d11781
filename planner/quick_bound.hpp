#pragma once
// A lower bound on the predicted time of a layout that needs no refit: what a sweep prunes with. Two kinds of
// sets of planner/bound.hpp, from the layouts of one tensor per class (model/tensor_classes.hpp):
//   into an NVLink domain  T >= (bytes that its GPUs need, each once, less all that stages in it hold)
//                               / (achieved rate of the links by which traffic enters it)
//   out of a stage         T >= (bytes of the stage) / (achieved rate of the exits of the domains that hold
//                               it), where no GPU of the generation side is among these
// and what the cost model (sim/simulation.hpp) charges every plan of a policy, in floor_of().
// Invariant: at most the time that sim::simulate predicts for any plan of the policy under the calibration;
// with wire-only rates at most lower_bound(). Rounded down.

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/calibration.hpp"
#include "model/fabric.hpp"
#include "model/tensor_classes.hpp"

namespace isthmus {

struct ByteNeed {
  Bytes all, bulk;
};

/// Per NVLink domain, what the generation side must get there; all of its GPUs together.
struct TargetNeeds {
  std::vector<ByteNeed> of_domain;
  std::vector<char> present;  // domains with a GPU of the side
};
TargetNeeds target_needs(const Scenario& scenario, const ClassedTensors& tensors, const StageCounts& counts,
                         const Fabric& fabric, const std::vector<GpuId>& gpu_of_rank);

/// Per pipeline stage, what it holds and in which domains.
struct SourceStage {
  ByteNeed bytes;
  std::vector<std::uint32_t> domains;
};
std::vector<SourceStage> source_stages(const Scenario& scenario, const ClassedTensors& tensors,
                                       const StageCounts& counts, const Fabric& fabric,
                                       const std::vector<GpuId>& gpu_of_rank);

/// Achieved rates into and out of each domain.
struct DomainRates {
  std::vector<Bandwidth> in, out;
};
DomainRates domain_rates(const Fabric& fabric, const Calibration& calibration);

struct CutTimes {
  Duration all, bulk;
};
CutTimes cut_times(const std::vector<SourceStage>& sources, const TargetNeeds& targets,
                   const DomainRates& rates);

/// Counts that software costs go by.
struct SoftwareCounts {
  std::int64_t tensors = 0, bulk_tensors = 0;  // of the refit
  std::int64_t parts = 0, misc_parts = 0;      // HuggingFace tensors
  Bytes bytes, misc_bytes;
  bool one_stage = true;  // generation without pipeline: its first rank holds a part of everything
};
SoftwareCounts software_counts(const ClassedTensors& tensors, int generate_stages);

/// What of a refit's settings changes a policy's plans.
struct PolicySettings {
  bool bulk = true, streams = true;
};
PolicySettings settings_of(std::string_view policy);

/// No plan of the policy is faster. `collectives_cross`: a broadcast to all ranks leaves an NVLink domain.
Duration floor_of(std::string_view policy, const CutTimes& cuts, const SoftwareCounts& counts,
                  const Calibration& calibration, bool collectives_cross);

}  // namespace isthmus

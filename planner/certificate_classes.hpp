#pragma once
// Internal to planner/certificate*.cpp: who holds and who needs which bytes, found for the verifier alone, by
// walking all regions of both layouts of each tensor; and which GPUs take part.
// Invariant: shares no code with planner/byte_classes.hpp, whose result it must equal.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

using GpuList = std::vector<std::uint32_t>;  // ascending

/// Bytes by (holders, receivers that hold nothing of them).
using NeededBytes = std::map<std::pair<GpuList, GpuList>, Int128>;

NeededBytes needed_bytes(const Refit& refit);

/// The GPUs between which transfers may run.
GpuList acting_gpus(const Refit& refit);

}  // namespace isthmus

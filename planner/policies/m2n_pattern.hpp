#pragma once
// The steps of one tensor under NCCL M2N's PACK transport: each overlap is packed at its source, sent into
// the staging of a leader, passed down the chain and to the other replicas of each domain, and unpacked at
// every target. Groups (a rank takes them one after the other) stand for M2N's order:
//   no chain   everything in one group
//   chain      what a leader gets forms 8 waves; wave w leaves the chain's h-th domain in group w + h + 1
//   split      all injections in one group, then the waves: a rank starts its second phase when its own part
//              of the first is over, where M2N has a barrier over all
// and a last group for the unpacking.

#include "model/m2n_rules.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// Slices in which M2N's kernel forwards a payload: its CTAs. Source: NVIDIA/nccl-extensions at 44d2de0.
inline constexpr std::uint32_t m2n_slices = 8;

/// The steps' lane (added to the instance's), and over how many lanes, from 0 on, the unpacking is spread: on
/// each of them the ranks take up later groups once it is over.
struct M2nLanes {
  std::uint16_t own = 0;
  std::int64_t unpacking = 1;
};

Pattern m2n_pattern(const Refit& refit, const RefitEntry& entry, const M2nTask& task,
                    const M2nDecision& decision, const M2nLanes& lanes = {});

}  // namespace isthmus

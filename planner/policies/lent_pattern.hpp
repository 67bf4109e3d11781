#pragma once
// A pattern of sends in which parts of steps go through the NIC of a lender, a GPU of the sender's or of
// the receiver's NVLink domain. What leaves goes over NVLink into the lender's staging first, on
// `lending_lane`; what enters goes into the lender's staging through its NIC, and on over NVLink. What is
// passed on to another domain leaves from where it entered.
// Invariants: a rank stages no element twice; whoever waited for a step now waits for those parts of it that
// it needs; a part that no lender can take goes its old way. Local ranks of the source side become global
// ranks: an instance of the result has source base 0.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "planner/policies/nic_loans.hpp"

namespace isthmus {

inline constexpr std::uint16_t lending_lane = 2;
inline constexpr std::uint32_t lending_window =
    4;  // rounds in flight: more come in bursts where NVLink binds

/// A part of a step: through `lender` if there is one.
struct StepPiece {
  Region region;
  std::optional<GpuId> lender;
};
using StepCuts = std::map<std::uint32_t, std::vector<StepPiece>>;  // by step; the parts make up the whole

/// `like`: an instance of the old pattern, for its bases. `rank_of_gpu`: of GPUs that lend.
Pattern lent_pattern(const Refit& refit, const Pattern& old, const Instance& like, NicSide side,
                     const std::vector<std::uint32_t>& rank_of_gpu, const StepCuts& cuts);

}  // namespace isthmus

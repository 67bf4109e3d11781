#pragma once
// Who lends a NIC to whom, in bytes. Where the NICs of an NVLink domain are unevenly loaded, GPUs whose own
// NIC is too slow for their bytes send (receive) a part of them through the NIC of another GPU of the domain,
// over NVLink. Level: the least time T, not below `least`, for which each domain can place
//     sum over its GPUs of (load - T x NIC)  <=  sum over its GPUs of (T x NIC - load), each where positive,
// with the detour's bytes within T x NVLink at both ends, besides what NVLink carries already.
// Lenders are GPUs that have a rank and take part (RefitSpec::relay), as few as give a loan of 16 MB or more.

#include <vector>

#include "model/refit.hpp"
#include "planner/policies/port_loads.hpp"

namespace isthmus {

/// Whether a detour is worth it: 1 % and 0.1 ms, some ten times what its operations cost beside their bytes.
constexpr bool worthwhile_loan(double seconds_before, double seconds_after) {
  return seconds_after <= 0.99 * seconds_before && seconds_before - seconds_after >= 1e-4;
}

enum class NicSide : std::uint8_t { out, in };

struct NicLoan {
  GpuId borrower, lender;
  Bytes bytes;
};

/// By borrower, in ascending order; empty where the level is not worth it.
std::vector<NicLoan> nic_loans(const Refit& refit, const PortLoads& loads, Duration least, NicSide side);

}  // namespace isthmus

#pragma once
// Hosts that leave and join between refits, and the scenario of the new membership. Either side keeps its
// parallel sizes. Generation loses and gains whole engines (with expert parallelism over several engines,
// whole groups of these): of G GPUs left those of floor(G / unit) units serve, further hosts stay idle.
// Training takes all GPUs that are left; where its grid does not allow their number, the change is refused
// with the nearest layouts that work. A host that leaves and joins at once comes back empty.
// Seats: place k of a side's hosts in rank order. Who sits where is the assignment by which the hosts that
// stay need the fewest bytes; of equal ones, one that keeps replicas together that nobody leaves, and then
// one in which the fewest change their place.
// Invariant: membership_faults lists every fault; change_membership requires that there is none.

#include <cstdint>
#include <string>
#include <vector>

#include "model/fabric.hpp"
#include "model/input_fault.hpp"
#include "model/refit.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct MembershipChange {
  std::vector<int> leave;                      // hosts, of either side
  std::vector<int> join_train, join_generate;  // hosts

  bool empty() const { return leave.empty() && join_train.empty() && join_generate.empty(); }
};

/// The hosts of either side in rank order. Requires a whole refit.
struct SideHosts {
  std::vector<int> train, generate;
};
SideHosts side_hosts(const Refit& refit);
/// Hosts of the fabric that neither side uses, ascending.
std::vector<int> free_hosts(const Refit& refit);

struct Membership {
  Scenario scenario;      // of those who are there afterwards
  Refit refit;            // the same, resolved; who has left relays nothing
  std::vector<int> idle;  // hosts that stay, but that no unit has a use for
};

/// Ranks of generation that come and go together.
std::int64_t generation_unit(const GenerateSpec& generate);
/// GPUs of the whole units that the hosts left make up.
int serving_without(const Scenario& scenario, const Refit& before, const std::vector<int>& leave);

/// Their places are --leave and --join. `before` is the scenario, resolved.
std::vector<InputFault> membership_faults(const Scenario& scenario, const Refit& before,
                                          const MembershipChange& change);
/// Raises what resolve() raises.
Membership change_membership(const Scenario& scenario, const Refit& before, const MembershipChange& change);

/// "0-3, 7"
std::string host_list(std::vector<int> hosts);

}  // namespace isthmus

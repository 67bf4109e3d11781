// The twin's set-up: ranks enter one split after the other, and wait in each for all ranks of the parent.

#include "tests/support/twin_run.hpp"

namespace isthmus::test {

/// False when some rank waits for ever, or is told to enter what it is no part of.
bool TwinRun::set_up() {
  std::set<std::uint32_t> everybody;
  for (std::uint32_t rank = 0; rank < twin_.refit_.members(); ++rank) everybody.insert(rank);
  for (const Split& split : plan_.splits) {
    for (const Split::Caller& caller : split.callers) everybody.insert(caller.rank.value);
  }
  for (std::size_t s = 0; s < plan_.splits.size(); ++s) {
    if (!enter(s, everybody)) return false;
  }
  return true;
}

bool TwinRun::enter(std::size_t index, const std::set<std::uint32_t>& everybody) {
  const Split& split = plan_.splits[index];
  std::map<std::uint32_t, Calls> parent;  // by rank: the communicator that it calls from
  for (const std::uint32_t rank : everybody) {
    if (split.parent == Split::none) parent[rank] = {};
  }
  if (split.parent != Split::none) {
    if (split.parent >= index) return false;
    parent = made_[split.parent];
  }
  std::map<std::uint32_t, Calls>& made = made_.emplace_back();
  std::set<Calls> entered;
  for (const Split::Caller& caller : split.callers) {
    const auto from = parent.find(caller.rank.value);
    if (from == parent.end() || caller.colour == Split::none || made.count(caller.rank.value) > 0)
      return false;
    entered.insert(from->second);
    Calls& calls = made[caller.rank.value] = from->second;
    calls.push_back(static_cast<std::uint32_t>(index));
    calls.push_back(caller.colour);
    ++members_[calls];
  }
  for (const auto& [rank, calls] : made) {  // alone, a rank has nothing to keep
    if (split.slot != Split::none && members_[calls] > 1) kept_[{rank, split.slot}] = index;
  }
  for (const auto& [rank, calls] : parent) {
    if (entered.count(calls) > 0 && made.count(rank) == 0) return false;
  }
  return true;
}

/// Whether all ranks of an operation still keep one communicator for its lane.
bool TwinRun::is_connected(const Operation& operation) const {
  const std::uint32_t index = plan_.lanes[operation.lane].split;
  if (!set_up_ || index == Split::none || is_local(operation.kind)) return true;
  const std::uint32_t slot = plan_.splits[index].slot;
  std::set<Calls> calls;
  for (const std::uint32_t rank : operation.ranks) {
    const auto found = made_[index].find(rank);
    if (found == made_[index].end()) return false;
    calls.insert(found->second);
    const bool alone = members_.at(found->second) == 1;
    if (!alone && slot != Split::none && kept_.at({rank, slot}) != index) return false;
  }
  return calls.size() == 1;
}

}  // namespace isthmus::test

#include "planner/stand_ins.hpp"

#include <algorithm>
#include <unordered_map>

namespace isthmus {
namespace {

std::size_t count_ranks(const Operations& operations) {
  Rank last;
  for (const Operation& operation : operations.list) {
    last = std::max({last, operation.source, operation.target});
  }
  for (const std::vector<Rank>& members : operations.members) {
    for (const Rank rank : members) last = std::max(last, rank);
  }
  return last.index() + 1;
}

}  // namespace

StandIns::StandIns(const Operations& operations, std::span<const std::uint32_t> by_lane)
    : operations_(operations), list_of_(operations.list.size()) {
  const std::size_t ranks = count_ranks(operations);
  class_of_.resize(ranks);
  alone_.resize(ranks);
  kept_.resize(ranks);
  for (std::size_t begin = 0, end = 0; begin < by_lane.size(); begin = end) {
    const LaneId lane = operations.list[by_lane[begin]].lane;
    while (end < by_lane.size() && operations.list[by_lane[end]].lane == lane) ++end;
    add_lane(by_lane.subspan(begin, end - begin));
  }
}

void StandIns::add_lane(std::span<const std::uint32_t> of_lane) {
  std::vector<std::uint32_t> used;  // member lists, in the order of lists_
  std::unordered_map<std::uint32_t, std::uint32_t> known;
  for (const std::uint32_t i : of_lane) {
    const Operation& operation = operations_.list[i];
    if (!operations_.collective(operation)) {
      alone_[operation.source.index()] = 1;
      alone_[operation.target.index()] = 1;
      continue;
    }
    const auto next = static_cast<std::uint32_t>(lists_.size() + used.size());
    const auto [entry, added] = known.try_emplace(operation.members, next);
    if (added) used.push_back(operation.members);
    list_of_[i] = entry->second;
  }
  for (const std::uint32_t list : used) split(operations_.members[list]);
  choose(used);
  for (const std::uint32_t list : used) {
    for (const Rank rank : operations_.members[list]) class_of_[rank.index()] = 0;
  }
  for (const std::uint32_t i : of_lane) {
    alone_[operations_.list[i].source.index()] = 0;
    alone_[operations_.list[i].target.index()] = 0;
  }
  classes_ = 1;
}

/// Tells the members of a list apart from all others.
void StandIns::split(const std::vector<Rank>& members) {
  std::unordered_map<std::uint32_t, std::uint32_t> part_of;  // by class before
  for (const Rank rank : members) {
    std::uint32_t& known = class_of_[rank.index()];
    const auto [entry, added] = part_of.try_emplace(known, classes_);
    if (added) ++classes_;
    known = entry->second;
  }
}

/// Lists the members that stand for themselves or for others: the lowest of each class.
void StandIns::choose(const std::vector<std::uint32_t>& used) {
  std::vector<Rank> lowest(classes_, Rank{0xFFFFFFFF});
  std::vector<Rank> seen;
  for (const std::uint32_t list : used) {
    for (const Rank rank : operations_.members[list]) {
      if (alone_[rank.index()] != 0) continue;
      Rank& known = lowest[class_of_[rank.index()]];
      known = std::min(known, rank);
      if (kept_[rank.index()] == 0) seen.push_back(rank);
      kept_[rank.index()] = 1;
    }
  }
  for (const Rank rank : seen) {
    kept_[rank.index()] = 0;
    if (lowest[class_of_[rank.index()]] != rank) ++others_;
  }
  for (const std::uint32_t list : used) {
    std::vector<Rank>& chosen = lists_.emplace_back();
    for (const Rank rank : operations_.members[list]) {
      if (alone_[rank.index()] != 0 || lowest[class_of_[rank.index()]] == rank) chosen.push_back(rank);
    }
  }
}

}  // namespace isthmus

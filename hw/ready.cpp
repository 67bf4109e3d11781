#include "hw/ready.hpp"

#include <algorithm>
#include <tuple>

namespace isthmus::hw {
namespace {

/// That a rank takes part in an operation; sorted, these are all walks, group by group.
struct Part {
  std::uint32_t rank, lane, group, operation;
  bool same_walk(const Part& other) const { return rank == other.rank && lane == other.lane; }
  bool same_group(const Part& other) const { return same_walk(other) && group == other.group; }
  friend bool operator<(const Part& a, const Part& b) {
    return std::tie(a.rank, a.lane, a.group, a.operation) < std::tie(b.rank, b.lane, b.group, b.operation);
  }
};

std::vector<Part> parts_of(const Operations& operations) {
  std::vector<Part> parts;
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    const auto add = [&](Rank rank) {
      parts.push_back({rank.value, operation.lane.value, operation.group, i});
    };
    if (operations.collective(operation)) {
      for (const Rank rank : operations.members[operation.members]) add(rank);
      continue;
    }
    add(operation.source);
    if (operation.target != operation.source) add(operation.target);
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

/// Turns counts, one place further than their index, into where each range begins.
void sum_up(std::vector<std::uint32_t>& counts) {
  for (std::size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
}

}  // namespace

ReadyOperations::ReadyOperations(const Operations& operations)
    : waits_(operations.list.size(), 0), left_(operations.list.size()) {
  add_groups(operations);
  add_dependents(operations);
}

void ReadyOperations::add_groups(const Operations& operations) {
  const std::vector<Part> parts = parts_of(operations);
  first_group_.assign(operations.list.size() + 1, 0);
  for (const Part& part : parts) ++first_group_[part.operation + 1];
  sum_up(first_group_);
  std::vector<std::uint32_t> next(first_group_.begin(), first_group_.end() - 1);
  groups_of_.resize(parts.size());
  members_.reserve(parts.size());
  for (std::uint32_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    if (i == 0 || !part.same_walk(parts[i - 1])) {
      walks_.push_back(
          {static_cast<std::uint32_t>(groups_.size()), 0, 0, 0, operations.lanes[part.lane].window});
    }
    if (i == 0 || !part.same_group(parts[i - 1])) {
      groups_.push_back({i, 0, 0, static_cast<std::uint32_t>(walks_.size() - 1)});
      ++walks_.back().count;
    }
    ++groups_.back().count;
    ++groups_.back().left;
    members_.push_back(part.operation);
    groups_of_[next[part.operation]++] = static_cast<std::uint32_t>(groups_.size() - 1);
    ++waits_[part.operation];
  }
}

void ReadyOperations::add_dependents(const Operations& operations) {
  first_dependent_.assign(operations.list.size() + 1, 0);
  for (const std::uint32_t earlier : operations.after) ++first_dependent_[earlier + 1];
  sum_up(first_dependent_);
  std::vector<std::uint32_t> next(first_dependent_.begin(), first_dependent_.end() - 1);
  dependent_.resize(operations.after.size());
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    for (const std::uint32_t earlier : operations.dependencies(operations.list[i])) {
      dependent_[next[earlier]++] = i;
      ++waits_[i];
    }
  }
}

void ReadyOperations::one_wait_less(std::uint32_t operation, std::vector<std::uint32_t>& ready) {
  if (--waits_[operation] == 0) ready.push_back(operation);
}

void ReadyOperations::open(GroupWalk& walk, std::vector<std::uint32_t>& ready) {
  while (walk.done < walk.opened && groups_[walk.first + walk.done].left == 0) ++walk.done;
  for (; walk.opened < walk.count && walk.opened - walk.done < walk.window; ++walk.opened) {
    const OpenGroup& group = groups_[walk.first + walk.opened];
    for (std::uint32_t m = 0; m < group.count; ++m) one_wait_less(members_[group.first + m], ready);
  }
}

void ReadyOperations::begin(std::vector<std::uint32_t>& ready) {
  for (GroupWalk& walk : walks_) open(walk, ready);
}

void ReadyOperations::complete(std::uint32_t operation, std::vector<std::uint32_t>& ready) {
  --left_;
  for (std::uint32_t i = first_group_[operation]; i < first_group_[operation + 1]; ++i) {
    OpenGroup& group = groups_[groups_of_[i]];
    if (--group.left == 0) open(walks_[group.walk], ready);
  }
  for (std::uint32_t i = first_dependent_[operation]; i < first_dependent_[operation + 1]; ++i)
    one_wait_less(dependent_[i], ready);
}

}  // namespace isthmus::hw

#include "sim/staging.hpp"

#include <algorithm>
#include <span>

namespace isthmus::sim {
namespace {

/// The ranks on which an operation stages what it writes.
std::span<const Rank> ranks_of(const Operations& operations, const Operation& operation) {
  if (operations.collective(operation)) return operations.members[operation.members];
  return {&operation.target, 1};
}

struct Position {
  Rank rank;
  std::uint32_t place = 0;  // in the member list
};

/// Where ranks stand in member lists, found without going through them.
class Positions {
 public:
  explicit Positions(const Operations& operations)
      : operations_(operations), by_rank_(operations.members.size()) {}

  /// Visits the places of a rank among those on which an operation stages.
  template <class Visit>
  void find(const Operation& operation, Rank rank, Visit&& visit) {
    if (!operations_.collective(operation)) {
      if (operation.target == rank) visit(0U);
      return;
    }
    const std::vector<Position>& sorted = by_rank(operation.members);
    auto at = std::lower_bound(sorted.begin(), sorted.end(), rank,
                               [](const Position& position, Rank other) { return position.rank < other; });
    for (; at != sorted.end() && at->rank == rank; ++at) visit(at->place);
  }

 private:
  const std::vector<Position>& by_rank(std::uint32_t members) {
    std::vector<Position>& sorted = by_rank_[members];
    if (!sorted.empty()) return sorted;
    for (const Rank rank : operations_.members[members]) {
      sorted.push_back({rank, static_cast<std::uint32_t>(sorted.size())});
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Position& a, const Position& b) { return a.rank < b.rank; });
    return sorted;
  }

  const Operations& operations_;
  std::vector<std::vector<Position>> by_rank_;  // by member list
};

}  // namespace

Staging::Staging(const Refit& refit, const Operations& operations) : gpus_(refit.fabric.gpu_count()) {
  list_places(refit, operations);
  if (!empty()) list_reads(operations);
}

void Staging::list_places(const Refit& refit, const Operations& operations) {
  first_place_.reserve(operations.list.size() + 1);
  first_place_.push_back(0);
  for (const Operation& operation : operations.list) {
    if (operation.staged_target) {
      for (const Rank rank : ranks_of(operations, operation)) gpu_.push_back(refit.gpu(rank).value);
      bytes_.resize(gpu_.size(), operation.bytes);
    }
    first_place_.push_back(static_cast<std::uint32_t>(gpu_.size()));
  }
  holds_.assign(gpu_.size(), 1);
}

void Staging::list_reads(const Operations& operations) {
  first_read_.reserve(operations.list.size() + 1);
  first_read_.push_back(0);
  Positions positions(operations);
  for (const Operation& reader : operations.list) {
    const bool gathers = reader.kind == StepKind::all_gather;
    const auto here = gathers ? ranks_of(operations, reader) : std::span<const Rank>{&reader.source, 1};
    for (const std::uint32_t before : operations.dependencies(reader)) {
      if (!reader.staged_source || !operations.list[before].staged_target) continue;
      for (const Rank rank : here) {
        positions.find(operations.list[before], rank, [&](std::uint32_t place) {
          reads_.push_back(first_place_[before] + place);
          ++holds_[reads_.back()];
        });
      }
    }
    first_read_.push_back(static_cast<std::uint32_t>(reads_.size()));
  }
}

Bytes Staging::peak(const Timeline& timeline, const std::vector<Event>& events) const {
  std::vector<std::uint32_t> holds = holds_;
  std::vector<Bytes> now(gpus_);
  Bytes most;
  const auto let_go = [&](std::uint32_t place) {
    if (--holds[place] == 0) now[gpu_[place]] -= bytes_[place];
  };
  const auto when = [&](const Event& event) {
    const Span& span = timeline.spans[event.operation];
    return event.ended ? span.end : span.ready;
  };
  for (std::size_t begin = 0, end = 0; begin < events.size(); begin = end) {
    while (end < events.size() && when(events[end]) == when(events[begin])) ++end;
    for (std::size_t e = begin; e < end; ++e) {
      const std::uint32_t i = events[e].operation;
      if (!events[e].ended) continue;
      for (std::uint32_t p = first_place_[i]; p < first_place_[i + 1]; ++p) let_go(p);
      for (std::uint32_t r = first_read_[i]; r < first_read_[i + 1]; ++r) let_go(reads_[r]);
    }
    for (std::size_t e = begin; e < end; ++e) {
      const std::uint32_t i = events[e].operation;
      if (events[e].ended) continue;
      for (std::uint32_t p = first_place_[i]; p < first_place_[i + 1]; ++p) {
        now[gpu_[p]] += bytes_[p];
        most = std::max(most, now[gpu_[p]]);
      }
    }
  }
  return most;
}

}  // namespace isthmus::sim

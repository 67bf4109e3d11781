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
  for (const Operation& reader : operations.list) {
    const bool gathers = reader.kind == StepKind::all_gather;
    const auto here = gathers ? ranks_of(operations, reader) : std::span<const Rank>{&reader.source, 1};
    for (const std::uint32_t before : operations.dependencies(reader)) {
      if (!reader.staged_source || !operations.list[before].staged_target) continue;
      const auto there = ranks_of(operations, operations.list[before]);
      for (std::uint32_t m = 0; m < there.size(); ++m) {
        if (std::find(here.begin(), here.end(), there[m]) == here.end()) continue;
        reads_.push_back(first_place_[before] + m);
        ++holds_[reads_.back()];
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

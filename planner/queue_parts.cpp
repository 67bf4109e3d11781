// Queues of parts (sim/quotient.hpp): operations that open and complete together are one.

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"
#include "planner/queues.hpp"

namespace isthmus {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t word) {
  hash = (hash * 0x9E3779B97F4A7C15ULL + word) * 0xBF58476D1CE4E5B9ULL;
  return hash ^ (hash >> 29U);
}

}  // namespace

QueuePlan::QueuePlan(const QueuePlan& whole, const Operations& operations,
                     std::span<const std::uint32_t> part_of, std::span<const std::uint32_t> representatives)
    : waits_(representatives.size(), 0) {
  std::vector<std::uint32_t> parts;
  for (const Queue& queue : whole.queues_) {
    if (queue.count == 0) continue;
    for (std::uint32_t s = queue.first; s < queue.first + queue.count; ++s) {
      const Slot& slot = whole.slots_[s];
      parts.clear();
      for (std::uint32_t m = slot.first; m < slot.first + slot.count; ++m) {
        parts.push_back(part_of[whole.members_[m]]);
      }
      std::sort(parts.begin(), parts.end());
      parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
      slots_.push_back({static_cast<std::uint32_t>(members_.size()), static_cast<std::uint32_t>(parts.size()),
                        static_cast<std::uint32_t>(queues_.size())});
      members_.insert(members_.end(), parts.begin(), parts.end());
    }
    queues_.push_back({static_cast<std::uint32_t>(slots_.size() - queue.count), queue.count, queue.window});
  }
  for (const std::uint32_t operation : representatives) group_size_.push_back(whole.group_size_[operation]);
  list_slots_of(representatives.size());
  merge_equal_queues();
  first_dependent_.assign(representatives.size() + 1, 0);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;  // (before, after), parts
  for (std::uint32_t p = 0; p < representatives.size(); ++p) {
    for (const std::uint32_t before : operations.dependencies(operations.list[representatives[p]])) {
      edges.emplace_back(part_of[before], p);
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  for (const auto& [before, after] : edges) {
    ++first_dependent_[before + 1];
    dependents_.push_back(after);
    ++waits_[after];
  }
  for (std::size_t p = 0; p < representatives.size(); ++p) first_dependent_[p + 1] += first_dependent_[p];
}

/// The transpose of members_.
void QueuePlan::list_slots_of(std::size_t operations) {
  first_slot_.assign(operations + 1, 0);
  for (const std::uint32_t member : members_) ++first_slot_[member + 1];
  for (std::size_t i = 0; i < operations; ++i) first_slot_[i + 1] += first_slot_[i];
  slots_of_.resize(members_.size());
  std::vector<std::uint32_t> next(first_slot_.begin(), first_slot_.end() - 1);
  for (std::uint32_t s = 0; s < slots_.size(); ++s) {
    for (std::uint32_t m = slots_[s].first; m < slots_[s].first + slots_[s].count; ++m) {
      slots_of_[next[members_[m]]++] = s;
    }
  }
}

std::vector<std::uint64_t> QueuePlan::surroundings(const std::vector<std::uint64_t>& colours) const {
  std::vector<std::uint64_t> queue_colours;
  queue_colours.reserve(queues_.size());
  for (const Queue& queue : queues_) {
    std::uint64_t colour = queue.window;
    for (std::uint32_t s = queue.first; s < queue.first + queue.count; ++s) {
      std::uint64_t sum = 0;
      for (std::uint32_t m = slots_[s].first; m < slots_[s].first + slots_[s].count; ++m) {
        sum += mixed(colours[members_[m]], 1);
      }
      colour = mixed(colour, sum);
    }
    queue_colours.push_back(colour);
  }
  std::vector<std::uint64_t> around(colours.size(), 0);
  for (std::size_t i = 0; i < around.size(); ++i) {
    for (std::uint32_t s = first_slot_[i]; s < first_slot_[i + 1]; ++s) {
      const std::uint32_t queue = slots_[slots_of_[s]].queue;
      around[i] += mixed(queue_colours[queue], slots_of_[s] - queues_[queue].first);
    }
  }
  return around;
}

std::uint32_t QueuePlan::held_by(std::uint32_t operation, std::uint32_t part,
                                 std::span<const std::uint32_t> part_of) const {
  // Mostly it stands just before the window, in one of the queues.
  bool more = true;
  for (std::uint32_t further = 0; more; ++further) {
    more = false;
    for (std::uint32_t s = first_slot_[operation]; s < first_slot_[operation + 1]; ++s) {
      const Queue& queue = queues_[slots_[slots_of_[s]].queue];
      const std::uint32_t at = slots_of_[s] - queue.first;
      if (at < queue.window || at - queue.window < further) continue;
      more = true;
      const Slot& slot = slots_[queue.first + at - queue.window - further];
      for (std::uint32_t m = slot.first; m < slot.first + slot.count; ++m) {
        if (part_of[members_[m]] == part) return members_[m];
      }
    }
  }
  ISTHMUS_ASSERT(false, "operation {} was not held by part {}", operation, part);
  return operation;
}

}  // namespace isthmus

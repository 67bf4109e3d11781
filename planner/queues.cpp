#include "planner/queues.hpp"

#include <algorithm>
#include <numeric>

#include "planner/stand_ins.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t no_slot = 0xFFFFFFFF;

/// Sorts operations by a key below `keys`; equal ones keep their order.
template <class Key>
void sort_operations(std::vector<std::uint32_t>& order, std::size_t keys, const Key& key) {
  std::vector<std::uint32_t> next(keys + 1, 0), sorted(order.size());
  for (const std::uint32_t i : order) ++next[key(i) + std::size_t{1}];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (const std::uint32_t i : order) sorted[next[key(i)]++] = i;
  order.swap(sorted);
}

/// Operation numbers lane by lane, in the order of groups.
std::vector<std::uint32_t> in_group_order(const Operations& operations) {
  const std::vector<Operation>& list = operations.list;
  std::vector<std::uint32_t> order(list.size()), groups;
  std::iota(order.begin(), order.end(), 0U);
  groups.reserve(list.size());
  std::uint32_t last = 0;
  for (const Operation& operation : list) {
    groups.push_back(operation.group);
    last = std::max(last, operation.group);
  }
  if (last <= 4 * list.size()) {
    sort_operations(order, std::size_t{last} + 1, [&groups](std::uint32_t i) { return groups[i]; });
  } else {
    std::stable_sort(order.begin(), order.end(),
                     [&groups](std::uint32_t a, std::uint32_t b) { return groups[a] < groups[b]; });
  }
  sort_operations(order, operations.lanes.size(), [&list](std::uint32_t i) { return list[i].lane.index(); });
  return order;
}

}  // namespace

QueuePlan::QueuePlan(const Operations& operations) {
  build_slots(operations);
  build_dependents(operations);
}

void QueuePlan::build_slots(const Operations& operations) {
  const std::size_t lanes = operations.lanes.size();
  std::vector<std::uint32_t> latest;  // by rank x lane: its last slot
  std::vector<std::vector<std::uint32_t>> slots_by_queue;
  std::vector<std::uint32_t> group_of_slot;
  first_slot_.assign(operations.list.size() + 1, 0);
  waits_.assign(operations.list.size(), 0);
  order_ = in_group_order(operations);
  const StandIns ranks(operations, order_);
  merged_ = ranks.others();
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    ranks.for_each(i, [&](Rank) { ++waits_[i]; });
    first_slot_[i + 1] = first_slot_[i] + waits_[i];
  }
  slots_of_.resize(first_slot_.back());
  for (const std::uint32_t i : order_) {
    const Operation& operation = operations.list[i];
    std::uint32_t at = first_slot_[i];
    ranks.for_each(i, [&](Rank rank) {
      const std::size_t queue = rank.index() * lanes + operation.lane.index();
      if (queue >= latest.size()) {
        latest.resize(queue + 1, no_slot);
        slots_by_queue.resize(queue + 1);
      }
      if (latest[queue] == no_slot || group_of_slot[latest[queue]] != operation.group) {
        latest[queue] = static_cast<std::uint32_t>(slots_.size());
        slots_by_queue[queue].push_back(latest[queue]);
        slots_.emplace_back();
        group_of_slot.push_back(operation.group);
      }
      ++slots_[latest[queue]].count;
      slots_of_[at++] = latest[queue];
    });
  }
  order_slots(operations, slots_by_queue);
  list_members();
  merge_equal_queues();
}

/// Numbers the slots queue by queue, so that a queue's slots are consecutive.
void QueuePlan::order_slots(const Operations& operations,
                            const std::vector<std::vector<std::uint32_t>>& by_queue) {
  std::vector<Slot> ordered;
  ordered.reserve(slots_.size());
  std::vector<std::uint32_t> renumbered(slots_.size());
  for (std::size_t q = 0; q < by_queue.size(); ++q) {
    if (by_queue[q].empty()) continue;
    Queue queue;
    queue.first = static_cast<std::uint32_t>(ordered.size());
    queue.count = static_cast<std::uint32_t>(by_queue[q].size());
    queue.window = operations.lanes[q % operations.lanes.size()].window;
    for (const std::uint32_t slot : by_queue[q]) {
      renumbered[slot] = static_cast<std::uint32_t>(ordered.size());
      ordered.push_back(slots_[slot]);
      ordered.back().queue = static_cast<std::uint32_t>(queues_.size());
    }
    queues_.push_back(queue);
  }
  slots_ = std::move(ordered);
  for (std::uint32_t& slot : slots_of_) slot = renumbered[slot];
}

void QueuePlan::list_members() {
  std::uint32_t next = 0;
  for (Slot& slot : slots_) {
    slot.first = next;
    next += slot.count;
  }
  members_.resize(next);
  std::vector<std::uint32_t> listed(slots_.size(), 0);
  group_size_.assign(waits_.size(), 0);
  for (std::uint32_t i = 0; i < group_size_.size(); ++i) {
    for (std::uint32_t s = first_slot_[i]; s < first_slot_[i + 1]; ++s) {
      const Slot& slot = slots_[slots_of_[s]];
      members_[slot.first + listed[slots_of_[s]]++] = i;
      group_size_[i] = std::max(group_size_[i], slot.count);
    }
  }
}

bool QueuePlan::equal(const Queue& a, const Queue& b) const {
  if (a.count != b.count || a.window != b.window) return false;
  for (std::uint32_t s = 0; s < a.count; ++s) {
    const Slot &first = slots_[a.first + s], &second = slots_[b.first + s];
    const auto begin = members_.begin() + first.first;
    if (first.count != second.count ||
        !std::equal(begin, begin + first.count, members_.begin() + second.first))
      return false;
  }
  return true;
}

void QueuePlan::merge_equal_queues() {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> by_hash;  // (hash, queue)
  for (std::uint32_t q = 0; q < queues_.size(); ++q) {
    std::uint64_t hash = queues_[q].window;
    const auto mix = [&hash](std::uint64_t word) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 31U;
    };
    for (std::uint32_t s = 0; s < queues_[q].count; ++s) {
      const Slot& slot = slots_[queues_[q].first + s];
      mix(slot.count);
      for (std::uint32_t m = slot.first; m < slot.first + slot.count; ++m) mix(members_[m]);
    }
    by_hash.emplace_back(hash, q);
  }
  std::sort(by_hash.begin(), by_hash.end());
  std::vector<char> dropped(queues_.size(), 0);
  for (std::size_t i = 1, kept = 0; i < by_hash.size(); ++i) {
    const auto& [hash, queue] = by_hash[i];
    if (hash == by_hash[kept].first && equal(queues_[queue], queues_[by_hash[kept].second])) {
      dropped[queue] = 1;
      ++merged_;
      queues_[queue].count = 0;
    } else {
      kept = i;
    }
  }
  std::uint32_t next = 0, begin = 0;
  for (std::size_t i = 0; i < waits_.size(); ++i) {
    const std::uint32_t end = first_slot_[i + 1];
    const std::uint32_t first = next;
    for (std::uint32_t s = begin; s < end; ++s) {
      if (dropped[slots_[slots_of_[s]].queue] == 0) slots_of_[next++] = slots_of_[s];
    }
    waits_[i] = next - first;
    first_slot_[i + 1] = next;
    begin = end;
  }
  slots_of_.resize(next);
}

void QueuePlan::build_dependents(const Operations& operations) {
  first_dependent_.assign(operations.list.size() + 1, 0);
  for (const std::uint32_t before : operations.after) ++first_dependent_[before + 1];
  for (std::size_t i = 0; i < operations.list.size(); ++i) first_dependent_[i + 1] += first_dependent_[i];
  dependents_.resize(operations.after.size());
  std::vector<std::uint32_t> next(first_dependent_.begin(), first_dependent_.end() - 1);
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    for (const std::uint32_t before : operations.dependencies(operations.list[i])) {
      dependents_[next[before]++] = i;
      ++waits_[i];
    }
  }
}

QueuePlan QueuePlan::by_place() const {
  QueuePlan placed;
  placed.slots_ = slots_;
  placed.queues_ = queues_;
  placed.merged_ = merged_;
  std::vector<std::uint32_t> place_of(order_.size());
  for (std::uint32_t place = 0; place < order_.size(); ++place) place_of[order_[place]] = place;
  placed.members_.reserve(members_.size());
  for (const std::uint32_t member : members_) placed.members_.push_back(place_of[member]);
  placed.slots_of_.reserve(slots_of_.size());
  placed.dependents_.reserve(dependents_.size());
  placed.first_slot_.push_back(0);
  placed.first_dependent_.push_back(0);
  for (const std::uint32_t i : order_) {
    for (std::uint32_t s = first_slot_[i]; s < first_slot_[i + 1]; ++s) {
      placed.slots_of_.push_back(slots_of_[s]);
    }
    for (std::uint32_t d = first_dependent_[i]; d < first_dependent_[i + 1]; ++d) {
      placed.dependents_.push_back(place_of[dependents_[d]]);
    }
    placed.first_slot_.push_back(static_cast<std::uint32_t>(placed.slots_of_.size()));
    placed.first_dependent_.push_back(static_cast<std::uint32_t>(placed.dependents_.size()));
    placed.waits_.push_back(waits_[i]);
    placed.group_size_.push_back(group_size_[i]);
  }
  return placed;
}

Queues::Queues(const QueuePlan& plan)
    : plan_(plan), fronts_(plan.queues_.size()), waits_(plan.waits_), left_(plan.waits_.size()) {
  slots_.reserve(plan.slots_.size());
  for (const QueuePlan::Slot& slot : plan.slots_) slots_.push_back({slot.count, slot.queue});
}

void Queues::met(std::uint32_t operation, std::vector<std::uint32_t>& ready) {
  if (--waits_[operation] == 0) ready.push_back(operation);
}

void Queues::open(std::uint32_t queue, std::vector<std::uint32_t>& ready) {
  const QueuePlan::Queue& shape = plan_.queues_[queue];
  Front& front = fronts_[queue];
  while (front.opened < shape.count && front.opened < front.done + shape.window) {
    const QueuePlan::Slot& slot = plan_.slots_[shape.first + front.opened++];
    for (std::uint32_t m = slot.first; m < slot.first + slot.count; ++m) met(plan_.members_[m], ready);
  }
}

void Queues::begin(std::vector<std::uint32_t>& ready) {
  for (std::uint32_t q = 0; q < fronts_.size(); ++q) open(q, ready);
}

void Queues::complete(std::uint32_t operation, std::vector<std::uint32_t>& ready) {
  --left_;
  for (std::uint32_t s = plan_.first_slot_[operation]; s < plan_.first_slot_[operation + 1]; ++s) {
    Open& slot = slots_[plan_.slots_of_[s]];
    if (--slot.left > 0) continue;
    const std::uint32_t queue = slot.queue;
    const QueuePlan::Queue& shape = plan_.queues_[queue];
    Front& front = fronts_[queue];
    while (front.done < shape.count && slots_[shape.first + front.done].left == 0) ++front.done;
    open(queue, ready);
  }
  for (std::uint32_t d = plan_.first_dependent_[operation]; d < plan_.first_dependent_[operation + 1]; ++d) {
    met(plan_.dependents_[d], ready);
  }
}

}  // namespace isthmus

#include "sim/fluid.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::sim {
namespace {

constexpr unsigned rate_bits = 16, weight_bits = 20;

Uint128 scaled_capacity(std::int64_t capacity) { return Uint128(capacity) << (rate_bits + weight_bits); }

}  // namespace

std::uint32_t Fluid::add_resource(std::int64_t capacity) {
  ISTHMUS_ASSERT(capacity >= 0 && !prepared_, "capacity {}", capacity);
  capacities_.push_back(capacity);
  return levels_.add_resource(scaled_capacity(capacity));
}

std::uint32_t Fluid::add_class(const std::vector<Usage>& usages, const Sharing& sharing) {
  ISTHMUS_ASSERT(!usages.empty() || sharing.cap, "a class without usages would end at once");
  ISTHMUS_ASSERT(sharing.priority > 0 && !prepared_, "priority {}", sharing.priority);
  for (const Usage& usage : usages) {
    loads_.push_back({usage.resource, std::uint64_t{usage.weight} * sharing.priority});
  }
  std::uint64_t cap = Levels::unlimited;
  if (sharing.cap) cap = (static_cast<std::uint64_t>(*sharing.cap) << rate_bits) / sharing.priority;
  return finish_class(sharing.priority, cap);
}

std::uint32_t Fluid::add_class_of_loads(std::span<const Levels::Load> loads) {
  ISTHMUS_ASSERT(!loads.empty() && !prepared_, "a class without loads would end at once");
  loads_.insert(loads_.end(), loads.begin(), loads.end());
  return finish_class(1, Levels::unlimited);
}

/// Makes a class of the loads that were appended last.
std::uint32_t Fluid::finish_class(std::uint32_t priority, std::uint64_t cap) {
  caps_.push_back(cap);
  const std::span<const Levels::Load> loads = std::span(loads_).subspan(first_load_.back());
  first_load_.push_back(static_cast<std::uint32_t>(loads_.size()));
  classes_.emplace_back();
  classes_.back().priority = priority;
  return levels_.add_class(loads, cap);
}

void Fluid::prepare() {
  prepared_ = true;
  levels_.prepare();
  is_recounted_.resize(classes_.size());
}

void Fluid::start(std::uint32_t index, std::int64_t amount, std::uint32_t tag) {
  ISTHMUS_ASSERT(amount >= 0, "amount {}", amount);
  if (!prepared_) prepare();
  ++active_;
  if (amount == 0) return empty_.push_back(tag);
  Class& flow_class = classes_[index];
  Uint128 needed = (Uint128(amount) << rate_bits) * Uint128(picoseconds_per_second);
  if (flow_class.priority > 1) needed = (needed + flow_class.priority - 1) / flow_class.priority;
  Finish finish{needed, flow_class.sequence++, tag};
  if (flow_class.flows == 0) {
    levels_.enter(index, needed);
    flow_class.first = finish;
  } else {
    finish.service += levels_.service(index);
    const bool is_first = flow_class.first > finish;
    if (is_first) {
      std::swap(flow_class.first, finish);
      levels_.remark(index, flow_class.first.service);
    }
    flow_class.later.push_back(finish);
    std::push_heap(flow_class.later.begin(), flow_class.later.end(), std::greater<>());
  }
  ++flow_class.flows;
  if (flow_class.flows > 1) recount(index);
}

void Fluid::start_endless(std::uint32_t index, std::uint32_t flows) {
  ISTHMUS_ASSERT(flows > 0, "class {}", index);
  if (!prepared_) prepare();
  Class& flow_class = classes_[index];
  ISTHMUS_ASSERT(flow_class.flows == 0, "class {} has {} flows", index, flow_class.flows);
  active_ += flows;
  flow_class.first = {Levels::endless, flow_class.sequence++, 0};
  flow_class.flows = flows;
  levels_.enter(index, Levels::endless);
  if (flows > 1) recount(index);
}

std::int64_t Fluid::moved(std::uint32_t index) {
  const Class& flow_class = classes_[index];
  const Uint128 service = levels_.service(index) * flow_class.priority * flow_class.flows;
  return static_cast<std::int64_t>((service >> rate_bits) / Uint128(picoseconds_per_second));
}

void Fluid::recount(std::uint32_t index) {
  if (is_recounted_[index] != 0) return;
  is_recounted_[index] = 1;
  recounted_.push_back(index);
}

void Fluid::cancel(std::uint32_t index, std::vector<Cancelled>& cancelled) {
  Class& flow_class = classes_[index];
  if (flow_class.flows == 0) return;
  const Uint128 service = levels_.service(index);
  const Uint128 unit = (Uint128{1} << rate_bits) * Uint128(picoseconds_per_second);
  const auto add = [&](const Finish& flow) {
    const Uint128 left = flow.service > service ? flow.service - service : 0;
    cancelled.push_back(
        {flow.tag, static_cast<std::int64_t>((left * flow_class.priority + unit - 1) / unit)});
  };
  std::sort(flow_class.later.begin(), flow_class.later.end(),
            [](const Finish& a, const Finish& b) { return b > a; });
  add(flow_class.first);
  for (const Finish& flow : flow_class.later) add(flow);
  active_ -= flow_class.flows;
  flow_class.flows = 0;
  flow_class.later.clear();
  levels_.leave(index);
}

void Fluid::set_capacity(std::uint32_t resource, std::int64_t capacity) {
  ISTHMUS_ASSERT(capacity >= 0, "capacity {}", capacity);
  capacities_[resource] = capacity;
  levels_.set_capacity(resource, scaled_capacity(capacity));
}

void Fluid::solve() {
  if (!prepared_) prepare();
  for (const std::uint32_t index : recounted_) {
    is_recounted_[index] = 0;
    if (classes_[index].flows > 0) levels_.recount(index, classes_[index].flows);
  }
  recounted_.clear();
  levels_.repair();
  ++solves_;
#ifndef NDEBUG
  if (solves_ % (1 + classes_.size() / 64) != 0) return;
  const std::string wrong = certificate();
  ISTHMUS_ASSERT(wrong.empty(), "{}", wrong);
#endif
}

bool Fluid::next_end(Instant& when) {
  if (!prepared_) return false;
  when = empty_.empty() ? Instant{levels_.next()} : now();
  return when.value != Earliest::never;
}

void Fluid::advance(Instant now, std::vector<std::uint32_t>& ended) {
  active_ -= empty_.size();
  ended.insert(ended.end(), empty_.begin(), empty_.end());
  empty_.clear();
  due_.clear();
  levels_.advance(now, due_);
  for (const std::uint32_t index : due_) finish_flows(index, ended);
}

/// Ends the flows of a class whose service is complete.
void Fluid::finish_flows(std::uint32_t index, std::vector<std::uint32_t>& ended) {
  Class& flow_class = classes_[index];
  const Uint128 service = levels_.service(index);
  while (true) {
    ended.push_back(flow_class.first.tag);
    --active_;
    --flow_class.flows;
    if (flow_class.flows == 0) {
      levels_.leave(index);
      return;
    }
    std::pop_heap(flow_class.later.begin(), flow_class.later.end(), std::greater<>());
    flow_class.first = flow_class.later.back();
    flow_class.later.pop_back();
    if (flow_class.first.service > service) break;
  }
  levels_.remark(index, flow_class.first.service);
  recount(index);
}

std::int64_t Fluid::rate(std::uint32_t flow_class) const {
  return static_cast<std::int64_t>((Uint128(levels_.rate(flow_class)) * classes_[flow_class].priority) >>
                                   rate_bits);
}

Allocation Fluid::allocation() const {
  Allocation result;
  for (const std::int64_t capacity : capacities_) result.capacities.push_back(scaled_capacity(capacity));
  for (std::uint32_t c = 0; c < classes_.size(); ++c) {
    Allocation::Group group;
    for (std::uint32_t l = first_load_[c]; l < first_load_[c + 1]; ++l) {
      group.shares.push_back({loads_[l].resource, loads_[l].weight});
    }
    group.flows = classes_[c].flows;
    group.rate = levels_.rate(c);
    group.cap = caps_[c];
    result.classes.push_back(std::move(group));
  }
  return result;
}

}  // namespace isthmus::sim

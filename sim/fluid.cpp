#include "sim/fluid.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::sim {
namespace {

constexpr unsigned rate_bits = 16, weight_bits = 20;
constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::uint32_t Fluid::add_resource(std::int64_t capacity) {
  ISTHMUS_ASSERT(capacity >= 1, "capacity {}", capacity);
  resources_.emplace_back();
  resources_.back().capacity = Uint128(capacity) << (rate_bits + weight_bits);
  active_classes_.emplace_back();
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

std::uint32_t Fluid::add_class(const std::vector<Usage>& usages) {
  ISTHMUS_ASSERT(!usages.empty(), "a class without usages would end at once");
  classes_.emplace_back();
  classes_.back().first_usage = static_cast<std::uint32_t>(usages_.size());
  usages_.insert(usages_.end(), usages.begin(), usages.end());
  slots_.resize(usages_.size());
  classes_.back().end_usage = static_cast<std::uint32_t>(usages_.size());
  services_.emplace_back();
  marks_.emplace_back();
  return static_cast<std::uint32_t>(classes_.size() - 1);
}

void Fluid::mark_changed(std::uint32_t index) {
  if (classes_[index].changed) return;
  classes_[index].changed = true;
  changed_.push_back(index);
}

void Fluid::settle(std::uint32_t index) {
  Service& service = services_[index];
  service.value += Uint128(classes_[index].rate) * Uint128((now_ - service.settled).value);
  service.settled = now_;
}

void Fluid::activate(std::uint32_t index) {
  for (std::uint32_t u = classes_[index].first_usage; u < classes_[index].end_usage; ++u) {
    std::vector<Active>& active = active_classes_[usages_[u].resource];
    slots_[u] = static_cast<std::uint32_t>(active.size());
    active.push_back({index, u});
  }
}

/// Takes a class without flows off its resources.
void Fluid::deactivate(Class& flow_class) {
  for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
    std::vector<Active>& active = active_classes_[usages_[u].resource];
    const Active moved = active.back();
    active[slots_[u]] = moved;
    slots_[moved.usage] = slots_[u];
    active.pop_back();
    Resource& resource = resources_[usages_[u].resource];
    resource.carried -= Uint128(flow_class.solved_flows) * usages_[u].weight * flow_class.rate;
    if (resource.freed || !resource.bottleneck) continue;
    resource.freed = true;
    freed_.push_back(usages_[u].resource);
  }
  flow_class.solved_flows = 0;
  flow_class.rate = 0;
}

void Fluid::start(std::uint32_t index, std::int64_t amount, std::uint32_t tag) {
  ISTHMUS_ASSERT(amount > 0, "amount {}", amount);
  Class& flow_class = classes_[index];
  settle(index);
  if (flow_class.flows == 0) activate(index);
  const Uint128 needed = (Uint128(amount) << rate_bits) * Uint128(picoseconds_per_second);
  marks_[index].push({services_[index].value + needed, sequence_++, tag});
  ++flow_class.flows;
  ++active_;
  mark_changed(index);
}

void Fluid::add_to_set(std::uint32_t index) {
  Class& flow_class = classes_[index];
  if (flow_class.in_set) return;
  flow_class.in_set = true;
  set_.push_back(index);
  for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
    Resource& resource = resources_[usages_[u].resource];
    resource.carried -= Uint128(flow_class.solved_flows) * usages_[u].weight * flow_class.rate;
    ++resource.in_set;
    if (resource.touched) continue;
    resource.touched = true;
    touched_.push_back(usages_[u].resource);
  }
}

void Fluid::add_all_on(std::uint32_t resource) {
  for (const Active& active : active_classes_[resource]) add_to_set(active.flow_class);
}

/// Follows the bottlenecks of the set's classes, or all their resources, until nothing is added.
void Fluid::close_set(bool through_all) {
  for (; closed_ < set_.size(); ++closed_) {
    const Class& flow_class = classes_[set_[closed_]];
    for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
      const std::uint32_t r = usages_[u].resource;
      if (!resources_[r].bottleneck && !through_all) continue;
      if (resources_[r].in_set < active_classes_[r].size()) add_all_on(r);
    }
  }
}

/// Appends the resource's level to the heap; the caller restores the heap's order.
bool Fluid::append_level(std::uint32_t index) {
  Resource& resource = resources_[index];
  ++resource.version;
  if (resource.load == 0) return false;
  const Uint128 level = resource.left / resource.load;
  levels_.push_back(
      {level > unlimited ? unlimited : static_cast<std::uint64_t>(level), index, resource.version});
  return true;
}

/// All classes of the set that are still free on a resource get the rate.
void Fluid::freeze_on(std::uint32_t full, std::uint64_t rate) {
  std::vector<std::uint32_t>& lowered = queue_;
  lowered.clear();
  for (const Active& active : active_classes_[full]) {
    Class& flow_class = classes_[active.flow_class];
    if (flow_class.frozen) continue;
    flow_class.frozen = true;
    flow_class.new_rate = rate;
    for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
      Resource& resource = resources_[usages_[u].resource];
      const std::uint64_t load = std::uint64_t{flow_class.flows} * usages_[u].weight;
      resource.left -= Uint128(load) * rate;
      resource.load -= load;
      if (resource.queued) continue;
      resource.queued = true;
      lowered.push_back(usages_[u].resource);
    }
  }
  // Levels can only have risen, so pushing them after all classes are frozen is safe.
  for (const std::uint32_t r : lowered) {
    resources_[r].queued = false;
    if (append_level(r)) std::push_heap(levels_.begin(), levels_.end(), std::greater<>());
  }
}

/// Water-fills the set beside what the other classes carry. False when a resource becomes a bottleneck that
/// also has classes outside the set; these are added then, and filling must start again.
bool Fluid::fill() {
  for (const std::uint32_t r : touched_) {
    Resource& resource = resources_[r];
    resource.left = resource.capacity - resource.carried;
    resource.load = 0;
    resource.bottleneck = false;
  }
  for (const std::uint32_t c : set_) {
    Class& flow_class = classes_[c];
    flow_class.frozen = false;
    for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
      resources_[usages_[u].resource].load += std::uint64_t{flow_class.flows} * usages_[u].weight;
    }
  }
  levels_.clear();
  for (const std::uint32_t r : touched_) append_level(r);
  std::make_heap(levels_.begin(), levels_.end(), std::greater<>());
  while (!levels_.empty()) {
    const Level level = levels_.front();
    std::pop_heap(levels_.begin(), levels_.end(), std::greater<>());
    levels_.pop_back();
    Resource& resource = resources_[level.resource];
    if (resource.version != level.version) continue;
    if (resource.in_set < active_classes_[level.resource].size()) {
      add_all_on(level.resource);
      return false;
    }
    resource.bottleneck = true;
    freeze_on(level.resource, level.rate);
  }
  return true;
}

/// Takes the new rates over and clears the marks of solving.
void Fluid::commit() {
  for (const std::uint32_t c : set_) {
    Class& flow_class = classes_[c];
    for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
      resources_[usages_[u].resource].carried +=
          Uint128(flow_class.flows) * usages_[u].weight * flow_class.new_rate;
    }
    flow_class.in_set = false;
    const bool end_stands = flow_class.rate == flow_class.new_rate && !flow_class.changed;
    flow_class.solved_flows = flow_class.flows;
    if (end_stands) continue;
    settle(c);
    flow_class.rate = flow_class.new_rate;
    push_end(c);
  }
  for (const std::uint32_t r : touched_) {
    resources_[r].touched = false;
    resources_[r].in_set = 0;
  }
  for (const std::uint32_t c : changed_) classes_[c].changed = false;
  for (const std::uint32_t r : freed_) resources_[r].freed = false;
  for (auto* list : {&set_, &touched_, &changed_, &freed_}) list->clear();
  closed_ = 0;
}

void Fluid::solve() {
  constexpr int most_attempts = 8;  // then the whole connected component is solved
  for (const std::uint32_t c : changed_) {
    if (classes_[c].flows > 0) add_to_set(c);
  }
  for (const std::uint32_t r : freed_) add_all_on(r);
  int attempt = 1;
  do {
    close_set(attempt > most_attempts);
    ++attempt;
  } while (!fill());
  commit();
}

void Fluid::push_end(std::uint32_t index) {
  Class& flow_class = classes_[index];
  ++flow_class.version;
  if (flow_class.rate == 0) return;
  const Uint128 missing = marks_[index].top().service - services_[index].value;
  const Uint128 wait = (missing + flow_class.rate - 1) / flow_class.rate;
  ISTHMUS_ASSERT(wait < (Uint128{1} << 62U), "a flow would take more than 53 days");
  ends_[now_ + Duration{static_cast<std::int64_t>(wait)}].push_back({index, flow_class.version});
}

bool Fluid::next_end(Instant& when) {
  while (!ends_.empty()) {
    std::vector<End>& bucket = ends_.begin()->second;
    while (!bucket.empty() && stale(bucket.back())) bucket.pop_back();
    if (!bucket.empty()) {
      when = ends_.begin()->first;
      return true;
    }
    ends_.erase(ends_.begin());
  }
  return false;
}

void Fluid::advance(Instant now, std::vector<std::uint32_t>& ended) {
  now_ = now;
  while (!ends_.empty() && ends_.begin()->first <= now) {
    const std::vector<End> bucket = std::move(ends_.begin()->second);
    ends_.erase(ends_.begin());
    for (const End& end : bucket) {
      if (!stale(end)) finish_flows(end.flow_class, ended);
    }
  }
}

/// Ends the flows of a class whose service is complete.
void Fluid::finish_flows(std::uint32_t index, std::vector<std::uint32_t>& ended) {
  Class& flow_class = classes_[index];
  Marks& marks = marks_[index];
  settle(index);
  while (!marks.empty() && marks.top().service <= services_[index].value) {
    ended.push_back(marks.top().tag);
    marks.pop();
    --flow_class.flows;
    --active_;
  }
  ++flow_class.version;
  if (flow_class.flows > 0) {
    mark_changed(index);
  } else {
    deactivate(flow_class);
  }
}

std::int64_t Fluid::rate(std::uint32_t flow_class) const {
  return static_cast<std::int64_t>(classes_[flow_class].rate >> rate_bits);
}

std::string Fluid::certificate() const {
  std::vector<Uint128> carried(resources_.size());
  std::vector<std::uint64_t> fastest(resources_.size()), weight(resources_.size());
  for (std::size_t r = 0; r < resources_.size(); ++r) {
    for (const auto& [c, usage] : active_classes_[r]) {
      const std::uint64_t load = std::uint64_t{usages_[usage].weight} * classes_[c].flows;
      carried[r] += Uint128(load) * classes_[c].rate;
      weight[r] += load;
      fastest[r] = std::max(fastest[r], classes_[c].rate);
    }
    if (carried[r] > resources_[r].capacity)
      return fmt::format("resource {} carries more than its capacity", r);
  }
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const Class& flow_class = classes_[c];
    if (flow_class.flows == 0) continue;
    bool bottleneck = false;
    for (std::uint32_t u = flow_class.first_usage; u < flow_class.end_usage; ++u) {
      const std::uint32_t r = usages_[u].resource;
      // Full within the rounding of rates: one unit of rate for each flow on the resource.
      const bool full = resources_[r].capacity - carried[r] <= weight[r];
      bottleneck = bottleneck || (full && flow_class.rate == fastest[r]);
    }
    if (!bottleneck) return fmt::format("class {} has no full resource on which it is fastest", c);
  }
  return {};
}

}  // namespace isthmus::sim

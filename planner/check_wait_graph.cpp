#include <algorithm>
#include <utility>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;

/// Lists of numbers by key, in one array.
struct Adjacency {
  std::vector<std::size_t> begin;
  std::vector<std::uint32_t> values;

  Adjacency() = default;
  Adjacency(std::size_t keys, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& entries)
      : begin(keys + 1, 0), values(entries.size()) {
    for (const auto& entry : entries) ++begin[entry.first + std::size_t{1}];
    for (std::size_t key = 0; key < keys; ++key) begin[key + 1] += begin[key];
    std::vector<std::size_t> next = begin;
    for (const auto& entry : entries) values[next[entry.first]++] = entry.second;
  }
  std::span<const std::uint32_t> of(std::size_t key) const {
    return std::span(values).subspan(begin[key], begin[key + 1] - begin[key]);
  }
};

/// Events are numbered: first all starts, by rank, lane and group, then all operations.
class WaitGraph {
 public:
  explicit WaitGraph(const Plan& plan) : plan_(plan), keys_(plan) {
    for (std::uint32_t i = 0; i < plan.instances.size(); ++i) add_instance(i);
    number_starts();
  }

  /// The operations of one cycle, each waiting for the one before it; empty when there is none.
  std::vector<StepPlace> cycle() const;

 private:
  struct Part {
    std::uint32_t rank, lane, group, operation;
    friend auto operator<=>(const Part&, const Part&) = default;
  };
  using Edges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  void add_instance(std::uint32_t index);
  std::uint32_t operation_of(const StepPlace& place);
  void number_starts();
  std::vector<std::uint32_t> waits_left() const;

  template <class Visit>
  void for_each_later(std::uint32_t event, Visit visit) const {
    if (event < starts_) {
      if (event + 1 < run_end_[event]) visit(event + 1);
      for (const std::uint32_t operation : operations_of_start_.of(event)) visit(starts_ + operation);
      return;
    }
    for (const std::uint32_t start : starts_of_operation_.of(event - starts_)) {
      const std::uint64_t freed = std::uint64_t{start} + window_[start];
      if (freed < run_end_[start]) visit(static_cast<std::uint32_t>(freed));
    }
    for (const std::uint32_t later : dependents_.of(event - starts_)) visit(starts_ + later);
  }

  const Plan& plan_;
  OperationKeys keys_;
  std::unordered_map<OperationKey, std::uint32_t, OperationKeyHash> coalesced_;
  std::vector<StepPlace> operations_;             // a step of each
  std::vector<Part> parts_;                       // which operations each rank takes part in
  Edges waits_;                                   // operation, dependent
  std::vector<std::uint32_t> operation_of_step_;  // of the instance at hand

  std::uint32_t starts_ = 0;
  std::vector<std::uint32_t> run_end_;  // by start: one past the last start of that rank and lane
  std::vector<std::uint32_t> window_;   // by start
  Adjacency operations_of_start_, starts_of_operation_, dependents_;
};

void WaitGraph::add_instance(std::uint32_t index) {
  const Pattern& pattern = plan_.pattern(plan_.instances[index]);
  operation_of_step_.resize(pattern.steps.size());
  for (std::uint32_t i = 0; i < pattern.steps.size(); ++i) {
    const std::uint32_t operation = operation_of({index, i});
    operation_of_step_[i] = operation;
    for (const std::uint32_t earlier : dependencies(pattern, pattern.steps[i])) {
      waits_.push_back({operation_of_step_[earlier], operation});
    }
  }
}

std::uint32_t WaitGraph::operation_of(const StepPlace& place) {
  const Instance& instance = plan_.instances[place.instance];
  const Step& step = plan_.pattern(instance).steps[place.step];
  const std::uint32_t lane = lane_of(instance, step);
  const auto next = static_cast<std::uint32_t>(operations_.size());
  if (plan_.lanes[lane].coalesce) {
    const auto added = coalesced_.try_emplace(keys_.key(instance, place.step), next);
    if (!added.second) return added.first->second;
  }
  operations_.push_back(place);
  const std::uint32_t group = plan_.group_of(instance, place.step);
  for_each_rank(plan_, instance, step, [&](std::uint32_t rank) {
    parts_.push_back({rank, lane, group, next});
  });
  return next;
}

void WaitGraph::number_starts() {
  std::sort(parts_.begin(), parts_.end());
  Edges start_operation, operation_start;
  std::vector<std::uint32_t> run_of;  // by start: number of its rank and lane
  std::vector<std::uint32_t> ends;    // by run
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const bool new_run = i == 0 || part.rank != parts_[i - 1].rank || part.lane != parts_[i - 1].lane;
    if (new_run) ends.push_back(0);
    if (new_run || part.group != parts_[i - 1].group) {
      run_of.push_back(static_cast<std::uint32_t>(ends.size() - 1));
      window_.push_back(plan_.lanes[part.lane].window);
      ends.back() = static_cast<std::uint32_t>(run_of.size());
    }
    const auto start = static_cast<std::uint32_t>(run_of.size() - 1);
    start_operation.push_back({start, part.operation});
    operation_start.push_back({part.operation, start});
  }
  starts_ = static_cast<std::uint32_t>(run_of.size());
  for (const std::uint32_t run : run_of) run_end_.push_back(ends[run]);
  operations_of_start_ = Adjacency(starts_, start_operation);
  starts_of_operation_ = Adjacency(operations_.size(), operation_start);
  dependents_ = Adjacency(operations_.size(), waits_);
}

/// Lets everything happen that can; the result has for each event how many of its waits never end.
std::vector<std::uint32_t> WaitGraph::waits_left() const {
  const auto events = static_cast<std::uint32_t>(starts_ + operations_.size());
  std::vector<std::uint32_t> waits(events, 0);
  for (std::uint32_t event = 0; event < events; ++event) {
    for_each_later(event, [&](std::uint32_t later) { ++waits[later]; });
  }
  std::vector<std::uint32_t> happened;
  happened.reserve(events);
  for (std::uint32_t event = 0; event < events; ++event) {
    if (waits[event] == 0) happened.push_back(event);
  }
  for (std::size_t i = 0; i < happened.size(); ++i) {
    for_each_later(happened[i], [&](std::uint32_t later) {
      if (--waits[later] == 0) happened.push_back(later);
    });
  }
  return waits;
}

std::vector<StepPlace> WaitGraph::cycle() const {
  const std::vector<std::uint32_t> waits = waits_left();
  std::vector<std::uint32_t> awaited(waits.size(),
                                     none);  // an event that never happens and that this one waits for
  std::uint32_t at = none;
  for (std::uint32_t event = 0; event < waits.size(); ++event) {
    if (waits[event] == 0) continue;
    at = event;
    for_each_later(event, [&](std::uint32_t later) { awaited[later] = event; });
  }
  if (at == none) return {};
  std::vector<bool> seen(waits.size(), false);
  for (; !seen[at]; at = awaited[at]) seen[at] = true;
  std::vector<StepPlace> operations;  // walk round the cycle once
  const std::uint32_t first = at;
  do {
    if (at >= starts_) operations.push_back(operations_[at - starts_]);
    at = awaited[at];
  } while (at != first);
  std::reverse(operations.begin(), operations.end());
  return operations;
}

}  // namespace

std::vector<StepPlace> find_wait_cycle(const Plan& plan) { return WaitGraph(plan).cycle(); }

}  // namespace isthmus

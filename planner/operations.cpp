#include "planner/operations.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "planner/policy.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t unset = 0xFFFFFFFF;

/// What steps of one lane and group must share to travel as one operation.
struct JoinKey {
  std::uint64_t where;  // lane and group
  std::uint64_t ranks;  // source and target
  std::uint64_t what;   // kind, buffers, member list
  friend bool operator==(const JoinKey&, const JoinKey&) = default;
};

struct JoinHash {
  std::size_t operator()(const JoinKey& key) const noexcept {
    std::uint64_t hash = key.where * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ (hash >> 32U) ^ key.ranks) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 29U) ^ key.what) * 0x94D049BB133111EBULL;
    return static_cast<std::size_t>(hash ^ (hash >> 31U));
  }
};

class Expander {
 public:
  Expander(const Refit& refit, const Plan& plan) : refit_(refit), plan_(plan), calls_(plan.patterns.size()) {
    const Policy* policy = find_policy(plan.policy);
    if (policy != nullptr && refit.train_ranks > 0) result_.program = policy->program;
    result_.lanes = plan.lanes;
    result_.list.reserve(std::min<std::size_t>(plan.step_count(), 1U << 20U));
    joined_.reserve(1U << 17U);
  }

  Operations run() {
    for (const Instance& instance : plan_.instances) expand(instance);
    finish_dependencies();
    return std::move(result_);
  }

 private:
  void expand(const Instance& instance) {
    const Pattern& pattern = plan_.pattern(instance);
    const Geometry& geometry = refit_.geometry(instance.tensor);
    const bool bulk = refit_.tensors[instance.tensor.index()].tensor.role == Role::bulk;
    operation_of_.assign(pattern.steps.size(), unset);
    const PatternCall& call = call_of(instance, pattern, geometry);
    for (std::size_t i = 0; i < pattern.steps.size(); ++i) {
      const Step& step = pattern.steps[i];
      Operation operation = bind(instance, pattern, step, plan_.group_of(instance, i));
      operation.bytes = geometry.source.bytes(step.region);
      operation.bulk_bytes = bulk ? operation.bytes : Bytes{};
      if (call.includes(step)) {
        const LocalRank caller = PatternCall::caller(pattern, step);
        operation.caller = global_rank(instance, caller);
        operation.call_steps = 1;
        operation.call_of = call.shares(caller);
        operation.exports = call.exports(step, refit_.tensors[instance.tensor.index()].tensor.parts);
      }
      operation_of_[i] = place(operation, step);
      result_.of_step.push_back(operation_of_[i]);
      for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
        edges_.emplace_back(operation_of_[i], operation_of_[pattern.after[a]]);
      }
    }
  }

  const PatternCall& call_of(const Instance& instance, const Pattern& pattern, const Geometry& geometry) {
    std::optional<PatternCall>& call = calls_[instance.pattern.index()];
    if (!call) call = result_.program == Program::none ? PatternCall() : PatternCall(pattern, geometry);
    return *call;
  }

  Operation bind(const Instance& instance, const Pattern& pattern, const Step& step, std::uint32_t group) {
    Operation operation;
    operation.kind = step.kind;
    operation.staged_source = step.from == Buffer::staging;
    operation.staged_target = step.to == Buffer::staging;
    operation.lane = {instance.lane.value + step.lane};
    operation.group = group;
    operation.source = global_rank(instance, step.source);
    operation.pieces = 1;
    operation.parts = step.parts;
    const bool collective = is_collective(step.kind);
    if (collective) operation.members = member_list(instance, pattern.members[step.members]);
    // An all-gather has no root: its first member stands for it, whatever the step says.
    if (step.kind == StepKind::all_gather) operation.source = result_.members[operation.members].front();
    operation.target = collective ? operation.source : global_rank(instance, step.target);
    return operation;
  }

  std::uint32_t member_list(const Instance& instance, const std::vector<LocalRank>& local) {
    std::vector<Rank> global;
    global.reserve(local.size());
    for (const LocalRank rank : local) global.push_back(global_rank(instance, rank));
    const auto [known, added] =
        lists_.emplace(std::move(global), static_cast<std::uint32_t>(result_.members.size()));
    if (added) result_.members.push_back(known->first);
    return known->second;
  }

  /// Appends the operation, or joins it to the one it travels with.
  std::uint32_t place(const Operation& operation, const Step& step) {
    const auto next = static_cast<std::uint32_t>(result_.list.size());
    if (result_.lanes[operation.lane.index()].coalesce) {
      const JoinKey key{(std::uint64_t{operation.lane.value} << 32U) | operation.group,
                        (std::uint64_t{operation.source.value} << 32U) | operation.target.value,
                        (std::uint64_t{operation.members} << 32U) | (std::uint64_t(step.kind) << 16U) |
                            (std::uint64_t(step.from) << 8U) | std::uint64_t(step.to)};
      const auto [known, added] = joined_.emplace(key, next);
      if (!added) {
        Operation& whole = result_.list[known->second];
        whole.pieces += 1;
        whole.parts += operation.parts;
        whole.call_steps += operation.call_steps;
        whole.bytes += operation.bytes;
        whole.bulk_bytes += operation.bulk_bytes;
        return known->second;
      }
    }
    result_.list.push_back(operation);
    return next;
  }

  /// Sorts the dependency pairs into the operations' ranges, each pair once.
  void finish_dependencies() {
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    std::size_t next = 0;
    for (std::uint32_t i = 0; i < result_.list.size(); ++i) {
      result_.list[i].after_begin = static_cast<std::uint32_t>(result_.after.size());
      for (; next < edges_.size() && edges_[next].first == i; ++next)
        result_.after.push_back(edges_[next].second);
      result_.list[i].after_end = static_cast<std::uint32_t>(result_.after.size());
    }
  }

  const Refit& refit_;
  const Plan& plan_;
  std::vector<std::optional<PatternCall>> calls_;  // by pattern
  Operations result_;
  std::vector<std::uint32_t> operation_of_;  // of the current instance's steps
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::unordered_map<JoinKey, std::uint32_t, JoinHash> joined_;
  std::map<std::vector<Rank>, std::uint32_t> lists_;
};

}  // namespace

Operations expand(const Refit& refit, const Plan& plan) { return Expander(refit, plan).run(); }

}  // namespace isthmus

#include "planner/operations.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "model/precision.hpp"
#include "planner/policy.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t unset = 0xFFFFFFFF;

/// What steps of one lane and group must share to travel as one operation.
struct JoinKey {
  std::uint64_t where = 0;  // lane and group
  std::uint64_t ranks = 0;  // source and target
  std::uint64_t what = 0;   // kind, buffers, member list
  friend bool operator==(const JoinKey&, const JoinKey&) = default;

  std::uint64_t hash() const {
    std::uint64_t hash = where * 0x9E3779B97F4A7C15ULL;
    hash = (hash ^ (hash >> 32U) ^ ranks) * 0xBF58476D1CE4E5B9ULL;
    hash = (hash ^ (hash >> 29U) ^ what) * 0x94D049BB133111EBULL;
    return hash ^ (hash >> 31U);
  }
};

/// Numbers by hash, in one piece of memory, 8 bytes each: a whole refit looks up tens of millions of steps.
class JoinTable {
 public:
  /// The number of this hash that `equal` accepts; `next`, which it then is, where there was none.
  template <class Equal>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, const Equal& equal) {
    if (2 * (used_ + 1) > entries_.size()) grow();
    const auto tag = static_cast<std::uint32_t>(hash >> 32U);
    std::size_t at = tag & (entries_.size() - 1);
    while (entries_[at].number != unset) {
      if (entries_[at].tag == tag && equal(entries_[at].number)) return entries_[at].number;
      at = (at + 1) & (entries_.size() - 1);
    }
    ++used_;
    entries_[at] = {tag, next};
    return next;
  }

 private:
  struct Entry {
    std::uint32_t tag = 0, number = unset;
  };

  void grow() {
    std::vector<Entry> before(std::max<std::size_t>(1024, 2 * entries_.size()));
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.number == unset) continue;
      std::size_t at = entry.tag & (entries_.size() - 1);
      while (entries_[at].number != unset) at = (at + 1) & (entries_.size() - 1);
      entries_[at] = entry;
    }
  }

  std::vector<Entry> entries_;  // a power of two of them
  std::size_t used_ = 0;
};

/// Who waits for whom, each pair once however many steps say so.
class Dependencies {
 public:
  void add(std::uint32_t operation, std::uint32_t before) {
    if (operation >= latest_.size()) latest_.resize(std::size_t{operation} + 1, unset);
    std::uint32_t edge = latest_[operation];
    for (std::size_t looks = 0; edge != unset && looks < 8; ++looks, edge = edges_[edge].earlier) {
      if (edges_[edge].before == before) return;  // joined steps repeat what the first of them waited for
    }
    edges_.push_back({before, latest_[operation]});
    latest_[operation] = static_cast<std::uint32_t>(edges_.size() - 1);
  }

  /// Appends those of an operation, ascending.
  void list(std::uint32_t operation, std::vector<std::uint32_t>& after) const {
    if (operation >= latest_.size()) return;
    const auto first = static_cast<std::ptrdiff_t>(after.size());
    for (std::uint32_t edge = latest_[operation]; edge != unset; edge = edges_[edge].earlier) {
      after.push_back(edges_[edge].before);
    }
    std::sort(after.begin() + first, after.end());
    after.erase(std::unique(after.begin() + first, after.end()), after.end());
  }

 private:
  struct Edge {
    std::uint32_t before = 0, earlier = unset;
  };
  std::vector<std::uint32_t> latest_;  // by operation: an edge
  std::vector<Edge> edges_;
};

class Expander {
 public:
  Expander(const Refit& refit, const Plan& plan) : refit_(refit), plan_(plan), facts_(plan.patterns.size()) {
    const Policy* policy = find_policy(plan.policy);
    if (policy != nullptr && refit.train_ranks > 0) result_.program = policy->program;
    result_.lanes = plan.lanes;
    result_.list.reserve(std::min<std::size_t>(plan.step_count(), 1U << 20U));
  }

  Operations run() {
    for (const Instance& instance : plan_.instances) expand(instance);
    list_dependencies();
    return std::move(result_);
  }

 private:
  void expand(const Instance& instance) {
    const Pattern& pattern = plan_.pattern(instance);
    const Geometry& geometry = refit_.geometry(instance.tensor);
    const bool bulk = refit_.tensors[instance.tensor.index()].tensor.role == Role::bulk;
    operation_of_.assign(pattern.steps.size(), unset);
    const Facts& facts = facts_of(instance, pattern, geometry);
    for (std::size_t i = 0; i < pattern.steps.size(); ++i) {
      const Step& step = pattern.steps[i];
      Operation operation = bind(instance, step, plan_.group_of(instance, i));
      operation.bytes = facts.bytes[i];
      operation.bulk_bytes = bulk ? operation.bytes : Bytes{};
      if (step.kind == StepKind::quantize)
        operation.quantising =
            quantising_traffic(refit_.tensors[instance.tensor.index()].tensor.quantised, operation.bytes);
      if (facts.call.includes(step)) {
        const LocalRank caller = PatternCall::caller(pattern, step);
        operation.caller = global_rank(instance, caller);
        operation.call_steps = 1;
        operation.call_of = facts.call.shares(caller);
        operation.exports = facts.call.exports(step, refit_.tensors[instance.tensor.index()].tensor.parts);
      }
      operation_of_[i] = place(operation, step);
      result_.of_step.push_back(operation_of_[i]);
      for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
        dependencies_.add(operation_of_[i], operation_of_[pattern.after[a]]);
      }
    }
  }

  /// What all instances of a pattern share.
  struct Facts {
    PatternCall call;
    std::vector<Bytes> bytes;  // by step
  };

  const Facts& facts_of(const Instance& instance, const Pattern& pattern, const Geometry& geometry) {
    std::optional<Facts>& facts = facts_[instance.pattern.index()];
    if (facts) return *facts;
    facts.emplace();
    if (result_.program != Program::none) facts->call = PatternCall(pattern, geometry);
    facts->bytes.reserve(pattern.steps.size());
    for (const Step& step : pattern.steps) facts->bytes.push_back(geometry.source.bytes(step.region));
    return *facts;
  }

  Operation bind(const Instance& instance, const Step& step, std::uint32_t group) {
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
    if (collective) operation.members = member_list(instance, step.members);
    // An all-gather has no root: its first member stands for it, whatever the step says.
    if (step.kind == StepKind::all_gather) operation.source = result_.members[operation.members].front();
    operation.target = collective ? operation.source : global_rank(instance, step.target);
    return operation;
  }

  std::uint32_t member_list(const Instance& instance, std::uint32_t members) {
    const JoinKey key{(std::uint64_t{instance.pattern.value} << 32U) | members,
                      (std::uint64_t{instance.source_base.value} << 32U) | instance.target_base.value, 0};
    const auto next = static_cast<std::uint32_t>(list_of_.size());
    const std::uint32_t known = bound_lists_.find_or_add(
        key.hash(), next, [&](std::uint32_t number) { return bound_keys_[number] == key; });
    if (known == next) {
      bound_keys_.push_back(key);
      list_of_.push_back(global_list(instance, plan_.pattern(instance).members[members]));
    }
    return list_of_[known];
  }

  std::uint32_t global_list(const Instance& instance, const std::vector<LocalRank>& local) {
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
    const auto buffers = static_cast<std::uint16_t>((unsigned(step.from) << 8U) | unsigned(step.to));
    if (result_.lanes[operation.lane.index()].coalesce) {
      const JoinKey key = join_key(operation, buffers);
      const std::uint32_t known = joined_.find_or_add(key.hash(), next, [&](std::uint32_t number) {
        return join_key(result_.list[number], buffers_[number]) == key;
      });
      if (known != next) {
        Operation& whole = result_.list[known];
        whole.pieces += 1;
        whole.parts += operation.parts;
        whole.call_steps += operation.call_steps;
        whole.bytes += operation.bytes;
        whole.bulk_bytes += operation.bulk_bytes;
        whole.quantising += operation.quantising;
        return known;
      }
    }
    result_.list.push_back(operation);
    buffers_.push_back(buffers);
    return next;
  }

  static JoinKey join_key(const Operation& operation, std::uint16_t buffers) {
    return {(std::uint64_t{operation.lane.value} << 32U) | operation.group,
            (std::uint64_t{operation.source.value} << 32U) | operation.target.value,
            (std::uint64_t{operation.members} << 32U) | (std::uint64_t(operation.kind) << 16U) | buffers};
  }

  void list_dependencies() {
    for (std::uint32_t i = 0; i < result_.list.size(); ++i) {
      result_.list[i].after_begin = static_cast<std::uint32_t>(result_.after.size());
      dependencies_.list(i, result_.after);
      result_.list[i].after_end = static_cast<std::uint32_t>(result_.after.size());
    }
  }

  const Refit& refit_;
  const Plan& plan_;
  std::vector<std::optional<Facts>> facts_;  // by pattern
  Operations result_;
  std::vector<std::uint32_t> operation_of_;  // of the current instance's steps
  Dependencies dependencies_;
  JoinTable joined_, bound_lists_;      // operations; indices of list_of_
  std::vector<std::uint16_t> buffers_;  // by operation: what its steps read from and write to
  std::vector<JoinKey> bound_keys_;     // members of a bound pattern
  std::vector<std::uint32_t> list_of_;  // by these
  std::map<std::vector<Rank>, std::uint32_t> lists_;
};

}  // namespace

Operations expand(const Refit& refit, const Plan& plan) { return Expander(refit, plan).run(); }

}  // namespace isthmus

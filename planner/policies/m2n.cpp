// NCCL M2N as NeMo RL uses it. Bulk tensors (bare tensors: all) are resharded one after the other, stage by
// stage, on a stream and in a staging slot per stage in flight; then misc tensors travel as packed
// broadcasts. How one tensor travels: model/m2n_rules.hpp, as steps: m2n_pattern.hpp. Refused with the first
// tensor that M2N does not take (model/m2n_limits.hpp).

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/m2n_limits.hpp"
#include "planner/policies/gather_broadcast.hpp"
#include "planner/policies/m2n_pattern.hpp"
#include "planner/policy.hpp"

namespace isthmus {
namespace {

constexpr int staging_slots = 4;                       // M2N's pool: so many communicators in flight per GPU
constexpr Bytes smallest_slot{std::int64_t{2} << 30};  // its default; larger shards need the setting raised

class M2nPlanner {
 public:
  M2nPlanner(const Refit& refit, M2nBalance balance) : refit_(refit), balance_(balance), cache_(plan_) {}

  PlanResult make() {
    if (std::optional<Refused> refused = refusal()) return *refused;
    plan_.policy = fmt::format("m2n-{}", to_string(balance_));
    streams_ = std::clamp(std::min(refit_.settings.streams, refit_.stages), 1, staging_slots);
    // Misc packets use the same lanes in later groups, and the last bulk tensor is unpacked on all of them:
    // no rank starts on the packets before it has the bulk, as NeMo RL waits in between.
    const int lanes = std::max(streams_, has_misc() ? refit_.settings.buffers : 0);
    for (int lane = 0; lane < lanes; ++lane) plan_.lanes.push_back({fmt::format("stream {}", lane), 1, true});
    for (int slot = 0; slot < streams_; ++slot)
      plan_.buffers.push_back({fmt::format("M2N staging slot {}", slot), slot_size()});
    const std::vector<TensorId> order = bulk_order();
    for (const TensorId tensor : order) add_bulk(tensor, has_misc() && tensor == order.back());
    PacketWriter packets(refit_, plan_, group_);
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t)
      if (!bulk(refit_.tensors[t])) packets.add(TensorId{t});
    return std::move(plan_);
  }

 private:
  bool bulk(const RefitEntry& entry) const {
    return refit_.train_ranks == 0 || entry.tensor.role == Role::bulk;
  }

  bool has_misc() const {
    return std::any_of(refit_.tensors.begin(), refit_.tensors.end(),
                       [&](const RefitEntry& entry) { return !bulk(entry); });
  }

  std::optional<Refused> refusal() const {
    std::set<std::tuple<std::uint32_t, Rank, Rank>> accepted;
    for (const RefitEntry& entry : refit_.tensors) {
      if (!bulk(entry) || !accepted.insert({entry.geometry, entry.source_base, entry.target_base}).second)
        continue;
      const std::vector<M2nFault> faults = m2n_faults(refit_, entry, balance_);
      if (faults.empty()) continue;
      return Refused{fmt::format("tensor {}: {}: {}; M2N takes {}", entry.tensor.name,
                                 faults.front().source ? "source" : "target", faults.front().found,
                                 faults.front().allowed)};
    }
    return std::nullopt;
  }

  /// Bulk tensors stage by stage, stages in the order in which their first tensors come.
  std::vector<TensorId> bulk_order() const {
    std::vector<std::pair<int, std::vector<TensorId>>> stages;
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      if (!bulk(entry)) continue;
      const auto known = std::find_if(stages.begin(), stages.end(),
                                      [&](const auto& stage) { return stage.first == entry.stage; });
      auto& list = known == stages.end() ? stages.emplace_back(entry.stage, std::vector<TensorId>{}) : *known;
      list.second.push_back(TensorId{t});
    }
    std::vector<TensorId> order;
    for (const auto& [stage, tensors] : stages) order.insert(order.end(), tensors.begin(), tensors.end());
    return order;
  }

  Bytes slot_size() const {
    Bytes size = smallest_slot;
    for (const RefitEntry& entry : refit_.tensors) {
      if (!bulk(entry)) continue;
      const Geometry& geometry = refit_.geometries[entry.geometry];
      size = std::max({size, geometry.source.bytes(geometry.source.region(0)),
                       geometry.target.bytes(geometry.target.region(0))});
    }
    return size;
  }

  void add_bulk(TensorId tensor, bool before_misc) {
    const RefitEntry& entry = refit_.tensors[tensor.index()];
    const auto slot = static_cast<std::uint32_t>(entry.stage % streams_);
    PatternCache::Key key{entry.geometry, before_misc};
    if (refit_.train_ranks == 0) {  // of a whole refit, all stages have equal communicators
      key.push_back(entry.source_base.value);
      key.push_back(entry.target_base.value);
    }
    M2nLanes lanes;
    if (before_misc)
      lanes = {static_cast<std::uint16_t>(slot), static_cast<std::int64_t>(plan_.lanes.size())};
    const PatternId pattern = cache_.get(key, [&] { return pattern_of(entry, lanes); });
    Instance instance{pattern, tensor, entry.source_base, entry.target_base, LaneId{before_misc ? 0 : slot},
                      group_};
    if (!before_misc) instance.buffer = slot;  // else it stages on several lanes, which order nothing
    plan_.instances.push_back(instance);
    group_ += 1 + plan_.patterns[pattern.index()].steps.back().group;  // the unpacking is last
  }

  Pattern pattern_of(const RefitEntry& entry, const M2nLanes& lanes) const {
    const M2nTask task = m2n_task(refit_, entry);
    return m2n_pattern(refit_, entry, task, m2n_decide(task, {balance_, refit_.settings.m2n}), lanes);
  }

  const Refit& refit_;
  M2nBalance balance_;
  Plan plan_;
  PatternCache cache_;
  int streams_ = 1;
  std::uint32_t group_ = 0;
};

}  // namespace

PlanResult plan_m2n_uniform(const Refit& refit) { return M2nPlanner(refit, M2nBalance::uniform).make(); }

PlanResult plan_m2n_node_aware(const Refit& refit) {
  return M2nPlanner(refit, M2nBalance::node_aware).make();
}

}  // namespace isthmus

// NeMo RL's python reshard: striped where that applies, else the exact plan with a broadcast inside each
// replica group (striped_rules.hpp). Steps of a tensor, phase by phase: local copies and packs; all messages
// in one group, or in as few as are safe; unpacks; the exchange inside the replica groups. Target shards are
// dense here: a plan knows them by element, not by address, so the library's detour for strided target
// tensors (one dense buffer per shard and a copy back) does not appear.
// Misc tensors of a whole refit follow in packets (stage_streams.hpp).

#include <algorithm>

#include "planner/policies/stage_streams.hpp"
#include "planner/policies/striped_rules.hpp"
#include "planner/policy.hpp"

namespace isthmus {
namespace {

class StripedSteps {
 public:
  StripedSteps(const Geometry& geometry, const RefitEntry& entry)
      : source_base_(entry.source_base.value),
        target_base_(entry.target_base.value),
        rules_(striped_rules(geometry, entry.source_base, entry.target_base)) {
    for (const ReshardTransfer& whole : rules_.transfers) {
      ReshardTransfer transfer = whole;
      for (const Region& piece : message_pieces(geometry.source, whole.box)) {
        transfer.box = piece;
        transfers_.push_back({transfer, none});
      }
    }
    for (const Rank rank : geometry.target.mesh.ranks)
      arrivals_.resize(std::max<std::size_t>(arrivals_.size(), rank.index() + 1));
  }

  Pattern build() {
    add_local_work();
    add_messages();
    add_unpacks();
    add_exchanges();
    return std::move(pattern_);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  struct Traveller {
    ReshardTransfer transfer;
    std::uint32_t latest = none;  // the step that the next one of this transfer waits for
  };

  void add_local_work() {
    SafeGroups groups(next_group_);
    for (Traveller& traveller : transfers_) {
      const ReshardTransfer& transfer = traveller.transfer;
      if (!transfer.local && !transfer.packed) continue;
      Step step = make(transfer, transfer.local ? StepKind::copy : StepKind::pack);
      if (transfer.packed) {
        step.to = Buffer::staging;
        step.target = step.source;
      }
      place(traveller, step, groups);
    }
    next_group_ = groups.end();
  }

  void add_messages() {
    SafeGroups groups(next_group_);
    for (Traveller& traveller : transfers_) {
      if (traveller.transfer.local) continue;
      Step step = make(traveller.transfer, StepKind::send);
      if (traveller.transfer.packed) step.from = Buffer::staging;
      if (traveller.transfer.staged) step.to = Buffer::staging;
      place(traveller, step, groups);
    }
    next_group_ = groups.end();
  }

  void add_unpacks() {
    SafeGroups groups(next_group_);
    for (Traveller& traveller : transfers_) {
      if (!traveller.transfer.staged) continue;
      Step step = make(traveller.transfer, StepKind::unpack);
      step.from = Buffer::staging;
      step.source = step.target;
      place(traveller, step, groups);
    }
    next_group_ = groups.end();
  }

  void add_exchanges() {
    for (const Traveller& traveller : transfers_)
      arrivals_[traveller.transfer.receiver].push_back(traveller.latest);
    for (const Shard& group : rules_.groups) {
      if (group.holders.size() < 2) continue;
      Step step;
      step.kind = rules_.striped() ? StepKind::all_gather : StepKind::broadcast;
      step.from = Buffer::target;
      step.parts = 0;  // no exporter hands out tensors one by one
      step.source = LocalRank::target(group.holders.front());
      step.group = next_group_;
      step.region = group.region;
      step.members = static_cast<std::uint32_t>(pattern_.members.size());
      std::vector<LocalRank>& members = pattern_.members.emplace_back();
      step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
      for (const std::uint32_t member : group.holders) {
        members.push_back(LocalRank::target(member));
        pattern_.after.insert(pattern_.after.end(), arrivals_[member].begin(), arrivals_[member].end());
      }
      step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
      pattern_.steps.push_back(step);
    }
  }

  static Step make(const ReshardTransfer& transfer, StepKind kind) {
    Step step;
    step.kind = kind;
    step.source = LocalRank::source(transfer.sender);
    step.target = LocalRank::target(transfer.receiver);
    step.region = transfer.box;
    return step;
  }

  /// Appends the traveller's next step, which waits for its last one.
  void place(Traveller& traveller, Step step, SafeGroups& groups) {
    step.group = groups.place(global(step.source), global(step.target));
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    if (traveller.latest != none) pattern_.after.push_back(traveller.latest);
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
    traveller.latest = static_cast<std::uint32_t>(pattern_.steps.size());
    pattern_.steps.push_back(step);
  }

  std::uint32_t global(LocalRank rank) const {
    const bool target = (rank.value & LocalRank::target_side) != 0;
    return target ? target_base_ + (rank.value & ~LocalRank::target_side) : source_base_ + rank.value;
  }

  std::uint32_t source_base_, target_base_;
  ReshardRules rules_;
  std::vector<Traveller> transfers_;
  std::vector<std::vector<std::uint32_t>> arrivals_;  // per local target rank: the steps that bring its part
  Pattern pattern_;
  std::uint32_t next_group_ = 0;
};

}  // namespace

PlanResult plan_striped(const Refit& refit) {
  return plan_hybrid("striped", refit, [](const Geometry& geometry, const RefitEntry& entry) {
    return StripedSteps(geometry, entry).build();
  });
}

}  // namespace isthmus

// NeMo RL's python reshard: striped where that applies, else the exact plan with a broadcast inside each
// replica group (striped_rules.hpp). Steps of a tensor, phase by phase: local copies and packs; all messages
// in one group, or in as few as are safe; unpacks; the exchange inside the replica groups. Target shards are
// dense here: a plan knows them by element, not by address, so the library's detour for strided target
// tensors (one dense buffer per shard and a copy back) does not appear.
// Misc tensors of a whole refit follow in packets (stage_streams.hpp).

#include <algorithm>

#include "planner/large_arrays.hpp"
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
    cut_large(geometry.source);
    latest_.assign(rules_.transfers.size(), none);
    for (const Rank rank : geometry.target.mesh.ranks)
      arrivals_.resize(std::max<std::size_t>(arrivals_.size(), rank.index() + 1));
  }

  Pattern build() {
    reserve_large(pattern_.steps, steps_of_transfers() + rules_.groups.size());
    add_local_work();
    add_messages();
    add_unpacks();
    add_exchanges();
    return std::move(pattern_);
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  /// Boxes that no one message carries become several.
  void cut_large(const Layout& layout) {
    std::vector<ReshardTransfer> cut;
    std::vector<Region> pieces;
    for (std::size_t t = 0; t < rules_.transfers.size(); ++t) {
      ReshardTransfer transfer = rules_.transfers[t];
      find_message_pieces(layout, transfer.box, pieces);
      if (pieces.size() > 1 && cut.empty())
        cut.assign(rules_.transfers.begin(), rules_.transfers.begin() + static_cast<std::ptrdiff_t>(t));
      if (pieces.size() == 1 && cut.empty()) continue;
      for (const Region& piece : pieces) {
        transfer.box = piece;
        cut.push_back(transfer);
      }
    }
    if (!cut.empty()) rules_.transfers = std::move(cut);
  }

  /// How many steps all messages, copies, packs and unpacks are.
  std::size_t steps_of_transfers() const {
    std::size_t steps = rules_.transfers.size();
    for (const ReshardTransfer& transfer : rules_.transfers)
      steps += (transfer.packed ? 1U : 0U) + (transfer.staged ? 1U : 0U);
    return steps;
  }

  void add_local_work() {
    SafeGroups groups(next_group_);
    for (std::size_t t = 0; t < rules_.transfers.size(); ++t) {
      const ReshardTransfer& transfer = rules_.transfers[t];
      if (!transfer.local && !transfer.packed) continue;
      Step step = make(transfer, transfer.local ? StepKind::copy : StepKind::pack);
      if (transfer.packed) {
        step.to = Buffer::staging;
        step.target = step.source;
      }
      place(t, step, groups);
    }
    next_group_ = groups.end();
  }

  void add_messages() {
    SafeGroups groups(next_group_);
    for (std::size_t t = 0; t < rules_.transfers.size(); ++t) {
      const ReshardTransfer& transfer = rules_.transfers[t];
      if (transfer.local) continue;
      Step step = make(transfer, StepKind::send);
      if (transfer.packed) step.from = Buffer::staging;
      if (transfer.staged) step.to = Buffer::staging;
      place(t, step, groups);
    }
    next_group_ = groups.end();
  }

  void add_unpacks() {
    SafeGroups groups(next_group_);
    for (std::size_t t = 0; t < rules_.transfers.size(); ++t) {
      const ReshardTransfer& transfer = rules_.transfers[t];
      if (!transfer.staged) continue;
      Step step = make(transfer, StepKind::unpack);
      step.from = Buffer::staging;
      step.source = step.target;
      place(t, step, groups);
    }
    next_group_ = groups.end();
  }

  void add_exchanges() {
    const bool alone = std::all_of(rules_.groups.begin(), rules_.groups.end(),
                                   [](const Shard& group) { return group.holders.size() < 2; });
    if (alone) return;
    for (std::size_t t = 0; t < rules_.transfers.size(); ++t)
      arrivals_[rules_.transfers[t].receiver].push_back(latest_[t]);
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

  /// Appends the transfer's next step, which waits for its last one.
  void place(std::size_t transfer, Step& step, SafeGroups& groups) {
    step.group = groups.place(global(step.source), global(step.target));
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    if (latest_[transfer] != none) pattern_.after.push_back(latest_[transfer]);
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
    latest_[transfer] = static_cast<std::uint32_t>(pattern_.steps.size());
    pattern_.steps.push_back(step);
  }

  std::uint32_t global(LocalRank rank) const {
    const bool target = (rank.value & LocalRank::target_side) != 0;
    return target ? target_base_ + (rank.value & ~LocalRank::target_side) : source_base_ + rank.value;
  }

  std::uint32_t source_base_, target_base_;
  ReshardRules rules_;
  std::vector<std::uint32_t> latest_;                 // by transfer: the step that its next one waits for
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

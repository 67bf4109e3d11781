#include "planner/policies/lent_pattern.hpp"

#include <algorithm>
#include <utility>

#include "planner/policies/balanced_pattern.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t no_step = 0xFFFFFFFF;

class PatternLending {
 public:
  PatternLending(const Refit& refit, const Pattern& old, const Instance& like, NicSide side,
                 const std::vector<std::uint32_t>& rank_of_gpu)
      : refit_(refit), old_(old), like_(like), side_(side), rank_of_gpu_(rank_of_gpu) {}

  Pattern run(const StepCuts& cuts) {
    pieces_.resize(old_.steps.size());
    for (std::uint32_t i = 0; i < old_.steps.size(); ++i) note_staging(old_.steps[i]);
    for (std::uint32_t i = 0; i < old_.steps.size(); ++i) {
      const auto cut = cuts.find(i);
      if (cut == cuts.end()) {
        add(i, {old_.steps[i].region, std::nullopt});
      } else {
        for (const StepPiece& piece : cut->second) add(i, piece);
      }
    }
    return std::move(pattern_);
  }

 private:
  /// Where a part of an old step has arrived, and how it came.
  struct ArrivedPiece {
    Region region;
    std::uint32_t step = 0;         // that leaves it where the old step did
    std::uint32_t entry = no_step;  // that left it in a lender's staging before
  };
  struct StagedPiece {
    Region region;
    std::uint32_t step = no_step;  // that brought it from its domain, if one did
  };

  LocalRank named(LocalRank rank) const {
    const bool target = (rank.value & LocalRank::target_side) != 0;
    return target ? rank : LocalRank::source(global_rank(like_, rank).value);
  }

  void note_staging(const Step& step) {
    if (step.to == Buffer::staging)
      staged_[global_rank(like_, step.target).value].push_back({step.region, no_step});
  }

  void add(std::uint32_t index, const StepPiece& piece) {
    Step step = old_.steps[index];
    step.source = named(step.source);
    step.target = named(step.target);
    step.region = piece.region;
    std::vector<std::uint32_t> after = feeds(index, piece.region);
    if (side_ == NicSide::in) leave_from_entry(step, after);
    if (piece.lender) {
      const std::uint32_t lender = rank_of_gpu_[piece.lender->index()];
      if (side_ == NicSide::in ? enter(index, step, after, lender) : leave(index, step, after, lender))
        return;
    }
    pieces_[index].push_back({step.region, push(step, after), no_step});
  }

  /// Steps that what the old step waited for has become, as far as the region needs them.
  std::vector<std::uint32_t> feeds(std::uint32_t index, const Region& region) const {
    std::vector<std::uint32_t> after;
    for (std::uint32_t a = old_.steps[index].after_begin; a < old_.steps[index].after_end; ++a) {
      const std::vector<ArrivedPiece>& pieces = pieces_[old_.after[a]];
      for (const ArrivedPiece& piece : pieces)
        if (!intersect(piece.region, region).empty()) after.push_back(piece.step);
    }
    return after;
  }

  /// What goes on to another domain takes the same NIC out as it took in.
  void leave_from_entry(Step& step, std::vector<std::uint32_t>& after) const {
    if (step.lane != network_lane || step.from != Buffer::target || after.size() != 1) return;
    const std::uint32_t entry = entry_of(after.front());
    if (entry == no_step || !pattern_.steps[entry].region.contains(step.region)) return;
    const LocalRank lender = pattern_.steps[entry].target;
    if (!reachable(refit_.gpu(global(lender)), refit_.gpu(global(step.target)))) return;
    step.source = lender;
    step.from = Buffer::staging;
    after = {entry};
  }

  std::uint32_t entry_of(std::uint32_t step) const {
    const auto found = entries_.find(step);
    return found == entries_.end() ? no_step : found->second;
  }

  bool reachable(GpuId from, GpuId to) const { return refit_.fabric.reachable(from, to); }

  /// Of a step with new names.
  Rank global(LocalRank rank) const {
    const bool target = (rank.value & LocalRank::target_side) != 0;
    return target ? global_rank(like_, rank) : Rank{rank.value};
  }

  bool enter(std::uint32_t index, Step step, const std::vector<std::uint32_t>& after, std::uint32_t lender) {
    if (step.to != Buffer::target || staged_there(lender, step.region)) return false;
    if (!reachable(refit_.gpu(global(step.source)), refit_.gpu({lender}))) return false;
    const LocalRank receiver = std::exchange(step.target, LocalRank::source(lender));
    step.to = Buffer::staging;
    const std::uint32_t entry = push(step, after);
    staged_[lender].push_back({step.region, no_step});
    step.source = LocalRank::source(lender);
    step.target = receiver;
    step.from = Buffer::staging;
    step.to = Buffer::target;
    step.lane = lending_lane;
    const std::uint32_t arrived = push(step, {entry});
    entries_.emplace(arrived, entry);
    pieces_[index].push_back({step.region, arrived, entry});
    return true;
  }

  bool leave(std::uint32_t index, Step step, const std::vector<std::uint32_t>& after, std::uint32_t lender) {
    if (!reachable(refit_.gpu({lender}), refit_.gpu(global(step.target)))) return false;
    std::uint32_t hop = no_step;
    for (const StagedPiece& staged : staged_[lender]) {
      if (intersect(staged.region, step.region).empty()) continue;
      if (staged.step == no_step || !staged.region.contains(step.region)) return false;
      hop = staged.step;  // it went there for another domain, perhaps from another holder
    }
    if (hop == no_step) {
      Step before = step;
      before.lane = lending_lane;
      before.target = LocalRank::source(lender);
      before.to = Buffer::staging;
      hop = push(before, after);
      staged_[lender].push_back({step.region, hop});
    }
    step.source = LocalRank::source(lender);
    step.from = Buffer::staging;
    pieces_[index].push_back({step.region, push(step, {hop}), no_step});
    return true;
  }

  bool staged_there(std::uint32_t rank, const Region& region) const {
    const auto staged = staged_.find(rank);
    if (staged == staged_.end()) return false;
    return std::any_of(staged->second.begin(), staged->second.end(),
                       [&](const StagedPiece& piece) { return !intersect(piece.region, region).empty(); });
  }

  std::uint32_t push(Step step, const std::vector<std::uint32_t>& after) {
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    pattern_.after.insert(pattern_.after.end(), after.begin(), after.end());
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
    pattern_.steps.push_back(step);
    return static_cast<std::uint32_t>(pattern_.steps.size() - 1);
  }

  const Refit& refit_;
  const Pattern& old_;
  const Instance& like_;
  NicSide side_;
  const std::vector<std::uint32_t>& rank_of_gpu_;
  Pattern pattern_;
  std::vector<std::vector<ArrivedPiece>> pieces_;             // by old step
  std::map<std::uint32_t, std::vector<StagedPiece>> staged_;  // by global rank
  std::map<std::uint32_t, std::uint32_t> entries_;            // by step that brings it on
};

}  // namespace

Pattern lent_pattern(const Refit& refit, const Pattern& old, const Instance& like, NicSide side,
                     const std::vector<std::uint32_t>& rank_of_gpu, const StepCuts& cuts) {
  return PatternLending(refit, old, like, side, rank_of_gpu).run(cuts);
}

}  // namespace isthmus

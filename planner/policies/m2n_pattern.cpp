#include "planner/policies/m2n_pattern.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace isthmus {
namespace {

/// `count` boxes (at most) along the longest dimension.
std::vector<Region> slices_of(const Region& box, std::int64_t count) {
  std::size_t along = 0;
  for (std::size_t d = 0; d < box.dimensions; ++d)
    if (box.end[d] - box.begin[d] > box.end[along] - box.begin[along]) along = d;
  const std::int64_t extent = box.end[along] - box.begin[along];
  count = std::min(count, extent);
  std::vector<Region> slices(to_size(count), box);
  for (std::int64_t i = 0; i < count; ++i) {
    slices[to_size(i)].begin[along] = box.begin[along] + extent * i / count;
    slices[to_size(i)].end[along] = box.begin[along] + extent * (i + 1) / count;
  }
  return slices;
}

class M2nPatternBuilder {
 public:
  M2nPatternBuilder(const Refit& refit, const RefitEntry& entry, const M2nTask& task,
                    const M2nDecision& decision, const M2nLanes& lanes)
      : refit_(refit), entry_(entry), task_(task), decision_(decision), lanes_(lanes) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    first_source_ = geometry.source.mesh.ranks.front().value;
    first_target_ = geometry.target.mesh.ranks.front().value;
    chained_ = std::any_of(decision.transfers.begin(), decision.transfers.end(),
                           [](const M2nTransfer& transfer) { return transfer.chain_length > 1; });
  }

  Pattern build() {
    if (task_.source.start == task_.target.start) return self_copy();
    for (const M2nTransfer& transfer : decision_.transfers) add(transfer);
    const std::uint32_t last_group = last_group_;
    for (const auto& [where, steps] : arrivals_) unpack(where, steps, last_group + 1);
    return std::move(pattern_);
  }

 private:
  /// A target rank and the source shard whose overlap it has.
  struct Place {
    std::int64_t rank, source_shard, target_shard;
    friend auto operator<=>(const Place&, const Place&) = default;
  };
  using Steps = std::vector<std::uint32_t>;

  /// Sides share a rank only where both are that one rank.
  Pattern self_copy() {
    Step step;
    step.lane = lanes_.own;
    step.kind = StepKind::copy;
    step.source = source_rank(task_.source.start);
    step.target = target_rank(task_.target.start);
    step.region = overlap(0, 0);
    append(step, {});
    return std::move(pattern_);
  }

  Region overlap(std::int64_t source_shard, std::int64_t target_shard) const {
    return intersect(task_.source.regions[to_size(source_shard)],
                     task_.target.regions[to_size(target_shard)]);
  }

  void add(const M2nTransfer& transfer) {
    const bool inject = transfer.phase == M2nPhase::inject;
    const Region region = overlap(transfer.source_shard, transfer.target_shard);
    // The first phase of a split communicator need not be sliced: nothing is forwarded in it.
    const bool sliced = chained_ && !(inject && decision_.mapping.split);
    const std::int64_t slices = sliced ? (m2n_slices + transfer.pieces - 1) / transfer.pieces : 1;
    const std::vector<Region> boxes = slices_of(region, slices);
    const Steps brought = inject
                              ? Steps{pack(transfer, region)}
                              : arrivals_.at({transfer.sender, transfer.source_shard, transfer.target_shard});
    for (const std::int64_t receiver : transfer.receivers) {
      Steps& arrived = arrivals_[{receiver, transfer.source_shard, transfer.target_shard}];
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        Step step;
        step.kind =
            transfer.phase == M2nPhase::fanout ? kind_within(transfer.sender, receiver) : StepKind::send;
        step.from = step.to = Buffer::staging;
        step.source = inject ? source_rank(transfer.sender) : target_rank(transfer.sender);
        step.target = target_rank(receiver);
        step.group = group_of(transfer, i, boxes.size());
        step.region = boxes[i];
        const std::uint32_t before = brought[brought.size() == boxes.size() ? i : 0];
        arrived.push_back(append(step, {before}));
      }
    }
  }

  /// M2N knows blocks of ranks; whether two of one block share an NVLink domain is the fabric's.
  StepKind kind_within(std::int64_t sender, std::int64_t receiver) const {
    return domain(sender) == domain(receiver) ? StepKind::put : StepKind::send;
  }

  DomainId domain(std::int64_t rank) const {
    const auto local = static_cast<std::uint32_t>(rank - task_.target.start) + first_target_;
    return refit_.fabric.domain_of(refit_.gpu({entry_.target_base.value + local}));
  }

  /// Waves take the overlaps of different targets in rotated order, so that every source sends in each.
  std::uint32_t group_of(const M2nTransfer& transfer, std::size_t slice, std::size_t slices) const {
    const bool inject = transfer.phase == M2nPhase::inject, split = decision_.mapping.split;
    if (inject && (split || !chained_)) return 0;
    if (!chained_) return split ? 1 : 0;
    const auto turn = static_cast<std::uint32_t>((std::int64_t{transfer.piece} + transfer.target_shard) %
                                                 std::int64_t{transfer.pieces});
    const auto place = static_cast<std::uint32_t>(slice) * transfer.pieces + turn;
    const auto wave = place * m2n_slices / (transfer.pieces * static_cast<std::uint32_t>(slices));
    return inject ? wave : wave + transfer.hop + 1;
  }

  /// One strided copy per source rank and target shard, whoever it is sent to.
  std::uint32_t pack(const M2nTransfer& transfer, const Region& region) {
    const auto [known, is_new] = packs_.try_emplace({transfer.sender, transfer.target_shard}, 0);
    if (!is_new) return known->second;
    Step step;
    step.lane = lanes_.own;
    step.kind = StepKind::pack;
    step.to = Buffer::staging;
    step.source = step.target = source_rank(transfer.sender);
    step.region = region;
    return known->second = append(step, {});
  }

  void unpack(const Place& where, const Steps& arrived, std::uint32_t group) {
    Step step;
    step.kind = StepKind::unpack;
    step.from = Buffer::staging;
    step.source = step.target = target_rank(where.rank);
    step.group = group;
    const std::vector<Region> parts =
        slices_of(overlap(where.source_shard, where.target_shard), lanes_.unpacking);
    for (std::size_t part = 0; part < parts.size(); ++part) {
      step.region = parts[part];
      step.lane = lanes_.unpacking > 1 ? static_cast<std::uint16_t>(part) : lanes_.own;
      append(step, arrived);
    }
  }

  std::uint32_t append(Step step, const Steps& after) {
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    pattern_.after.insert(pattern_.after.end(), after.begin(), after.end());
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
    last_group_ = std::max(last_group_, step.group);
    pattern_.steps.push_back(step);
    return static_cast<std::uint32_t>(pattern_.steps.size() - 1);
  }

  LocalRank source_rank(std::int64_t rank) const {
    return LocalRank::source(to_size(rank - task_.source.start) + first_source_);
  }
  LocalRank target_rank(std::int64_t rank) const {
    return LocalRank::target(to_size(rank - task_.target.start) + first_target_);
  }

  const Refit& refit_;
  const RefitEntry& entry_;
  const M2nTask& task_;
  const M2nDecision& decision_;
  M2nLanes lanes_;
  std::uint32_t first_source_ = 0, first_target_ = 0;
  bool chained_ = false;
  Pattern pattern_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> packs_;  // by source rank and target shard
  std::map<Place, Steps> arrivals_;
  std::uint32_t last_group_ = 0;
};

}  // namespace

Pattern m2n_pattern(const Refit& refit, const RefitEntry& entry, const M2nTask& task,
                    const M2nDecision& decision, const M2nLanes& lanes) {
  return M2nPatternBuilder(refit, entry, task, decision, lanes).build();
}

}  // namespace isthmus

#include "planner/policies/striped_rules.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "planner/large_arrays.hpp"

namespace isthmus {
namespace {

std::int64_t extent(const Region& box, std::size_t dimension) {
  return box.end[dimension] - box.begin[dimension];
}

class ReshardGeometry {
 public:
  ReshardGeometry(const Geometry& geometry, Rank source_base, Rank target_base)
      : source_base_(source_base),
        target_base_(target_base),
        sources_(distinct_shards(geometry.source)),
        // Members of a group differ in replicated coordinates only. So its first member in mesh order is the
        // one at 0 on all replicated axes: NeMo RL's representative.
        groups_(distinct_shards(geometry.target)) {
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
      for (const std::uint32_t holder : sources_[s].holders) held_.emplace(source_base.value + holder, s);
    }
  }

  const std::vector<Shard>& groups() const { return groups_; }

  std::vector<ReshardTransfer> exact() const {
    std::vector<ReshardTransfer> transfers = none_yet();
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
      for (const Shard& group : groups_)
        add(transfers, s, sources_[s].holders.front(), group, group.holders.front(), group.region);
    }
    return sorted(std::move(transfers));
  }

  std::vector<ReshardTransfer> striped() const {
    std::vector<ReshardTransfer> transfers = none_yet();
    for (std::uint32_t s = 0; s < sources_.size(); ++s) {
      const std::vector<std::uint32_t>& holders = sources_[s].holders;
      std::size_t uses = 0;  // transfers from its holders so far
      for (const Shard& group : groups_) {
        if (!boxes_meet(sources_[s].region, group.region)) continue;
        for (std::size_t member = 0; member < group.holders.size(); ++member) {
          const std::uint32_t next = holders[uses % holders.size()];
          if (add(transfers, s, next, group, group.holders[member], stripe_of(group, member))) ++uses;
        }
      }
    }
    return sorted(std::move(transfers));
  }

 private:
  /// Room for as many as there are where each source box meets each target box once, or for a million.
  std::vector<ReshardTransfer> none_yet() const {
    constexpr std::size_t many = std::size_t{1} << 20U;
    std::vector<ReshardTransfer> transfers;
    reserve_large(transfers, std::min(many, sources_.size() * groups_.size()));
    return transfers;
  }

  static Region stripe_of(const Shard& group, std::size_t member) {
    if (group.holders.size() == 1) return group.region;
    const std::int64_t rows = extent(group.region, 0) / static_cast<std::int64_t>(group.holders.size());
    Region stripe = group.region;
    stripe.begin[0] += rows * static_cast<std::int64_t>(member);
    stripe.end[0] = stripe.begin[0] + rows;
    return stripe;
  }

  /// Adds what the receiver needs of a source box, if anything; true when it comes from `holder`.
  bool add(std::vector<ReshardTransfer>& transfers, std::uint32_t source, std::uint32_t holder,
           const Shard& group, std::uint32_t receiver, const Region& wanted) const {
    const Region& held = sources_[source].region;
    if (wanted.empty() || !boxes_meet(held, wanted)) return false;
    const Region box = common_box(held, wanted);
    const auto own = held_.find(target_base_.value + receiver);
    if (own != held_.end() && own->second == source) {
      transfers.push_back({target_base_.value + receiver - source_base_.value, receiver, box, true});
      return false;
    }
    // Stripes have all inner extents of their group's box, so what is one run in the one is so in the other.
    transfers.push_back(
        {holder, receiver, box, false, !contiguous(box, held), !contiguous(box, group.region)});
    return true;
  }

  static std::vector<ReshardTransfer> sorted(std::vector<ReshardTransfer> transfers) {
    const auto before = [](const ReshardTransfer& a, const ReshardTransfer& b) {
      return std::tie(a.sender, a.receiver, a.box) < std::tie(b.sender, b.receiver, b.box);
    };
    // Mostly they come so: shards stand in mesh order, like their first holders.
    if (!std::is_sorted(transfers.begin(), transfers.end(), before))
      std::sort(transfers.begin(), transfers.end(), before);
    return transfers;
  }

  Rank source_base_, target_base_;
  std::vector<Shard> sources_, groups_;
  std::unordered_map<std::uint32_t, std::uint32_t> held_;  // the source box of a global rank
};

/// What the groups alone say.
ReshardPath path_of(const std::vector<Shard>& groups) {
  ReshardPath path = ReshardPath::no_replicas;
  for (const Shard& group : groups) {
    if (group.holders.size() < 2) continue;
    const auto members = static_cast<std::int64_t>(group.holders.size());
    if (group.region.dimensions == 0 || extent(group.region, 0) % members != 0)
      return ReshardPath::stripes_uneven;
    path = ReshardPath::striped;
  }
  return path;
}

}  // namespace

ReshardRules striped_rules(const Geometry& geometry, Rank source_base, Rank target_base) {
  const ReshardGeometry reshard(geometry, source_base, target_base);
  ReshardRules rules{path_of(reshard.groups()), reshard.groups(), {}};
  if (rules.striped()) {
    rules.transfers = reshard.striped();
    const bool twice = std::any_of(rules.transfers.begin(), rules.transfers.end(),
                                   [](const ReshardTransfer& t) { return t.packed && t.staged; });
    if (twice) rules.path = ReshardPath::strided_twice;
  }
  if (!rules.striped()) rules.transfers = reshard.exact();
  return rules;
}

std::vector<ReshardTransfer> exact_transfers(const Geometry& geometry, Rank source_base, Rank target_base) {
  return ReshardGeometry(geometry, source_base, target_base).exact();
}

bool contiguous(const Region& part, const Region& box) {
  bool run_ends = false;  // an inner dimension is not taken whole
  for (std::size_t d = part.dimensions; d-- > 0;) {
    if (extent(part, d) > 1 && run_ends) return false;
    if (extent(part, d) != extent(box, d)) run_ends = true;
  }
  return true;
}

}  // namespace isthmus

#include "planner/policies/balanced_pattern.hpp"

#include <algorithm>

#include "planner/large_arrays.hpp"
#include "planner/policies/cell_parts.hpp"
#include "planner/policies/entry_domains.hpp"

namespace isthmus {
namespace {

struct Arrival {
  Region region;
  std::uint32_t step;
};

/// The parts of a cell that take one way through the domains: all, or those of one of two trees.
enum class PartsOf : std::uint8_t { all, first_tree, second_tree };

bool alike(const std::vector<const EntryDomain*>& domains) {
  return std::all_of(domains.begin(), domains.end(), [&](const EntryDomain* domain) {
    return domain->receivers.size() == domains.front()->receivers.size();
  });
}

class BalancedPatternBuilder {
 public:
  BalancedPatternBuilder(const Refit& refit, const Geometry& geometry, const Cells& cells,
                         const BalancedSituation& situation)
      : refit_(refit),
        geometry_(geometry),
        situation_(situation),
        cells_(cells),
        domains_(refit, cells_, situation.source_base, situation.target_base),
        spines_bind_(spines_bind(refit.fabric)),
        next_holder_(cells_.sources.size(), situation.rotation),
        arrivals_(1 + highest_receiver()),
        same_ranks_(sides_overlap(geometry, situation.source_base, situation.target_base)) {}

  Pattern build() {
    reserve_large(pattern_.steps, most_steps());
    for (std::uint32_t c = 0; c < cells_.list.size(); ++c) add_cell(cells_.list[c], c);
    return std::move(pattern_);
  }

 private:
  /// Besides copies.
  std::size_t most_steps() {
    std::size_t steps = 0;
    for (const Cell cell : cells_.list) {
      const Bytes bytes = geometry_.source.bytes(cells_.region(cell));
      for (const EntryDomain& entry : domains_.of(cell))
        steps += to_size(parts_of(bytes, entry.receivers.size(), situation_.unit)) * entry.receivers.size();
    }
    return steps;
  }

  std::size_t highest_receiver() const {
    return std::max_element(geometry_.target.mesh.ranks.begin(), geometry_.target.mesh.ranks.end())->index();
  }

  void add_cell(Cell cell, std::uint32_t number) {
    box_ = cells_.region(cell);
    add_copies(cell);
    std::vector<const EntryDomain*>& open = open_domains_;
    open.clear();
    source_ = cell.source;
    parts_.clear();
    shift_ = number + situation_.rotation;
    for (const EntryDomain& entry : domains_.of(cell)) {
      if (entry.holders.empty()) {
        open.push_back(&entry);
      } else {
        enter(entry, nullptr);
      }
    }
    const std::size_t heads =
        std::clamp<std::size_t>(situation_.heads, 1, std::max<std::size_t>(1, open.size()));
    // Chains of two rotate, which spreads relaying; longer ones keep one order for all cells, so that the
    // relays form a permutation and do not collide.
    const bool rotate = open.size() > heads && open.size() <= 2 * heads;
    if (rotate) {
      const std::size_t by = (cell.source + cell.target + situation_.rotation) % open.size();
      std::rotate(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(by), open.end());
    }
    if (situation_.trees && needs_trees(open.size(), heads) && alike(open)) {
      grow_trees(open, heads);
    } else {
      for (std::size_t i = 0; i < open.size(); ++i) enter(*open[i], i < heads ? nullptr : open[i - heads]);
    }
    for (const std::uint32_t receiver : touched_) arrivals_[receiver].clear();
    touched_.clear();
  }

  void add_copies(Cell cell) {
    if (!same_ranks_) return;
    for (const std::uint32_t receiver : cells_.targets[cell.target].holders) {
      for (const std::uint32_t holder : cells_.sources[cell.source].holders) {
        if (situation_.source_base.value + holder != situation_.target_base.value + receiver) continue;
        Step step;
        step.kind = StepKind::copy;
        step.lane = nvlink_lane;
        step.region = box_;
        step.source = LocalRank::source(holder);
        step.target = LocalRank::target(receiver);
        pattern_.steps.push_back(step);
        break;
      }
    }
  }

  /// In place of each chain two complete binary trees over its domains, the second numbered backwards: what
  /// is inside the one is a leaf of the other, so that a domain sends on at most twice one half.
  void grow_trees(const std::vector<const EntryDomain*>& open, std::size_t heads) {
    for (std::size_t head = 0; head < heads; ++head) {
      const std::size_t count = (open.size() - head + heads - 1) / heads;
      for (const PartsOf tree : {PartsOf::first_tree, PartsOf::second_tree}) {
        const auto domain = [&](std::size_t place) {
          return open[head + heads * (tree == PartsOf::first_tree ? place : count - 1 - place)];
        };
        for (std::size_t place = 0; place < count; ++place)
          enter(*domain(place), place == 0 ? nullptr : domain((place - 1) / 2), tree);
      }
    }
  }

  /// Trees take turns from part to part of each receiver, or from receiver to receiver where it has one part.
  static PartsOf tree_of(std::size_t part, std::size_t parts, std::size_t receivers) {
    const std::size_t turn = parts >= 2 * receivers ? part / receivers : part;
    return turn % 2 == 0 ? PartsOf::first_tree : PartsOf::second_tree;
  }

  /// Brings the cell into a domain, from its holders or from `upstream`, and spreads it inside.
  void enter(const EntryDomain& entry, const EntryDomain* upstream, PartsOf which = PartsOf::all) {
    const std::size_t receivers = entry.receivers.size();
    if (parts_.empty() || parts_for_ != receivers) {
      split_into(box_, parts_of(geometry_.source.bytes(box_), receivers, situation_.unit), parts_);
      parts_for_ = receivers;
    }
    const std::vector<Region>& parts = parts_;
    if (upstream == nullptr) choose_holders(entry, which);
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (which != PartsOf::all && which != tree_of(p, parts.size(), receivers)) continue;
      const std::size_t at = (p + shift_) % receivers;
      const std::uint32_t first = entry.receivers[at];
      const std::uint32_t arrived = upstream == nullptr ? send_from_holder(entry, parts[p], chosen_[p], first)
                                                        : send_from_relay(*upstream, parts[p], at, first);
      for (std::size_t other = 1; other < receivers; ++other) {
        pass_on(parts[p], first, entry.receivers[(at + other) % receivers], arrived);
      }
    }
  }

  const std::vector<std::uint32_t>& holders_for(const EntryDomain& entry) const {
    return entry.holders.empty() ? cells_.sources[source_].holders : entry.holders;
  }

  /// Which holder sends each part: all of them in turn, by count, and of those whose turn it is the one on
  /// the receiver's rail where there is one.
  void choose_holders(const EntryDomain& entry, PartsOf which) {
    const std::vector<std::uint32_t>& holders = holders_for(entry);
    const std::size_t receivers = entry.receivers.size();
    std::uint32_t& next = next_holder_[source_];
    turns_.clear();
    open_parts_.clear();
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (which != PartsOf::all && which != tree_of(p, parts_.size(), receivers)) continue;
      open_parts_.push_back(p);
      turns_.push_back(holders[next++ % holders.size()]);
    }
    chosen_.assign(parts_.size(), 0);
    if (entry.holders.empty() && holders.size() > 1 && spines_bind_) match_rails(entry, open_parts_);
    for (std::size_t i = 0; i < open_parts_.size(); ++i) chosen_[open_parts_[i]] = turns_[i];
  }

  /// Settles parts for which it is the turn of a holder on their receiver's rail; the rest stay open.
  void match_rails(const EntryDomain& entry, std::vector<std::size_t>& open) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
      const std::size_t part = open[i];
      const std::uint32_t rail = rail_of_target(entry.receivers[(part + shift_) % entry.receivers.size()]);
      const auto same = std::find_if(turns_.begin(), turns_.end(),
                                     [&](std::uint32_t holder) { return rail_of_source(holder) == rail; });
      if (same == turns_.end()) {
        open[left++] = part;
        continue;
      }
      chosen_[part] = *same;
      turns_.erase(same);
    }
    open.resize(left);
  }

  std::uint32_t rail_of_source(std::uint32_t holder) const {
    return rail_of(refit_.fabric, refit_.gpu({situation_.source_base.value + holder}));
  }
  std::uint32_t rail_of_target(std::uint32_t receiver) const {
    return rail_of(refit_.fabric, refit_.gpu({situation_.target_base.value + receiver}));
  }

  std::uint32_t send_from_holder(const EntryDomain& entry, const Region& part, std::uint32_t holder,
                                 std::uint32_t receiver) {
    Step step;
    step.source = LocalRank::source(holder);
    step.lane = entry.holders.empty() ? network_lane : nvlink_lane;
    return deliver(step, part, receiver);
  }

  /// The upstream receiver in the same place relays, or one on the same rail where that one is not, once all
  /// that overlaps the part has arrived there.
  std::uint32_t send_from_relay(const EntryDomain& upstream, const Region& part, std::size_t at,
                                std::uint32_t receiver) {
    const std::vector<std::uint32_t>& relays = upstream.receivers;
    std::uint32_t relay = relays[at % relays.size()];
    const std::uint32_t rail = rail_of_target(receiver);
    const auto same = rail_of_target(relay) == rail
                          ? relays.end()
                          : std::find_if(relays.begin(), relays.end(),
                                         [&](std::uint32_t other) { return rail_of_target(other) == rail; });
    if (same != relays.end()) relay = *same;
    Step step;
    step.from = Buffer::target;
    step.source = LocalRank::target(relay);
    step.lane = network_lane;
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    for (const Arrival& arrival : arrivals_[relay]) {
      if (!intersect(arrival.region, part).empty()) pattern_.after.push_back(arrival.step);
    }
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
    return deliver(step, part, receiver);
  }

  void pass_on(const Region& part, std::uint32_t from, std::uint32_t to, std::uint32_t arrived) {
    Step step;
    step.from = Buffer::target;
    step.source = LocalRank::target(from);
    step.lane = nvlink_lane;
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    pattern_.after.push_back(arrived);
    step.after_end = step.after_begin + 1;
    deliver(step, part, to);
  }

  std::uint32_t deliver(Step step, const Region& part, std::uint32_t receiver) {
    step.region = part;
    step.target = LocalRank::target(receiver);
    const auto index = static_cast<std::uint32_t>(pattern_.steps.size());
    pattern_.steps.push_back(step);
    if (arrivals_[receiver].empty()) touched_.push_back(receiver);
    arrivals_[receiver].push_back({part, index});
    return index;
  }

  const Refit& refit_;
  const Geometry& geometry_;
  const BalancedSituation& situation_;
  const Cells& cells_;
  EntryDomains domains_;
  bool spines_bind_;
  Pattern pattern_;
  std::vector<std::uint32_t> next_holder_;        // per source shard: whose turn it is
  std::vector<std::vector<Arrival>> arrivals_;    // per local target rank, of the present cell
  std::vector<std::uint32_t> touched_;            // receivers with arrivals
  bool same_ranks_;                               // some rank is on both sides
  Region box_;                                    // of the present cell, as all below
  std::uint32_t source_ = 0;                      // its source shard
  std::vector<const EntryDomain*> open_domains_;  // without a holder
  std::vector<Region> parts_;
  std::vector<std::uint32_t> chosen_;    // the holder that sends each part
  std::vector<std::uint32_t> turns_;     // holders whose turn it is
  std::vector<std::size_t> open_parts_;  // parts without a holder so far
  std::size_t parts_for_ = 0;            // receivers
  std::size_t shift_ = 0;
};

}  // namespace

Pattern balanced_pattern(const Refit& refit, const Geometry& geometry, const Cells& cells,
                         const BalancedSituation& situation) {
  return BalancedPatternBuilder(refit, geometry, cells, situation).build();
}

bool needs_trees(std::size_t domains, std::size_t heads) { return domains > 2 * heads; }

EntryTraits entry_traits(const Refit& refit, const Geometry& geometry, const Cells& cells, Rank source_base,
                         Rank target_base) {
  EntryDomains domains(refit, cells, source_base, target_base);
  EntryTraits traits;
  std::size_t entries = 0, holders = 1;
  for (const Cell cell : cells.list) {
    holders = std::max(holders, cells.sources[cell.source].holders.size());
    const Bytes bytes = geometry.source.bytes(cells.region(cell));
    std::uint32_t open = 0;
    for (const EntryDomain& entry : domains.of(cell)) {
      const std::int64_t parts = shares_of(bytes, entry.receivers.size());
      traits.rotation_helps |= parts < static_cast<std::int64_t>(entry.receivers.size());
      entries += to_size(parts);
      if (entry.holders.empty()) ++open;
    }
    traits.domains = std::max(traits.domains, open);
  }
  traits.rotation_helps |= entries % holders != 0;
  return traits;
}

}  // namespace isthmus

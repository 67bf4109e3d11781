#include "planner/policies/balanced_pattern.hpp"

#include <algorithm>

#include "planner/policies/entry_domains.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

struct Arrival {
  Region region;
  std::uint32_t step;
};

/// Cuts a box into `parts` boxes along one dimension: the outermost that they divide or, but for the
/// innermost, cut into boxes that differ by at most a sixteenth, so that runs stay long and aligned; else the
/// longest.
std::vector<Region> split(const Region& box, std::int64_t parts) {
  constexpr std::int64_t fine = 16;
  std::size_t along = 0;
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    if (box.end[d] - box.begin[d] > box.end[along] - box.begin[along]) along = d;
  }
  for (std::size_t d = box.dimensions; d-- > 0;) {
    const std::int64_t extent = box.end[d] - box.begin[d];
    if (extent % parts == 0 || (extent >= fine * parts && d + 1 < box.dimensions)) along = d;
  }
  const std::int64_t extent = box.end[along] - box.begin[along];
  parts = std::min(parts, extent);
  const auto cut = [&](std::int64_t n) {
    return box.begin[along] + static_cast<std::int64_t>(Int128{extent} * n / parts);
  };
  std::vector<Region> result;
  for (std::int64_t i = 0; i < parts; ++i) {
    Region part = box;
    part.begin[along] = cut(i);
    part.end[along] = cut(i + 1);
    result.push_back(part);
  }
  return result;
}

/// How many receivers share a cell.
std::int64_t shares_of(Bytes bytes, std::size_t receivers) {
  const auto most = static_cast<std::int64_t>(receivers);
  return std::clamp<std::int64_t>(bytes.value / smallest_part.value, 1, most);
}

/// Into how many parts a cell is cut: as many for each receiver that shares it, of at most half a unit.
std::int64_t parts_of(Bytes bytes, std::size_t receivers, Bytes unit) {
  const std::int64_t shares = shares_of(bytes, receivers);
  const std::int64_t share = bytes.value / shares;
  return shares * std::max<std::int64_t>(1, (2 * share + unit.value - 1) / unit.value);
}

class PatternBuilder {
 public:
  PatternBuilder(const Refit& refit, const Geometry& geometry, const BalancedSituation& situation)
      : geometry_(geometry),
        situation_(situation),
        cells_(cells_of(geometry)),
        domains_(refit, cells_, situation.source_base, situation.target_base),
        next_holder_(cells_.sources.size(), situation.rotation),
        arrivals_(1 + highest_receiver()) {}

  Pattern build() {
    pattern_.steps.reserve(most_steps());
    for (std::uint32_t c = 0; c < cells_.list.size(); ++c) add_cell(cells_.list[c], c);
    return std::move(pattern_);
  }

 private:
  /// Besides copies.
  std::size_t most_steps() {
    std::size_t steps = 0;
    for (const Cell& cell : cells_.list) {
      const Bytes bytes = geometry_.source.bytes(cell.region);
      for (const EntryDomain& entry : domains_.of(cell))
        steps += to_size(parts_of(bytes, entry.receivers.size(), situation_.unit)) * entry.receivers.size();
    }
    return steps;
  }

  std::size_t highest_receiver() const {
    return std::max_element(geometry_.target.mesh.ranks.begin(), geometry_.target.mesh.ranks.end())->index();
  }

  void add_cell(const Cell& cell, std::uint32_t number) {
    add_copies(cell);
    std::vector<const EntryDomain*> fed, open;
    for (const EntryDomain& entry : domains_.of(cell)) (entry.holders.empty() ? open : fed).push_back(&entry);
    cell_ = &cell;
    parts_.clear();
    shift_ = number + situation_.rotation;
    for (const EntryDomain* entry : fed) enter(*entry, nullptr);
    const std::size_t heads =
        std::clamp<std::size_t>(situation_.heads, 1, std::max<std::size_t>(1, open.size()));
    // Chains of two rotate, which spreads relaying; longer ones keep one order for all cells, so that the
    // relays form a permutation and do not collide.
    const bool rotate = open.size() > heads && open.size() <= 2 * heads;
    if (rotate) {
      const std::size_t by = (cell.source + cell.target + situation_.rotation) % open.size();
      std::rotate(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(by), open.end());
    }
    for (std::size_t i = 0; i < open.size(); ++i) enter(*open[i], i < heads ? nullptr : open[i - heads]);
    for (const std::uint32_t receiver : touched_) arrivals_[receiver].clear();
    touched_.clear();
  }

  void add_copies(const Cell& cell) {
    for (const std::uint32_t receiver : cells_.targets[cell.target].holders) {
      for (const std::uint32_t holder : cells_.sources[cell.source].holders) {
        if (situation_.source_base.value + holder != situation_.target_base.value + receiver) continue;
        Step step;
        step.kind = StepKind::copy;
        step.lane = nvlink_lane;
        step.region = cell.region;
        step.source = LocalRank::source(holder);
        step.target = LocalRank::target(receiver);
        pattern_.steps.push_back(step);
        break;
      }
    }
  }

  /// Brings the cell into a domain, from its holders or from `upstream`, and spreads it inside.
  void enter(const EntryDomain& entry, const EntryDomain* upstream) {
    const std::size_t receivers = entry.receivers.size();
    if (parts_.empty() || parts_for_ != receivers) {
      parts_ =
          split(cell_->region, parts_of(geometry_.source.bytes(cell_->region), receivers, situation_.unit));
      parts_for_ = receivers;
    }
    const std::vector<Region>& parts = parts_;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::size_t at = (p + shift_) % receivers;
      const std::uint32_t first = entry.receivers[at];
      const std::uint32_t arrived = upstream == nullptr ? send_from_holder(entry, parts[p], first)
                                                        : send_from_relay(*upstream, parts[p], at, first);
      for (std::size_t other = 1; other < receivers; ++other) {
        pass_on(parts[p], first, entry.receivers[(at + other) % receivers], arrived);
      }
    }
  }

  std::uint32_t send_from_holder(const EntryDomain& entry, const Region& part, std::uint32_t receiver) {
    const std::vector<std::uint32_t>& all = cells_.sources[cell_->source].holders;
    const std::vector<std::uint32_t>& holders = entry.holders.empty() ? all : entry.holders;
    Step step;
    step.source = LocalRank::source(holders[next_holder_[cell_->source]++ % holders.size()]);
    step.lane = entry.holders.empty() ? network_lane : nvlink_lane;
    return deliver(step, part, receiver);
  }

  /// The upstream receiver in the same place relays, once all that overlaps the part has arrived there.
  std::uint32_t send_from_relay(const EntryDomain& upstream, const Region& part, std::size_t at,
                                std::uint32_t receiver) {
    const std::uint32_t relay = upstream.receivers[at % upstream.receivers.size()];
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

  const Geometry& geometry_;
  const BalancedSituation& situation_;
  Cells cells_;
  EntryDomains domains_;
  Pattern pattern_;
  std::vector<std::uint32_t> next_holder_;      // per source shard: whose turn it is
  std::vector<std::vector<Arrival>> arrivals_;  // per local target rank, of the present cell
  std::vector<std::uint32_t> touched_;          // receivers with arrivals
  const Cell* cell_ = nullptr;
  std::vector<Region> parts_;  // of the present cell
  std::size_t parts_for_ = 0;  // receivers
  std::size_t shift_ = 0;
};

}  // namespace

Pattern balanced_pattern(const Refit& refit, const Geometry& geometry, const BalancedSituation& situation) {
  return PatternBuilder(refit, geometry, situation).build();
}

bool rotation_helps(const Refit& refit, const Geometry& geometry, Rank source_base, Rank target_base) {
  const Cells cells = cells_of(geometry);
  EntryDomains domains(refit, cells, source_base, target_base);
  std::size_t entries = 0, holders = 1;
  for (const Cell& cell : cells.list) {
    holders = std::max(holders, cells.sources[cell.source].holders.size());
    const Bytes bytes = geometry.source.bytes(cell.region);
    for (const EntryDomain& entry : domains.of(cell)) {
      const std::int64_t parts = shares_of(bytes, entry.receivers.size());
      if (parts < static_cast<std::int64_t>(entry.receivers.size())) return true;
      entries += to_size(parts);
    }
  }
  return entries % holders != 0;
}

std::uint32_t entry_domains(const Refit& refit, const Geometry& geometry, Rank source_base,
                            Rank target_base) {
  const Cells cells = cells_of(geometry);
  EntryDomains domains(refit, cells, source_base, target_base);
  std::size_t most = 0;
  for (const Cell& cell : cells.list) {
    std::size_t open = 0;
    for (const EntryDomain& entry : domains.of(cell))
      if (entry.holders.empty()) ++open;
    most = std::max(most, open);
  }
  return static_cast<std::uint32_t>(most);
}

}  // namespace isthmus

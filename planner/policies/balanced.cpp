// Our own plan: every tensor by regions, bulk and misc alike. Steps per tensor: balanced_pattern.hpp. Here:
// how many domains the sources feed directly (heads), and how many rounds the order has.
//
// Heads. A stage whose ports could send each byte to k* = bound x capacity / bytes domains within the lower
// bound (rounded down) feeds all n domains if n <= k*, else 0.97 k*, rounded down again (slack eases the
// order); chains of domains do the rest, or pairs of binary trees where chains would take longer to fill than
// trees do with 12 % more. Order: balanced_order.hpp. Chains of depth d take d x window rounds to fill and to
// drain, and get 512 (1 + d) rounds, as a power of two, or fewer where few GPUs take part.
// Where NICs of one domain are unevenly loaded, the idler ones are lent (nic_lending.hpp), in more rounds.
// Where nothing joins the rails, what has to change rails hops over NVLink (rail_hops.hpp) instead.

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "planner/bound.hpp"
#include "planner/byte_classes.hpp"
#include "planner/policies/balanced_order.hpp"
#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/entry_domains.hpp"
#include "planner/policies/nic_lending.hpp"
#include "planner/policies/pattern_cache.hpp"
#include "planner/policies/rail_hops.hpp"
#include "planner/policy.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t most_rotations = 8;          // of one tensor
constexpr std::size_t most_rotated_steps = 1 << 17;  // of all its rotations: bounds memory
constexpr std::uint32_t free_rounds = 256;           // where no transfer waits for others
constexpr std::uint32_t rounds_of_depth = 512;       // times 1 + depth, where some do
// How many rounds later goes on what has come (balanced_order.hpp); what trees lose beside fill (7 to 14 %).
constexpr double rounds_behind = 16, tree_loss = 0.12;
constexpr std::uint32_t nvlink_rounds = 2048, most_rounds = 4096;
constexpr std::uint32_t lent_rounds = 1024;    // at least, where NICs are lent: NVLink has bursts to smooth
constexpr std::uint32_t rounds_of_port = 256;  // times the ports of the side that has more
constexpr std::int64_t finer_parts = 3;        // in chains of two domains (longer ones have finer rounds), ..
constexpr std::size_t finer_ranks = 128;       // .. between at most so many GPUs: slots come out more even
constexpr Bytes largest_unit{512'000'000};
constexpr Duration unit_time{40 * picoseconds_per_second /
                             1'000'000};  // at least: ten operations' fixed cost

/// Network bytes per second that the holders' domains of a stage can send; a domain that several stages share
/// counts in proportion to their GPUs.
double stage_capacity(const Refit& refit, int stage) {
  std::vector<std::int64_t> own(refit.fabric.domain_count()), others(own);
  std::vector<char> seen(refit.ranks());
  for (const RefitEntry& entry : refit.tensors) {
    for (const Rank local : refit.geometries[entry.geometry].source.mesh.ranks) {
      const std::size_t rank = entry.source_base.value + local.value;
      if (seen[rank] != 0) continue;
      seen[rank] = 1;
      ++(entry.stage == stage ? own : others)[refit.fabric.domain_of(refit.gpu_of_rank[rank]).index()];
    }
  }
  const std::vector<char> part = taking_part(refit);
  double capacity = 0;
  std::set<LinkId> counted;  // GPUs may share a NIC
  for (std::uint32_t g = 0; g < refit.fabric.gpu_count(); ++g) {
    const std::size_t domain = refit.fabric.domain_of(GpuId{g}).index();
    if (own[domain] == 0 || part[g] == 0) continue;
    const auto share = static_cast<double>(own[domain]) / static_cast<double>(own[domain] + others[domain]);
    for (const LinkId link : refit.fabric.exit_links(GpuId{g}, true)) {
      if (!counted.insert(link).second) continue;
      capacity += share * static_cast<double>(refit.fabric.links()[link.index()].nominal.value);
    }
  }
  return capacity;
}

std::vector<std::uint32_t> heads_per_stage(const Refit& refit, Duration bound) {
  std::vector<double> bytes(to_size(refit.stages));
  for (const RefitEntry& entry : refit.tensors) {
    bytes[to_size(entry.stage)] += static_cast<double>(refit.geometries[entry.geometry].source.bytes().value);
  }
  std::vector<std::uint32_t> heads;
  for (int stage = 0; stage < refit.stages; ++stage) {
    const double reach = seconds(bound) * stage_capacity(refit, stage) / std::max(1.0, bytes[to_size(stage)]);
    heads.push_back(static_cast<std::uint32_t>(std::clamp(reach, 1.0, 1e6)));
  }
  return heads;
}

class Planner {
 public:
  Planner(const Refit& refit, Duration bound, std::uint32_t least_rounds)
      : refit_(refit),
        bound_(bound),
        least_rounds_(least_rounds),
        spines_bind_(spines_bind(refit.fabric)),
        cache_(plan_) {
    plan_.policy = "balanced";
    plan_.lanes = balanced_lanes();
  }

  /// What lends NICs in too few rounds is to be planned again with more.
  bool wants_more_rounds() const { return lent_ && rounds_.rounds[network_lane] < lent_rounds; }

  PlanResult order() {
    if (!left_.empty()) return Refused{left_};
    order_balanced(refit_, rounds_, plan_);
    return std::move(plan_);
  }

  /// All but the order.
  void assemble() {
    const std::vector<std::uint32_t> reaches = heads_per_stage(refit_, bound_);
    choose_units(reaches);
    std::vector<std::uint32_t> uses(refit_.geometries.size());
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      add(TensorId{t}, entry, reaches[to_size(entry.stage)], uses[entry.geometry]++);
    }
    known_cells_.clear();
    lent_ = rails_joined(refit_) && lend_nics(refit_, bound_, plan_);
    if (!rails_joined(refit_)) left_ = hop_rails(refit_, plan_);
  }

 private:
  /// What a geometry's patterns depend on besides heads and rotation; derived once per (geometry, bases).
  struct Traits {
    std::uint32_t domains = 0;
    std::uint32_t rotations = 1;
    std::int64_t holders = 0;  // what matters of where they are: the base, or below 0 the rails
  };

  Traits& traits_of(const RefitEntry& entry) {
    const auto [known, is_new] = traits_of_.try_emplace(
        std::make_tuple(entry.geometry, entry.source_base.value, entry.target_base.value), 0);
    if (is_new) known->second = find_traits(entry);
    return traits_[known->second];
  }

  /// Where no holder shares a domain with a receiver, only the holders' rails matter, if any: patterns choose
  /// holders by rail only where spines bind.
  std::size_t find_traits(const RefitEntry& entry) {
    const bool meet = domains_meet(entry);
    const Geometry& geometry = refit_.geometries[entry.geometry];
    const std::int64_t holders =
        meet ? std::int64_t{entry.source_base.value} : -1 - rails_of(geometry, entry.source_base);
    const auto [known, is_new] = traits_at_.try_emplace(
        std::make_tuple(entry.geometry, holders, entry.target_base.value), traits_.size());
    if (!is_new) return known->second;
    Traits& traits = traits_.emplace_back();
    const EntryTraits entries =
        entry_traits(refit_, geometry, cells(entry.geometry), entry.source_base, entry.target_base);
    traits.domains = entries.domains;
    if (entries.rotation_helps) traits.rotations = most_rotations;
    traits.holders = holders;
    return known->second;
  }

  /// Found once for each geometry.
  const Cells& cells(std::uint32_t geometry) {
    const auto [known, is_new] = known_cells_.try_emplace(geometry);
    if (is_new) known->second = cells_of(refit_.geometries[geometry]);
    return known->second;
  }

  /// Numbers the rails of the holders, equal for equal ones and where they do not matter.
  std::int64_t rails_of(const Geometry& geometry, Rank base) {
    if (!spines_bind_) return 0;
    std::vector<std::uint32_t> rails;
    for (const Rank rank : geometry.source.mesh.ranks)
      rails.push_back(rail_of(refit_.fabric, refit_.gpu({base.value + rank.value})));
    return rails_.emplace(std::move(rails), static_cast<std::int64_t>(rails_.size())).first->second;
  }

  bool domains_meet(const RefitEntry& entry) const {
    const Geometry& geometry = refit_.geometries[entry.geometry];
    std::vector<char> holds(refit_.fabric.domain_count());
    for (const Rank rank : geometry.source.mesh.ranks)
      holds[domain(entry.source_base.value + rank.value)] = 1;
    return std::any_of(geometry.target.mesh.ranks.begin(), geometry.target.mesh.ranks.end(),
                       [&](Rank rank) { return holds[domain(entry.target_base.value + rank.value)] != 0; });
  }

  std::size_t domain(std::size_t rank) const {
    return refit_.fabric.domain_of(refit_.gpu_of_rank[rank]).index();
  }

  static std::uint32_t heads_of(std::uint32_t domains, std::uint32_t reach) {
    return domains <= reach ? domains : std::max(1U, static_cast<std::uint32_t>(0.97 * reach));
  }

  void add(TensorId tensor, const RefitEntry& entry, std::uint32_t reach, std::uint32_t use) {
    Traits& traits = traits_of(entry);
    BalancedSituation situation{entry.source_base, entry.target_base, 0, 0,
                                traits.domains > 0 ? network_unit_ : rounds_.bytes[nvlink_lane]};
    situation.heads = heads_of(traits.domains, reach);
    situation.rotation = use % traits.rotations;
    situation.trees = trees_;
    PatternCache::Key key{entry.geometry, situation.heads, situation.rotation};
    const bool bare = refit_.train_ranks == 0;  // bases are free, and sides may share ranks
    key.push_back(bare ? std::int64_t{entry.source_base.value} : traits.holders);
    key.push_back(bare ? std::int64_t{entry.target_base.value} : -1);
    const PatternId pattern = cache_.get(key, [&] {
      return balanced_pattern(refit_, refit_.geometries[entry.geometry], cells(entry.geometry), situation);
    });
    const std::size_t steps = std::max<std::size_t>(1, plan_.patterns[pattern.index()].steps.size());
    traits.rotations = std::min(
        traits.rotations, static_cast<std::uint32_t>(std::max<std::size_t>(1, most_rotated_steps / steps)));
    plan_.instances.push_back({pattern, tensor, entry.source_base, entry.target_base, LaneId{0}, 0});
  }

  /// Rounds by the mean depth of the chains, and the bytes that a port moves in one if the bound is met.
  void choose_units(const std::vector<std::uint32_t>& reaches) {
    double bytes = 0, chained = 0, branched = 0;  // the last two: bytes times how often they are passed on
    for (const RefitEntry& entry : refit_.tensors) {
      const std::uint32_t domains = traits_of(entry).domains;
      if (domains == 0) continue;
      const std::uint32_t heads = heads_of(domains, reaches[to_size(entry.stage)]);
      const double own = static_cast<double>(refit_.geometries[entry.geometry].source.bytes().value);
      bytes += own;
      const std::uint32_t length = (domains + heads - 1) / heads;
      chained += own * (length - 1);
      branched += own * (needs_trees(domains, heads) ? std::bit_width(length) - 1 : length - 1);
    }
    const auto mean = [&](double deep) {
      return static_cast<std::uint32_t>(std::ceil(deep / std::max(1.0, bytes)));
    };
    trees_ = trees_win(mean(chained), mean(branched));
    const std::uint32_t depth = mean(trees_ ? branched : chained);
    rounds_.rounds[network_lane] = rounds_at(depth);
    rounds_.rounds[nvlink_lane] = nvlink_rounds;
    for (const std::uint16_t lane : {network_lane, nvlink_lane}) {
      const Bytes per_port = fastest_port(lane) * bound_;
      // Steps of a pair in one round are one message: rounds enough that none is much above the largest unit.
      auto least = std::bit_ceil(static_cast<std::uint32_t>(
          1 + std::min<std::int64_t>(per_port.value / largest_unit.value, 1 << 20)));
      if (lane == network_lane) least = std::max(least, least_rounds_);
      rounds_.rounds[lane] = std::max(std::min(rounds_.rounds[lane], most_useful_rounds()), least);
      rounds_.smallest[lane] =
          std::clamp(fastest_port(lane) * unit_time, Bytes{1}, rounds_.smallest[lane]);  // of slow ports
      rounds_.bytes[lane] =
          std::clamp(Bytes{per_port.value / rounds_.rounds[lane]}, rounds_.smallest[lane], largest_unit);
    }
    network_unit_ = rounds_.bytes[network_lane];
    if (depth == 1 && refit_.members() <= finer_ranks)
      network_unit_ = std::max(Bytes{network_unit_.value / finer_parts}, rounds_.smallest[network_lane]);
  }

  static std::uint32_t rounds_at(std::uint32_t depth) {
    return depth == 0 ? free_rounds : std::min(most_rounds, std::bit_ceil(rounds_of_depth * (1 + depth)));
  }

  /// By the time to fill them, in rounds that have bytes.
  bool trees_win(std::uint32_t chain_passes, std::uint32_t tree_passes) const {
    const double filled = seconds(bound_) / seconds(unit_time);
    const auto fill = [&](std::uint32_t passes) {
      return passes * rounds_behind / std::max(1.0, std::min(filled, 1.0 * rounds_at(passes)));
    };
    return fill(tree_passes) + tree_loss < fill(chain_passes);
  }

  /// Order matters where ports have several partners: between two GPUs there is nothing to order.
  std::uint32_t most_useful_rounds() const {
    std::vector<char> sends(refit_.fabric.gpu_count()), receives(sends);
    for (const auto& [place, traits] : traits_of_) {
      const auto& [number, source_base, target_base] = place;
      const Geometry& geometry = refit_.geometries[number];
      for (const Rank rank : geometry.source.mesh.ranks)
        sends[refit_.gpu(Rank{source_base + rank.value}).index()] = 1;
      for (const Rank rank : geometry.target.mesh.ranks)
        receives[refit_.gpu(Rank{target_base + rank.value}).index()] = 1;
    }
    const auto most =
        std::max(std::count(sends.begin(), sends.end(), 1), std::count(receives.begin(), receives.end(), 1));
    return most <= 1 ? 1 : rounds_of_port * std::bit_ceil(static_cast<std::uint32_t>(most));
  }

  Bandwidth fastest_port(std::uint16_t lane) const {
    Bandwidth fastest{1};
    const Fabric& fabric = refit_.fabric;
    for (const GpuId gpu : refit_.gpu_of_rank) {
      const auto port = lane == network_lane ? fabric.nic_out(gpu) : fabric.nvlink_out(gpu);
      if (port) fastest = std::max(fastest, fabric.links()[port->index()].nominal);
    }
    return fastest;
  }

  const Refit& refit_;
  Duration bound_;
  std::uint32_t least_rounds_;  // of the network
  bool spines_bind_;
  BalancedRounds rounds_;
  Bytes network_unit_;  // tensors are cut into parts of at most half of it
  Plan plan_;
  PatternCache cache_;
  std::vector<Traits> traits_;
  std::map<std::vector<std::uint32_t>, std::int64_t> rails_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::size_t>
      traits_of_;  // by tensor's place
  std::map<std::tuple<std::uint32_t, std::int64_t, std::uint32_t>, std::size_t>
      traits_at_;                               // by what matters
  std::map<std::uint32_t, Cells> known_cells_;  // by geometry
  bool lent_ = false;
  std::string left_;    // what no hop between rails helps
  bool trees_ = false;  // in place of chains of more than two domains
};

}  // namespace

PlanResult plan_balanced(const Refit& refit) {
  const Duration bound = lower_bound(refit).time;
  Planner planner(refit, bound, 1);
  planner.assemble();
  if (planner.wants_more_rounds()) {
    Planner finer(refit, bound, lent_rounds);
    finer.assemble();
    return finer.order();
  }
  return planner.order();
}

}  // namespace isthmus

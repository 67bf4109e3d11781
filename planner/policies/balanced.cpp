// Our own plan: every tensor by regions, bulk and misc alike. Steps per tensor: balanced_pattern.hpp. Here:
// how many domains the sources feed directly (heads), and one order over all tensors and pipeline stages
// (rounds.hpp).
//
// Heads. A stage whose ports could send each byte to k* = bound x capacity / bytes domains within the lower
// bound feeds all n domains if n <= k*, else 0.97 k* rounded down (3 % slack eases the order); chains of
// domains do the rest. Order. Transfers between GPUs are matched into rounds of about bound x rate / 500
// bytes per pair; the round is the group. NVLink passes of what a network round brought belong to the round
// after it.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "planner/bound.hpp"
#include "planner/order_unit.hpp"
#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/pattern_cache.hpp"
#include "planner/policy.hpp"
#include "planner/rounds.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t most_rotations = 8;
constexpr std::int64_t rounds_wanted = 500;
constexpr double part_cost = 0.002;  // of a part in every unit: what makes plans larger must gain something
constexpr std::int64_t smallest_unit = 2'000'000, largest_unit = 128'000'000;  // bytes

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
  double capacity = 0;
  std::set<LinkId> counted;  // GPUs may share a NIC
  for (std::uint32_t g = 0; g < refit.fabric.gpu_count(); ++g) {
    const std::size_t domain = refit.fabric.domain_of(GpuId{g}).index();
    if (own[domain] == 0) continue;
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
  explicit Planner(const Refit& refit) : refit_(refit), bound_(lower_bound(refit)), cache_(plan_) {
    plan_.policy = "balanced";
    plan_.lanes = {{"network", 1, true}, {"nvlink", 4, true}};
  }

  Plan make() {
    choose_units();
    const std::vector<std::uint32_t> heads = heads_per_stage(refit_, bound_.time);
    std::vector<std::uint32_t> uses(refit_.geometries.size());
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      add(TensorId{t}, entry, heads[to_size(entry.stage)], uses[entry.geometry]++);
    }
    order();
    return std::move(plan_);
  }

 private:
  /// What a geometry's patterns depend on besides heads and rotation; derived once per (geometry, bases).
  struct Traits {
    std::uint32_t domains = 0;
    bool rotates = false;
    bool placement_matters = false;  // some holder shares a domain with a receiver
  };

  const Traits& traits_of(const RefitEntry& entry) {
    const auto key = std::make_tuple(entry.geometry, entry.source_base.value, entry.target_base.value);
    const auto known = traits_.find(key);
    if (known != traits_.end()) return known->second;
    const Geometry& geometry = refit_.geometries[entry.geometry];
    Traits traits;
    traits.domains = entry_domains(refit_, geometry, entry.source_base, entry.target_base);
    traits.rotates = rotation_helps(refit_, geometry, entry.source_base, entry.target_base);
    traits.placement_matters = domains_meet(entry);
    return traits_.emplace(key, traits).first->second;
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

  void add(TensorId tensor, const RefitEntry& entry, std::uint32_t reach, std::uint32_t use) {
    const Traits& traits = traits_of(entry);
    BalancedSituation situation{entry.source_base, entry.target_base, traits.domains, 0,
                                unit(traits.domains > 0 ? network_lane : nvlink_lane)};
    if (traits.domains > reach) situation.heads = std::max(1U, static_cast<std::uint32_t>(0.97 * reach));
    if (traits.rotates) situation.rotation = use % most_rotations;
    PatternCache::Key key{entry.geometry, situation.heads, situation.rotation};
    const bool bare = refit_.train_ranks == 0;  // bases are free, and sides may share ranks
    key.push_back(bare || traits.placement_matters ? std::int64_t{entry.source_base.value} : -1);
    key.push_back(bare ? std::int64_t{entry.target_base.value} : -1);
    const PatternId pattern = cache_.get(
        key, [&] { return balanced_pattern(refit_, refit_.geometries[entry.geometry], situation); });
    plan_.instances.push_back({pattern, tensor, entry.source_base, entry.target_base, LaneId{0}, 0});
  }

  /// Gives every step of every instance its round.
  void order() {
    std::uint32_t next = 0;
    for (Instance& instance : plan_.instances) {
      instance.schedule = next;
      next += static_cast<std::uint32_t>(plan_.pattern(instance).steps.size());
    }
    plan_.schedule.assign(next, 0);
    const std::uint32_t network_rounds = match_lane(network_lane, 0);
    match_lane(nvlink_lane, network_rounds);
    if (network_rounds > 0) follow_feeds();
  }

  /// Matches the steps of one lane. Of the NVLink lane, steps that wait for the network are left out when
  /// there are network rounds, and the rest is spread over them.
  std::uint32_t match_lane(std::uint16_t lane, std::uint32_t network_rounds) {
    std::vector<Transfer> transfers;
    std::vector<Feed> feeds;
    std::vector<std::uint32_t> slots;                                         // where a transfer's round goes
    std::vector<std::uint32_t> transfer_of(plan_.schedule.size(), not_here);  // by slot
    for (const Instance& instance : plan_.instances) {
      const Pattern& pattern = plan_.pattern(instance);
      for (std::uint32_t i = 0; i < pattern.steps.size(); ++i) {
        const Step& step = pattern.steps[i];
        if (step.lane != lane || (network_rounds > 0 && step.after_begin != step.after_end)) continue;
        const auto self = static_cast<std::uint32_t>(transfers.size());
        transfer_of[instance.schedule + i] = self;
        slots.push_back(instance.schedule + i);
        transfers.push_back({refit_.gpu(global_rank(instance, step.source)).value,
                             refit_.gpu(global_rank(instance, step.target)).value,
                             refit_.geometry(instance.tensor).source.bytes(step.region)});
        add_feeds(instance, pattern, step, self, transfer_of, feeds);
      }
    }
    const std::vector<std::uint32_t> rounds = match_rounds(
        transfers, feeds, fitting_unit(transfers, wanted_unit(lane), deepest(transfers.size(), feeds)));
    const std::uint32_t count = rounds.empty() ? 0 : 1 + *std::max_element(rounds.begin(), rounds.end());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto spread = std::uint64_t{rounds[i]} * std::max(1U, network_rounds) / std::max(1U, count);
      plan_.schedule[slots[i]] = network_rounds > 0 ? static_cast<std::uint32_t>(spread) : rounds[i];
    }
    return count;
  }

  /// The longest row of transfers that feed each other. Feeds come in the order of transfers.
  static std::uint32_t deepest(std::size_t transfers, const std::vector<Feed>& feeds) {
    std::vector<std::uint32_t> depth(transfers);
    std::uint32_t most = 0;
    for (const Feed& feed : feeds) {
      depth[feed.transfer] = std::max(depth[feed.transfer], depth[feed.feed] + 1);
      most = std::max(most, depth[feed.transfer]);
    }
    return most;
  }

  /// Feeds within the lane; through a step of the other lane its own feeds count.
  void add_feeds(const Instance& instance, const Pattern& pattern, const Step& step, std::uint32_t self,
                 const std::vector<std::uint32_t>& transfer_of, std::vector<Feed>& feeds) const {
    for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
      const std::uint32_t before = pattern.after[a];
      const std::uint32_t transfer = transfer_of[instance.schedule + before];
      if (transfer != not_here) {
        feeds.push_back({self, transfer});
      } else {
        add_feeds(instance, pattern, pattern.steps[before], self, transfer_of, feeds);
      }
    }
  }

  /// NVLink passes follow one round after what they wait for.
  void follow_feeds() {
    for (const Instance& instance : plan_.instances) {
      const Pattern& pattern = plan_.pattern(instance);
      for (std::uint32_t i = 0; i < pattern.steps.size(); ++i) {
        const Step& step = pattern.steps[i];
        if (step.lane != nvlink_lane || step.after_begin == step.after_end) continue;
        std::uint32_t latest = 0;
        for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
          latest = std::max(latest, plan_.schedule[instance.schedule + pattern.after[a]]);
        }
        plan_.schedule[instance.schedule + i] = latest + 1;
      }
    }
  }

  Bytes unit(std::uint16_t lane) const { return units_[lane]; }

  /// Bound x rate / 500.
  Bytes wanted_unit(std::uint16_t lane) const {
    Bandwidth fastest{1};
    const Fabric& fabric = refit_.fabric;
    for (const GpuId gpu : refit_.gpu_of_rank) {
      const auto port = lane == network_lane ? fabric.nic_out(gpu) : fabric.nvlink_out(gpu);
      if (port) fastest = std::max(fastest, fabric.links()[port->index()].nominal);
    }
    const Bytes per_port = fastest * bound_.time;
    return {std::clamp(per_port.value / rounds_wanted, smallest_unit, largest_unit)};
  }

  /// About that, and such that whole parts of most bytes' cells make it up: units of different
  /// tensors are then nearly equal, and nobody waits in a round for a longer one.
  Bytes choose_unit(std::uint16_t lane, const std::map<std::int64_t, double>& shares) const {
    const std::int64_t wanted = wanted_unit(lane).value;
    Bytes best{wanted};
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t percent = 60; percent <= 150; ++percent) {
      const Bytes candidate{wanted * percent / 100};
      double cost = 0;
      for (const auto& [share, bytes] : shares) {
        const UnitCut cut = cut_for_unit({share}, candidate);
        cost += bytes * (cut.miss + part_cost * static_cast<double>(cut.parts * candidate.value) /
                                        static_cast<double>(share));
      }
      if (cost < least) {
        least = cost;
        best = candidate;
      }
    }
    return best;
  }

  void choose_units() {
    ShareSizes all;
    std::vector<std::int64_t> tensors(refit_.geometries.size());
    for (const RefitEntry& entry : refit_.tensors) ++tensors[entry.geometry];
    for (const RefitEntry& entry : refit_.tensors) {
      const double times = static_cast<double>(std::exchange(tensors[entry.geometry], 0));
      if (times == 0) continue;
      const ShareSizes own =
          share_sizes(refit_, refit_.geometries[entry.geometry], entry.source_base, entry.target_base);
      for (const auto& [share, bytes] : own.network) all.network[share] += times * bytes;
      for (const auto& [share, bytes] : own.nvlink) all.nvlink[share] += times * bytes;
    }
    units_ = {choose_unit(network_lane, all.network), choose_unit(nvlink_lane, all.nvlink)};
  }

  static constexpr std::uint32_t not_here = 0xFFFFFFFF;
  const Refit& refit_;
  LowerBound bound_;
  std::array<Bytes, 2> units_{};  // by lane
  Plan plan_;
  PatternCache cache_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Traits> traits_;
};

}  // namespace

PlanResult plan_balanced(const Refit& refit) { return Planner(refit).make(); }

}  // namespace isthmus

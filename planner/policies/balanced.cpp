// Our own plan: every tensor by regions, bulk and misc alike. Steps per tensor: balanced_pattern.hpp. Here:
// how many domains the sources feed directly (heads), and one order over all tensors and pipeline stages
// (rounds.hpp).
//
// Heads. A stage whose ports could send each byte to k* = bound x capacity / bytes domains within the lower
// bound (rounded down) feeds all n domains if n <= k*, else 0.97 k*, rounded down again (slack eases the
// order); chains of domains do the rest. Order. Transfers between GPUs are spread over rounds (rounds.hpp);
// the round is the group. With `window` rounds in flight (`fan_window` over NVLink, and where a transfer
// feeds several) ports stay busy although slots differ in size; what passes bytes on follows `window` rounds
// later, when they have mostly arrived. So chains of depth d take d x window rounds to fill and to drain, and
// get 512 (1 + d) rounds, as a power of two, or fewer where few GPUs take part. NVLink passes of what a
// network round brought belong to the round after it. Where NICs of one domain are unevenly loaded, the idler
// ones are lent (nic_lending.hpp): what goes to a lender goes one round before it leaves from there, what
// comes to one goes on in the round after.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "planner/bound.hpp"
#include "planner/byte_classes.hpp"
#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/nic_lending.hpp"
#include "planner/policies/pattern_cache.hpp"
#include "planner/policy.hpp"
#include "planner/rounds.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t most_rotations = 8;
constexpr std::uint32_t window = 16;            // rounds in flight
constexpr std::uint32_t fan_window = 128;       // where one transfer feeds several in its lane, as bursts
constexpr std::uint32_t free_rounds = 256;      // where no transfer waits for others
constexpr std::uint32_t rounds_of_depth = 512;  // times 1 + depth, where some do
constexpr std::uint32_t nvlink_rounds = 2048, most_rounds = 4096;
constexpr std::uint32_t lent_rounds = 1024;    // at least, where NICs are lent: NVLink has bursts to smooth
constexpr std::uint32_t rounds_of_port = 256;  // times the ports of the side that has more
constexpr Bytes smallest_unit[] = {{2'000'000}, {16'000'000}};  // by lane: about 10 operations' fixed cost
constexpr Bytes largest_unit{512'000'000};

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
  explicit Planner(const Refit& refit) : refit_(refit), bound_(lower_bound(refit)), cache_(plan_) {
    plan_.policy = "balanced";
    plan_.lanes = {{"network", window, true}, {"nvlink", fan_window, true}};
  }

  Plan make() {
    const std::vector<std::uint32_t> reaches = heads_per_stage(refit_, bound_.time);
    choose_units(reaches);
    std::vector<std::uint32_t> uses(refit_.geometries.size());
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      add(TensorId{t}, entry, reaches[to_size(entry.stage)], uses[entry.geometry]++);
    }
    lent_ = lend_nics(refit_, bound_.time, plan_);
    if (lent_) rounds_[network_lane] = std::max(rounds_[network_lane], lent_rounds);
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

  static std::uint32_t heads_of(std::uint32_t domains, std::uint32_t reach) {
    return domains <= reach ? domains : std::max(1U, static_cast<std::uint32_t>(0.97 * reach));
  }

  void add(TensorId tensor, const RefitEntry& entry, std::uint32_t reach, std::uint32_t use) {
    const Traits& traits = traits_of(entry);
    BalancedSituation situation{entry.source_base, entry.target_base, 0, 0,
                                units_[traits.domains > 0 ? network_lane : nvlink_lane]};
    situation.heads = heads_of(traits.domains, reach);
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
    const std::uint32_t network_rounds = order_lane(network_lane, 0);
    order_lane(nvlink_lane, network_rounds);
    if (network_rounds > 0) follow_feeds();
    if (lent_) precede_loans();
  }

  /// Orders the steps of one lane. Of the NVLink lane, steps that wait for the network are left out when
  /// there are network rounds, and the rest is spread over them.
  std::uint32_t order_lane(std::uint16_t lane, std::uint32_t network_rounds) {
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
    if (fans_out(transfers.size(), feeds)) plan_.lanes[lane].window = fan_window;
    const std::vector<std::uint32_t> rounds =
        order_rounds(transfers, feeds, {rounds_[lane], smallest_unit[lane], window});
    const std::uint32_t count = rounds.empty() ? 0 : 1 + *std::max_element(rounds.begin(), rounds.end());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      const auto spread = std::uint64_t{rounds[i]} * std::max(1U, network_rounds) / std::max(1U, count);
      plan_.schedule[slots[i]] = network_rounds > 0 ? static_cast<std::uint32_t>(spread) : rounds[i];
    }
    return count;
  }

  static bool fans_out(std::size_t transfers, const std::vector<Feed>& feeds) {
    std::vector<char> feeding(transfers);
    return std::any_of(feeds.begin(), feeds.end(),
                       [&feeding](const Feed& feed) { return std::exchange(feeding[feed.feed], 1) != 0; });
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
        const bool lent = step.lane == lending_lane && step.to == Buffer::target;
        if (!lent && (step.lane != nvlink_lane || step.after_begin == step.after_end)) continue;
        std::uint32_t latest = 0;
        for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
          latest = std::max(latest, plan_.schedule[instance.schedule + pattern.after[a]]);
        }
        plan_.schedule[instance.schedule + i] = latest + 1;
      }
    }
  }

  /// To the lender of a NIC out.
  static bool is_loan(const Step& step) { return step.lane == lending_lane && step.to == Buffer::staging; }

  /// What goes to a lender goes one round before it leaves from there.
  void precede_loans() {
    for (const Instance& instance : plan_.instances) {
      const Pattern& pattern = plan_.pattern(instance);
      for (std::uint32_t i = 0; i < pattern.steps.size(); ++i)
        if (is_loan(pattern.steps[i])) plan_.schedule[instance.schedule + i] = not_here;
      for (std::uint32_t i = 0; i < pattern.steps.size(); ++i) {
        const Step& step = pattern.steps[i];
        const std::uint32_t round = std::max(1U, plan_.schedule[instance.schedule + i]) - 1;
        for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
          if (!is_loan(pattern.steps[pattern.after[a]])) continue;
          std::uint32_t& before = plan_.schedule[instance.schedule + pattern.after[a]];
          before = std::min(before, round);
        }
      }
    }
  }

  /// Rounds by the mean depth of the chains, and the bytes that a port moves in one if the bound is met.
  void choose_units(const std::vector<std::uint32_t>& reaches) {
    double bytes = 0, deep = 0;  // deep: bytes times the length of the chains that they go through
    for (const RefitEntry& entry : refit_.tensors) {
      const std::uint32_t domains = traits_of(entry).domains;
      if (domains == 0) continue;
      const std::uint32_t heads = heads_of(domains, reaches[to_size(entry.stage)]);
      const double own = static_cast<double>(refit_.geometries[entry.geometry].source.bytes().value);
      bytes += own;
      const std::uint32_t passes = (domains + heads - 1) / heads - 1;  // from domain to domain
      deep += own * passes;
    }
    const auto depth = static_cast<std::uint32_t>(std::ceil(deep / std::max(1.0, bytes)));
    rounds_[network_lane] =
        depth == 0 ? free_rounds : std::min(most_rounds, std::bit_ceil(rounds_of_depth * (1 + depth)));
    rounds_[nvlink_lane] = nvlink_rounds;
    for (const std::uint16_t lane : {network_lane, nvlink_lane}) {
      const Bytes per_port = fastest_port(lane) * bound_.time;
      // Steps of a pair in one round are one message: rounds enough that none is much above the largest unit.
      const auto least = std::bit_ceil(static_cast<std::uint32_t>(
          1 + std::min<std::int64_t>(per_port.value / largest_unit.value, 1 << 20)));
      rounds_[lane] = std::max(std::min(rounds_[lane], most_useful_rounds()), least);
      units_[lane] = std::clamp(Bytes{per_port.value / rounds_[lane]}, smallest_unit[lane], largest_unit);
    }
  }

  /// Order matters where ports have several partners: between two GPUs there is nothing to order.
  std::uint32_t most_useful_rounds() const {
    std::set<std::uint32_t> sources, targets;
    for (const RefitEntry& entry : refit_.tensors) {
      const Geometry& geometry = refit_.geometries[entry.geometry];
      for (const Rank rank : geometry.source.mesh.ranks)
        sources.insert(refit_.gpu(Rank{entry.source_base.value + rank.value}).value);
      for (const Rank rank : geometry.target.mesh.ranks)
        targets.insert(refit_.gpu(Rank{entry.target_base.value + rank.value}).value);
    }
    const std::size_t most = std::max(sources.size(), targets.size());
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

  static constexpr std::uint32_t not_here = 0xFFFFFFFF;
  const Refit& refit_;
  LowerBound bound_;
  std::array<Bytes, 2> units_{};           // by lane
  std::array<std::uint32_t, 2> rounds_{};  // by lane
  Plan plan_;
  PatternCache cache_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, Traits> traits_;
  bool lent_ = false;
};

}  // namespace

PlanResult plan_balanced(const Refit& refit) { return Planner(refit).make(); }

}  // namespace isthmus

#include "sim/room.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

namespace isthmus::sim {
namespace {

/// Amount that has passed up to a time: linear between the edges.
class PassedAmount {
 public:
  void add(Instant begin, Instant end, double amount) {
    if (end <= begin) return;
    const double rate = amount / static_cast<double>((end - begin).value);
    edges_.push_back({begin, rate});
    edges_.push_back({end, -rate});
  }
  void finish() {
    std::stable_sort(edges_.begin(), edges_.end(),
                     [](const RateEdge& a, const RateEdge& b) { return a.when < b.when; });
    double rate = 0, passed = 0;
    for (std::size_t i = 0; i < edges_.size(); ++i) {
      if (i > 0) passed += rate * static_cast<double>((edges_[i].when - edges_[i - 1].when).value);
      rate += edges_[i].rate;
      edges_[i].rate = rate;
      passed_.push_back(passed);
    }
  }
  double until(Instant when) const {
    const auto after = std::upper_bound(edges_.begin(), edges_.end(), when,
                                        [](Instant t, const RateEdge& edge) { return t < edge.when; });
    if (after == edges_.begin()) return 0;
    const auto last = static_cast<std::size_t>(after - edges_.begin()) - 1;
    return passed_[last] + edges_[last].rate * static_cast<double>((when - edges_[last].when).value);
  }

 private:
  struct RateEdge {
    Instant when;
    double rate = 0;  // change; once finished: from here on
  };
  std::vector<RateEdge> edges_;
  std::vector<double> passed_;
};

/// A carrier is what phases run on: a route, a host thread or a memory. Numbered in this order; resources are
/// links, caps of routes, host threads, memories.
class Rooms {
 public:
  explicit Rooms(const FinishedRun& run)
      : run_(run),
        hosts_(run.routes.size()),
        memories_(hosts_ + run.refit.ranks()),
        links_(run.refit.fabric.links().size()) {
    for (const Link& link : run.refit.fabric.links()) capacities_.push_back(run.calibration.achieved(link));
    choose_links();
  }

  std::vector<Room> answer(const std::vector<RoomQuery>& queries) {
    std::map<std::size_t, std::vector<std::uint32_t>> by_resource;  // queries
    for (std::uint32_t q = 0; q < queries.size(); ++q) {
      for (const std::size_t resource : needs(queries[q].operation)) by_resource[resource].push_back(q);
    }
    std::map<std::size_t, std::vector<WeightedCarrier>> carriers;  // by resource
    for (const auto& [resource, unused] : by_resource) {
      if (resource >= links_) carriers[resource].push_back({resource - links_, 1});
    }
    for (std::uint32_t route = 0; route < run_.routes.size(); ++route) {
      for (const Usage& usage : run_.routes.usages(route)) {
        if (by_resource.count(usage.resource) > 0) carriers[usage.resource].push_back({route, share(usage)});
      }
    }
    list_phases(carriers);
    std::vector<Room> rooms(queries.size());
    for (const auto& [resource, asked] : by_resource) {
      PassedAmount passed = passed_through(carriers[resource]);
      for (const std::uint32_t q : asked) {
        const RoomQuery& query = queries[q];
        const double amount = passed.until(query.end) - passed.until(query.begin);
        const double most = capacity(resource) * static_cast<double>((query.end - query.begin).value) * 1e-12;
        double& room = part(rooms[q], resource);
        room = std::clamp(1 - amount / most, 0.0, room);
      }
    }
    return rooms;
  }

 private:
  struct WeightedCarrier {
    std::size_t carrier = 0;
    double weight = 1;
  };
  struct RanPhase {
    std::uint32_t operation = 0;
    std::uint32_t phase = 0;
  };

  static double share(const Usage& usage) { return static_cast<double>(usage.weight) / Usage::one; }

  /// Of the links that the same routes load alike, only the narrowest can be the busiest.
  void choose_links() {
    std::vector<std::uint64_t> hash(links_, 0);
    for (std::uint32_t route = 0; route < run_.routes.size(); ++route) {
      for (const Usage& usage : run_.routes.usages(route)) {
        std::uint64_t& h = hash[usage.resource];
        h = (h ^ ((std::uint64_t{route} << 32U) | usage.weight)) * 0x9E3779B97F4A7C15ULL;
        h ^= h >> 31U;
      }
    }
    std::unordered_map<std::uint64_t, std::uint32_t> narrowest;
    for (std::uint32_t l = 0; l < links_; ++l) {
      const auto [known, is_new] = narrowest.try_emplace(hash[l], l);
      if (!is_new && capacities_[l] < capacities_[known->second]) known->second = l;
    }
    chosen_.assign(links_, 0);
    for (const auto& [unused, link] : narrowest) chosen_[link] = 1;
  }

  std::size_t carrier(std::uint32_t operation, std::size_t phase) const {
    const Operation& what = run_.operations.list[operation];
    switch (run_.demands[operation].phases[phase].use) {
      case Demand::Use::host: return hosts_ + what.source.index();
      case Demand::Use::memory: return memories_ + run_.refit.gpu(what.source).index();
      case Demand::Use::route: break;
    }
    return run_.routes.of(what);
  }

  const std::vector<std::size_t>& needs_of(std::uint32_t route) {
    const auto [known, is_new] = needs_of_route_.try_emplace(route);
    if (!is_new) return known->second;
    if (run_.capped(route)) known->second.push_back(links_ + route);
    for (const Usage& usage : run_.routes.usages(route)) {
      if (chosen_[usage.resource] != 0) known->second.push_back(usage.resource);
    }
    return known->second;
  }

  std::vector<std::size_t> needs(std::uint32_t operation) {
    std::vector<std::size_t> resources;
    for (std::size_t p = 0; p < phase_count; ++p) {
      const Demand::Phase& phase = run_.demands[operation].phases[p];
      if (phase.flow_class == Demand::none) continue;
      const std::size_t on = carrier(operation, p);
      if (phase.use != Demand::Use::route) {
        resources.push_back(links_ + on);
        continue;
      }
      const auto route = static_cast<std::uint32_t>(on);
      const std::vector<std::size_t>& of_route = needs_of(route);
      resources.insert(resources.end(), of_route.begin(), of_route.end());
    }
    return resources;
  }

  double& part(Room& room, std::size_t resource) const {
    if (resource < links_) return room.links;
    return resource - links_ < hosts_ ? room.cap : room.own;
  }

  /// Units per second.
  double capacity(std::size_t resource) const {
    if (resource < links_) return static_cast<double>(capacities_[resource].value);
    if (resource - links_ < hosts_) return run_.calibration.collective_bandwidth.value;
    if (resource - links_ < memories_) return static_cast<double>(picoseconds_per_second);
    return run_.calibration.memory_bandwidth.value;
  }

  /// The phases of the carriers that matter.
  void list_phases(const std::map<std::size_t, std::vector<WeightedCarrier>>& carriers) {
    phases_.resize(memories_ + run_.refit.fabric.gpu_count());
    std::vector<char> wanted(phases_.size(), 0);
    for (const auto& [unused, list] : carriers) {
      for (const WeightedCarrier& item : list) wanted[item.carrier] = 1;
    }
    for (std::uint32_t i = 0; i < run_.demands.size(); ++i) {
      for (std::uint32_t p = 0; p < phase_count; ++p) {
        if (run_.demands[i].phases[p].flow_class == Demand::none) continue;
        const std::size_t on = carrier(i, p);
        if (wanted[on] != 0) phases_[on].push_back({i, p});
      }
    }
  }

  PassedAmount passed_through(const std::vector<WeightedCarrier>& carriers) const {
    PassedAmount passed;
    for (const WeightedCarrier& item : carriers) {
      for (const RanPhase& ran : phases_[item.carrier]) {
        const auto amount = static_cast<double>(run_.demands[ran.operation].phases[ran.phase].amount);
        passed.add(run_.phase_begin(ran.operation, ran.phase), run_.phase_end(ran.operation, ran.phase),
                   amount * item.weight);
      }
    }
    passed.finish();
    return passed;
  }

  const FinishedRun& run_;
  std::size_t hosts_, memories_;  // first numbers among carriers
  std::size_t links_;
  std::vector<Bandwidth> capacities_;  // by link
  std::vector<char> chosen_;           // by link
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> needs_of_route_;
  std::vector<std::vector<RanPhase>> phases_;  // by carrier
};

}  // namespace

std::vector<Room> room(const FinishedRun& run, const std::vector<RoomQuery>& queries) {
  if (queries.empty()) return {};
  return Rooms(run).answer(queries);
}

}  // namespace isthmus::sim

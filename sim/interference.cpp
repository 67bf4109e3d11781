#include "sim/interference.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace isthmus::sim {
namespace {

std::int64_t share_of_whole(double share) {
  return std::llround(share * static_cast<double>(Interference::whole));
}

/// The GPUs that a load names, ascending.
std::vector<GpuId> gpus_of(const Refit& refit, const BackgroundLoad& load) {
  std::set<GpuId> of_side;
  const bool all = load.side == BackgroundLoad::Side::all;
  for (std::uint32_t rank = 0; rank < refit.ranks() && !all; ++rank) {
    const bool train = rank < refit.train_ranks;
    if (train == (load.side == BackgroundLoad::Side::train)) of_side.insert(refit.gpu({rank}));
  }
  const auto named = [](const std::vector<int>& numbers, std::size_t number) {
    return numbers.empty() ||
           std::find(numbers.begin(), numbers.end(), static_cast<int>(number)) != numbers.end();
  };
  std::vector<GpuId> result;
  for (std::uint32_t g = 0; g < refit.fabric.gpu_count(); ++g) {
    const HostId host = refit.fabric.host_of({g});
    const std::size_t local = g - refit.fabric.gpu_at(host, 0).index();
    if (!named(load.hosts, host.index()) || !named(load.gpus, local)) continue;
    if (all || of_side.count({g}) > 0) result.push_back({g});
  }
  return result;
}

class InterferenceBuilder {
 public:
  InterferenceBuilder(const Refit& refit, const Operations& operations, const Disturbances& disturbances,
                      Routes& routes)
      : refit_(refit), operations_(operations), disturbances_(disturbances), routes_(routes) {
    result_.rule = disturbances.failed_steps;
  }

  Interference run() {
    for (const BackgroundLoad& load : disturbances_.background) add_load(load);
    for (const auto& [gpu, left] : kernels_) result_.kernels.emplace_back(gpu, left);
    add_periods();
    if (result_.rule.policy == FailedSteps::reroute) {
      for (std::size_t p = 0; p < result_.periods.size(); ++p) add_detours(p);
    }
    return std::move(result_);
  }

 private:
  void add_load(const BackgroundLoad& load) {
    std::set<LinkId> links;  // GPUs may share a NIC
    for (const GpuId gpu : gpus_of(refit_, load)) {
      switch (load.on) {
        case BackgroundLoad::On::sm: {
          std::int64_t& left = kernels_.try_emplace(gpu, Interference::whole).first->second;
          left = left_of(left, Interference::whole - share_of_whole(*load.share));
          break;
        }
        case BackgroundLoad::On::memory: add_flows(load, true, gpu.value); break;
        case BackgroundLoad::On::nic:
        case BackgroundLoad::On::nvlink: {
          const bool nic = load.on == BackgroundLoad::On::nic;
          const auto out = nic ? refit_.fabric.nic_out(gpu) : refit_.fabric.nvlink_out(gpu);
          const auto in = nic ? refit_.fabric.nic_in(gpu) : refit_.fabric.nvlink_in(gpu);
          if (out && load.direction != BackgroundLoad::Direction::in) links.insert(*out);
          if (in && load.direction != BackgroundLoad::Direction::out) links.insert(*in);
          break;
        }
      }
    }
    for (const LinkId link : links) add_flows(load, false, link.value);
  }

  void add_flows(const BackgroundLoad& load, bool on_memory, std::uint32_t where) {
    const std::int64_t rate = load.rate ? load.rate->value : 0;
    const std::int64_t share = load.share ? share_of_whole(*load.share) : 0;
    if (rate == 0 && share == 0) return;
    const auto number = static_cast<std::uint32_t>(&load - disturbances_.background.data());
    result_.loads.push_back({on_memory, where, share, rate, static_cast<std::uint32_t>(load.flows), number});
  }

  void add_periods() {
    std::set<Instant> begins;
    std::vector<Affected> what;
    for (const MachineFault& fault : disturbances_.faults) {
      begins.insert(Instant{} + fault.at);
      if (fault.until) begins.insert(Instant{} + *fault.until);
      what.push_back(affected(refit_.fabric, fault.what));
    }
    for (const Instant begin : begins) {
      std::map<LinkId, std::int64_t> links;
      std::map<GpuId, std::int64_t> gpus;
      for (std::size_t f = 0; f < what.size(); ++f) {
        const MachineFault& fault = disturbances_.faults[f];
        const Duration now = begin - Instant{};
        const bool on = fault.at <= now && (!fault.until || now < *fault.until);
        const std::int64_t share = on ? share_of_whole(fault.share) : Interference::whole;
        const auto lower = [share](auto& shares, auto key) {
          std::int64_t& least = shares.try_emplace(key, Interference::whole).first->second;
          least = std::min(least, share);
        };
        for (const LinkId link : what[f].links) lower(links, link);
        for (const GpuId gpu : what[f].gpus) lower(gpus, gpu);
      }
      result_.periods.push_back({begin, {links.begin(), links.end()}, {gpus.begin(), gpus.end()}});
    }
  }

  /// Around what is down in a period, for each route that crosses it. Periods with the same links down share
  /// their detours.
  void add_detours(std::size_t number) {
    Interference::Period& period = result_.periods[number];
    std::vector<char> down(refit_.fabric.links().size(), 0);
    for (const auto& [link, share] : period.links) down[link.index()] = share == 0 ? 1 : 0;
    if (std::find(down.begin(), down.end(), 1) == down.end()) return;
    for (std::size_t before = 0; before < downs_.size(); ++before) {
      if (downs_[before].first != down) continue;
      period.detours = result_.periods[downs_[before].second].detours;
      return;
    }
    std::vector<char> seen(routes_.planned(), 0);
    for (const Operation& operation : operations_.list) {
      const std::uint32_t route = routes_.of(operation);
      if (route == Routes::local || seen[route] != 0) continue;
      seen[route] = 1;
      const std::vector<Usage>& usages = routes_.usages(route);
      const bool hit = std::any_of(usages.begin(), usages.end(),
                                   [&](const Usage& usage) { return down[usage.resource] != 0; });
      if (!hit) continue;
      const std::uint32_t detour = routes_.add_detour(operation, down);
      if (detour != Routes::local) period.detours.emplace_back(route, detour);
    }
    downs_.emplace_back(std::move(down), number);
  }

  const Refit& refit_;
  const Operations& operations_;
  const Disturbances& disturbances_;
  Routes& routes_;
  Interference result_;
  std::map<GpuId, std::int64_t> kernels_;
  std::vector<std::pair<std::vector<char>, std::size_t>> downs_;  // with the first period that has them
};

}  // namespace

std::int64_t left_of(std::int64_t capacity, std::int64_t share) {
  if (share == Interference::whole) return capacity;
  const Int128 left = Int128{capacity} * share / Interference::whole;
  return share == 0 ? 0 : std::max<std::int64_t>(1, static_cast<std::int64_t>(left));
}

Interference interference(const Refit& refit, const Operations& operations, const Disturbances& disturbances,
                          Routes& routes) {
  if (disturbances.none()) return {};
  return InterferenceBuilder(refit, operations, disturbances, routes).run();
}

}  // namespace isthmus::sim

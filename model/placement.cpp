#include "model/placement.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

namespace isthmus {
namespace {

struct Side {
  std::string_view key;
  int gpus = 0;
  bool given = false;  // the scenario lists its hosts
  bool by_rail = false;
  std::vector<int> hosts;
};

/// GPUs of a host; one that the fabric lacks is taken to be like its last.
int gpus_on(const Fabric& fabric, int host) {
  const int last = static_cast<int>(fabric.host_count()) - 1;
  return static_cast<int>(fabric.gpus_on({static_cast<std::uint32_t>(std::clamp(host, 0, last))}));
}

/// How many of the hosts, in order, hold so many GPUs; past their end as many more as host `next` counts.
std::size_t needed_hosts(int gpus, const std::vector<int>& hosts, int next, const Fabric& fabric) {
  std::size_t needed = 0;
  while (gpus > 0) {
    gpus -= std::max(1, gpus_on(fabric, needed < hosts.size() ? hosts[needed] : next));
    if (needed++ >= hosts.size()) ++next;
  }
  return needed;
}

Side make_side(std::string_view key, int gpus, const std::optional<SideRanks>& ranks, int first,
               const Fabric& fabric) {
  if (ranks) return {key, gpus, true, ranks->by_rail, ranks->hosts};
  Side side{key, gpus, false, false, std::vector<int>(needed_hosts(gpus, {}, first, fabric))};
  std::iota(side.hosts.begin(), side.hosts.end(), first);
  return side;
}

std::vector<Side> sides(const Scenario& scenario, const Fabric& fabric) {
  Side train = make_side("ranks.train.hosts", scenario.train->gpus, scenario.train_ranks, 0, fabric);
  const int next = train.hosts.empty() ? 0 : 1 + *std::max_element(train.hosts.begin(), train.hosts.end());
  Side generate =
      make_side("ranks.generate.hosts", scenario.generate->gpus, scenario.generate_ranks, next, fabric);
  return {std::move(train), std::move(generate)};
}

void judge_given(const Scenario& scenario, const Fabric& fabric, const Side& side,
                 std::vector<InputFault>& faults) {
  const std::size_t needed = needed_hosts(side.gpus, side.hosts, 0, fabric);
  const auto available = static_cast<int>(fabric.host_count());
  if (side.hosts.size() != needed) {
    faults.push_back({scenario.at(side.key), fmt::format("{} hosts", side.hosts.size()),
                      fmt::format("{} hosts ({} GPUs, {} per host)", needed, side.gpus, gpus_on(fabric, 0)),
                      fmt::format("{} hosts", needed)});
  }
  const auto is_outside = [available](int host) { return host < 0 || host >= available; };
  const auto outside = std::find_if(side.hosts.begin(), side.hosts.end(), is_outside);
  if (outside == side.hosts.end()) return;
  const auto others = std::count_if(outside + 1, side.hosts.end(), is_outside);
  faults.push_back(
      {scenario.at(side.key),
       fmt::format("host {}{}", *outside, others == 0 ? "" : fmt::format(" and {} more", others)),
       fmt::format("0 to {} (fabric.hosts is {})", available - 1, available),
       fmt::format("hosts below {}, or fabric.hosts {}", available,
                   1 + *std::max_element(side.hosts.begin(), side.hosts.end()))});
}

std::vector<InputFault> faults_of(const Scenario& scenario, const Fabric& fabric,
                                  const std::vector<Side>& both) {
  std::vector<InputFault> faults;
  int needed = 0;
  for (const Side& side : both) {
    if (side.given) {
      judge_given(scenario, fabric, side, faults);
    } else if (!side.hosts.empty()) {
      needed = std::max(needed, side.hosts.back() + 1);
    }
  }
  if (to_size(needed) > fabric.host_count()) {
    faults.push_back({scenario.at("fabric.hosts"), fmt::format("{}", fabric.host_count()),
                      fmt::format("at least {} hosts of {} GPUs for {} training and {} generation GPUs",
                                  needed, gpus_on(fabric, 0), scenario.train->gpus, scenario.generate->gpus),
                      fmt::format("{}", needed)});
  }
  return faults;
}

/// The GPUs of a side that takes those of all its hosts, or of all but some on the last one.
void add_by_rail(const Side& side, const Fabric& fabric, std::vector<GpuId>& gpus) {
  const std::size_t end = gpus.size() + to_size(side.gpus);
  for (std::size_t local = 0; gpus.size() < end; ++local) {
    for (const int number : side.hosts) {
      const HostId host{static_cast<std::uint32_t>(number)};
      if (local < fabric.gpus_on(host) && gpus.size() < end) gpus.push_back(fabric.gpu_at(host, local));
    }
  }
}

}  // namespace

std::vector<InputFault> placement_faults(const Scenario& scenario, const Fabric& fabric) {
  return faults_of(scenario, fabric, sides(scenario, fabric));
}

std::vector<GpuId> rank_places(const Scenario& scenario, const Fabric& fabric) {
  const std::vector<Side> both = sides(scenario, fabric);
  raise_first(faults_of(scenario, fabric, both));
  std::vector<GpuId> gpus;
  for (const Side& side : both) {
    if (side.by_rail) {
      add_by_rail(side, fabric, gpus);
      continue;
    }
    int left = side.gpus;
    for (const int number : side.hosts) {
      const HostId host{static_cast<std::uint32_t>(number)};
      const int here = std::min(left, static_cast<int>(fabric.gpus_on(host)));
      for (int local = 0; local < here; ++local) gpus.push_back(fabric.gpu_at(host, to_size(local)));
      left -= here;
    }
  }
  return gpus;
}

std::vector<int> shared_hosts(const Scenario& scenario, const Fabric& fabric) {
  std::vector<Side> both = sides(scenario, fabric);
  for (Side& side : both) std::sort(side.hosts.begin(), side.hosts.end());
  std::vector<int> shared;
  std::set_intersection(both[0].hosts.begin(), both[0].hosts.end(), both[1].hosts.begin(),
                        both[1].hosts.end(), std::back_inserter(shared));
  return shared;
}

}  // namespace isthmus

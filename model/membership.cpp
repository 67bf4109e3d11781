#include "model/membership.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/grid.hpp"
#include "model/membership_seats.hpp"
#include "model/nearest_layouts.hpp"
#include "model/scenario_model.hpp"

namespace isthmus {
namespace {

constexpr std::string_view leave_key = "--leave", join_key = "--join";

Location option(std::string_view key) { return {std::string(key), 0, ""}; }

bool contains(const std::vector<int>& hosts, int host) {
  return std::find(hosts.begin(), hosts.end(), host) != hosts.end();
}

std::vector<int> hosts_of(const Refit& refit, std::size_t first, std::size_t count) {
  std::vector<int> hosts;
  std::set<int> seen;
  for (std::size_t rank = first; rank < first + count; ++rank) {
    const auto host = static_cast<int>(refit.fabric.host_of(refit.gpu_of_rank[rank]).value);
    if (seen.insert(host).second) hosts.push_back(host);
  }
  return hosts;
}

/// GPUs of a side on the hosts that stay.
int staying_gpus(const Refit& refit, std::size_t first, std::size_t count, const std::vector<int>& leave) {
  int gpus = 0;
  for (std::size_t rank = first; rank < first + count; ++rank)
    gpus += contains(leave, static_cast<int>(refit.fabric.host_of(refit.gpu_of_rank[rank]).value)) ? 0 : 1;
  return gpus;
}

int gpus_of(const Fabric& fabric, const std::vector<int>& hosts) {
  int gpus = 0;
  for (const int host : hosts) {
    if (host >= 0 && to_size(host) < fabric.host_count())
      gpus += static_cast<int>(fabric.gpus_on({static_cast<std::uint32_t>(host)}));
  }
  return gpus;
}

/// How many GPUs either side has afterwards; what of generation no unit uses is not among them.
struct SideGpus {
  int train = 0, generate = 0;
};

SideGpus gpus_afterwards(const Scenario& scenario, const Refit& before, const MembershipChange& change) {
  SideGpus gpus;
  gpus.train =
      staying_gpus(before, 0, before.train_ranks, change.leave) + gpus_of(before.fabric, change.join_train);
  gpus.generate = staying_gpus(before, before.train_ranks, before.generate_ranks, change.leave) +
                  gpus_of(before.fabric, change.join_generate);
  const auto unit = static_cast<int>(generation_unit(*scenario.generate));
  gpus.generate = gpus.generate / unit * unit;
  return gpus;
}

class MembershipJudge {
 public:
  MembershipJudge(const Scenario& scenario, const Refit& before, const MembershipChange& change)
      : scenario_(scenario), before_(before), change_(change), now_(side_hosts(before)) {}

  std::vector<InputFault> run() {
    hosts();
    if (!faults_.empty()) return std::move(faults_);
    const SideGpus after = gpus_afterwards(scenario_, before_, change_);
    if (after.generate == 0) generation();
    if (after.train != scenario_.train->gpus) training(after.train);
    return std::move(faults_);
  }

 private:
  void hosts() {
    for (const int host : change_.leave) {
      if (contains(now_.train, host) || contains(now_.generate, host)) continue;
      faults_.push_back({option(leave_key), fmt::format("host {}", host),
                         fmt::format("hosts of the refit: {} train, {} generate", host_list(now_.train),
                                     host_list(now_.generate)),
                         ""});
    }
    joining(change_.join_train, now_.train, "trains");
    joining(change_.join_generate, now_.generate, "generates");
    const std::size_t first = before_.fabric.gpus_on({0});
    for (std::uint32_t host = 0; host < before_.fabric.host_count(); ++host) {
      if (before_.fabric.gpus_on({host}) == first) continue;
      faults_.push_back({scenario_.at("fabric"),
                         fmt::format("hosts of {} and of {} GPUs", first, before_.fabric.gpus_on({host})),
                         "hosts that can stand in for each other: as many GPUs on each", ""});
      return;
    }
  }

  void joining(const std::vector<int>& hosts, const std::vector<int>& side, std::string_view does) {
    const auto known = static_cast<int>(before_.fabric.host_count());
    for (const int host : hosts) {
      if (host >= known) {
        const std::vector<int> unused = free_hosts(before_);
        faults_.push_back({option(join_key), fmt::format("host {}", host),
                           fmt::format("0 to {} (fabric.hosts is {}); of these neither side uses {}",
                                       known - 1, known, unused.empty() ? "any" : host_list(unused)),
                           fmt::format("--set fabric.hosts={}", host + 1)});
      } else if (contains(side, host) && !contains(change_.leave, host)) {
        faults_.push_back({option(join_key), fmt::format("host {}, which {} already", host, does),
                           "a host that is not on that side; one that leaves as well comes back empty", ""});
      }
    }
  }

  void generation() {
    const std::int64_t unit = generation_unit(*scenario_.generate);
    const auto per_host = static_cast<std::int64_t>(before_.fabric.gpus_on({0}));
    const int left = staying_gpus(before_, before_.train_ranks, before_.generate_ranks, change_.leave) +
                     gpus_of(before_.fabric, change_.join_generate);
    const std::int64_t hosts = (unit + per_host - 1) / per_host;
    faults_.push_back({option(leave_key), fmt::format("{} GPUs left for generation", left),
                       fmt::format("at least {} GPUs, which one replica takes: {} host{}", unit, hosts,
                                   hosts == 1 ? "" : "s"),
                       ""});
  }

  void training(int gpus) {
    if (gpus == 0) {
      faults_.push_back({option(leave_key), "no GPUs left for training", "at least one training host", ""});
      return;
    }
    Scenario after = scenario_;
    after.train->gpus = gpus;
    const Inventory inventory = cut_inventory(scenario_, read_full_inventory(scenario_));
    for (const InputFault& fault : grid_faults(after, inventory)) {
      if (!fault.where.key.starts_with("train.")) continue;
      std::string nearest;
      for (const TrainSpec& each : nearest_train_layouts(scenario_, gpus, 3))
        nearest += (nearest.empty() ? "" : "; ") + layout_text(each);
      const bool leaves = gpus < scenario_.train->gpus;
      faults_.push_back(
          {option(leaves ? leave_key : join_key),
           fault.where.key == "train.gpus"
               ? fmt::format("{} GPUs for training", gpus)
               : fmt::format("{} GPUs for training, so that {} is {}", gpus, fault.where.key, fault.found),
           fmt::format("{}; the nearest layouts that work: {}", fault.allowed,
                       nearest.empty() ? "none" : nearest),
           nearest});
      return;
    }
  }

  const Scenario& scenario_;
  const Refit& before_;
  const MembershipChange& change_;
  SideHosts now_;
  std::vector<InputFault> faults_;
};

/// Those of a side that stay, in their order, then those that join.
std::vector<int> people(const std::vector<int>& now, const std::vector<int>& leave,
                        const std::vector<int>& join) {
  std::vector<int> hosts;
  for (const int host : now)
    if (!contains(leave, host)) hosts.push_back(host);
  hosts.insert(hosts.end(), join.begin(), join.end());
  return hosts;
}

/// As many hosts as the GPUs take.
std::vector<int> first_seats(std::vector<int> hosts, int gpus, const Fabric& fabric) {
  const auto per_host = static_cast<int>(fabric.gpus_on({0}));
  hosts.resize(std::min(hosts.size(), to_size((gpus + per_host - 1) / per_host)));
  return hosts;
}

void drop_relays(const std::vector<int>& gone, Refit& refit) {
  const auto relays = refit.gpu_of_rank.begin() + static_cast<std::ptrdiff_t>(refit.members());
  const auto kept = std::remove_if(relays, refit.gpu_of_rank.end(), [&](GpuId gpu) {
    return contains(gone, static_cast<int>(refit.fabric.host_of(gpu).value));
  });
  refit.relay_ranks = to_size(kept - relays);
  refit.gpu_of_rank.erase(kept, refit.gpu_of_rank.end());
}

}  // namespace

SideHosts side_hosts(const Refit& refit) {
  return {hosts_of(refit, 0, refit.train_ranks), hosts_of(refit, refit.train_ranks, refit.generate_ranks)};
}

std::vector<int> free_hosts(const Refit& refit) {
  const SideHosts now = side_hosts(refit);
  std::vector<int> hosts;
  for (int host = 0; to_size(host) < refit.fabric.host_count(); ++host)
    if (!contains(now.train, host) && !contains(now.generate, host)) hosts.push_back(host);
  return hosts;
}

std::int64_t generation_unit(const GenerateSpec& generate) {
  const std::int64_t experts = generate.ep > 1 ? generate.ep * generate_etp(generate) : 1;
  return generate.pp * std::lcm(std::int64_t{generate.tp}, experts);
}

int serving_without(const Scenario& scenario, const Refit& before, const std::vector<int>& leave) {
  return gpus_afterwards(scenario, before, {leave, {}, {}}).generate;
}

std::vector<InputFault> membership_faults(const Scenario& scenario, const Refit& before,
                                          const MembershipChange& change) {
  return MembershipJudge(scenario, before, change).run();
}

Membership change_membership(const Scenario& scenario, const Refit& before, const MembershipChange& change) {
  const SideHosts now = side_hosts(before);
  const SideGpus gpus = gpus_afterwards(scenario, before, change);
  const std::vector<int> train = people(now.train, change.leave, change.join_train),
                         generate = people(now.generate, change.leave, change.join_generate);
  Scenario after = scenario;
  after.train->gpus = gpus.train;
  after.generate->gpus = gpus.generate;
  if (after.generate->dp) after.generate->dp = gpus.generate / (after.generate->tp * after.generate->pp);
  const auto seat = [&](const std::vector<int>& of_train, const std::vector<int>& of_generate) {
    after.train_ranks = SideRanks{of_train, scenario.train_ranks && scenario.train_ranks->by_rail};
    after.generate_ranks =
        SideRanks{of_generate, scenario.generate_ranks && scenario.generate_ranks->by_rail};
  };
  seat(first_seats(train, gpus.train, before.fabric), first_seats(generate, gpus.generate, before.fabric));
  Membership membership{after, resolve(after), {}};
  const HeldBytes held = held_bytes(before, membership.refit);
  // A replica over several hosts that nobody leaves goes on as it is.
  const auto per_host = static_cast<std::int64_t>(before.fabric.gpus_on({0}));
  const std::int64_t unit = generation_unit(*scenario.generate);
  std::vector<int> kept;
  if (unit % per_host == 0 && !(scenario.generate_ranks && scenario.generate_ranks->by_rail)) {
    kept = seats_of_whole_units(held.generate.size(), to_size(unit / per_host), now.generate, change.leave);
  }
  seat(best_seats(held.train, now.train, train, change.leave),
       best_seats(held.generate, now.generate, generate, change.leave, std::move(kept)));
  if (after.train_ranks != membership.scenario.train_ranks ||
      after.generate_ranks != membership.scenario.generate_ranks) {
    membership.refit = resolve(after);
    membership.scenario = after;
  }
  const SideHosts seated = side_hosts(membership.refit);
  for (const int host : people(train, {}, generate)) {
    if (!contains(seated.train, host) && !contains(seated.generate, host)) membership.idle.push_back(host);
  }
  drop_relays(people(change.leave, people(train, {}, generate), {}), membership.refit);
  return membership;
}

std::string host_list(std::vector<int> hosts) {
  std::sort(hosts.begin(), hosts.end());
  hosts.erase(std::unique(hosts.begin(), hosts.end()), hosts.end());
  std::string text;
  for (std::size_t begin = 0; begin < hosts.size();) {
    std::size_t end = begin;
    while (end + 1 < hosts.size() && hosts[end + 1] == hosts[end] + 1) ++end;
    text += text.empty() ? "" : ", ";
    text += end == begin ? fmt::format("{}", hosts[begin]) : fmt::format("{}-{}", hosts[begin], hosts[end]);
    begin = end + 1;
  }
  return text.empty() ? "none" : text;
}

}  // namespace isthmus

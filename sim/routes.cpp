#include "sim/routes.hpp"

#include <algorithm>
#include <numeric>

#include "sim/detour.hpp"

namespace isthmus::sim {
namespace {

struct DomainMembers {
  DomainId domain;
  std::vector<GpuId> gpus;
};

/// Members by domain, in order of first appearance; the root's domain first, and there the root.
std::vector<DomainMembers> by_domain(const Refit& refit, Rank root, const std::vector<Rank>& members) {
  std::vector<DomainMembers> domains{{refit.fabric.domain_of(refit.gpu(root)), {refit.gpu(root)}}};
  std::vector<std::uint32_t> index(refit.fabric.domain_count(), Routes::local);
  index[domains[0].domain.index()] = 0;
  for (const Rank rank : members) {
    const GpuId gpu = refit.gpu(rank);
    const DomainId domain = refit.fabric.domain_of(gpu);
    std::uint32_t& at = index[domain.index()];
    if (at == Routes::local) {
      at = static_cast<std::uint32_t>(domains.size());
      domains.push_back({domain, {}});
    }
    std::vector<GpuId>& gpus = domains[at].gpus;
    if (std::find(gpus.begin(), gpus.end(), gpu) == gpus.end()) gpus.push_back(gpu);
  }
  return domains;
}

/// How many of `channels` have this remainder.
std::size_t channels_at(std::size_t channels, std::size_t remainder, std::size_t count) {
  return (channels + count - 1 - remainder) / count;
}

/// Visits the hops inside a domain as (from, to, channels that take it). Channel c goes round from member
/// c mod m on, hence over every hop of the ring but the one into that member. In the domain of a broadcast's
/// root the root comes first, whatever the channel, and the others go round.
template <class Visit>
void for_each_inner_hop(const std::vector<GpuId>& gpus, std::size_t channels, bool from_root, Visit&& visit) {
  const std::size_t first = from_root ? 1 : 0, count = gpus.size() - first;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t starting = channels_at(channels, i, count);
    if (from_root) visit(gpus[0], gpus[first + i], starting);
    if (count > 1) visit(gpus[first + (i + count - 1) % count], gpus[first + i], channels - starting);
  }
}

}  // namespace

Routes::Routes(const Refit& refit, const Operations& operations)
    : refit_(refit),
      operations_(operations),
      pair_index_(refit.fabric.gpu_count()),
      neighbours_(refit.fabric.links().size()),
      shares_(refit.fabric.links().size()) {
  route_of_.reserve(operations.list.size());
  for (const Operation& operation : operations.list) {
    if (operation.kind == StepKind::load) {
      route_of_.push_back(local);
    } else if (operations.collective(operation)) {
      route_of_.push_back(collective_route(operation));
    } else {
      route_of_.push_back(pair_route(refit.gpu(operation.source), refit.gpu(operation.target)));
    }
  }
  count_bytes();
  planned_ = list_.size();
}

std::uint32_t Routes::of(const Operation& operation) const {
  return route_of_[static_cast<std::size_t>(&operation - operations_.list.data())];
}

std::uint32_t Routes::pair_route(GpuId from, GpuId to) {
  if (from == to) return local;
  std::vector<std::uint32_t>& row = pair_index_[from.index()];
  if (row.empty()) row.assign(pair_index_.size(), local);
  std::uint32_t& known = row[to.index()];
  if (known != local) return known;
  known = static_cast<std::uint32_t>(list_.size());
  Route route;
  const std::vector<LinkId> links = refit_.fabric.route(from, to);
  for (const LinkId link : links) route.usages.push_back({link.value, Usage::one});
  route.leaves_domain = refit_.fabric.domain_of(from) != refit_.fabric.domain_of(to);
  note(links);
  list_.push_back(std::move(route));
  return known;
}

/// The links of a hop; nullptr where what is down leaves no way.
const std::vector<LinkId>* Routes::hop(GpuId from, GpuId to) {
  const std::uint64_t key = (std::uint64_t{from.value} << 32U) | to.value;
  if (down_ != nullptr) {
    const auto [known, added] = ways_around_.try_emplace(key);
    if (added) known->second = way_around(refit_.fabric, from, to, *down_);
    return known->second ? &*known->second : nullptr;
  }
  const auto [known, added] = hops_.try_emplace(key);
  if (added) {
    known->second = refit_.fabric.route(from, to);
    note(known->second);
  }
  return &known->second;
}

/// Adds to what the links of a hop of the collective at hand carry.
void Routes::add_share(GpuId from, GpuId to, std::uint64_t share) {
  if (share == 0) return;
  const std::vector<LinkId>* links = hop(from, to);
  if (links == nullptr) {
    blocked_ = true;
    return;
  }
  for (const LinkId link : *links) {
    if (shares_[link.index()] == 0) shared_.push_back(link.value);
    shares_[link.index()] += share;
  }
}

std::uint32_t Routes::collective_route(const Operation& operation) {
  const std::vector<std::uint32_t> key{static_cast<std::uint32_t>(operation.kind), operation.source.value,
                                       operation.members};
  const auto known = collective_index_.find(key);
  if (known != collective_index_.end()) return known->second;
  const std::uint32_t index = add_collective(operation);
  collective_index_.emplace(key, index);
  return index;
}

std::uint32_t Routes::add_collective(const Operation& operation) {
  const std::vector<Rank>& members = operations_.members[operation.members];
  const std::vector<DomainMembers> domains = by_domain(refit_, operation.source, members);
  std::size_t channels = 1, gpus = 0;
  for (const DomainMembers& domain : domains) {
    channels = std::max(channels, domain.gpus.size());
    gpus += domain.gpus.size();
  }
  std::uint64_t whole = Usage::one;
  if (operation.kind == StepKind::all_gather) whole = (whole * (gpus - 1) + gpus - 1) / gpus;
  const std::uint64_t share = (whole + channels - 1) / channels;
  const bool ring = operation.kind == StepKind::all_gather;
  for (std::size_t d = 0; d < domains.size(); ++d) {
    const std::vector<GpuId>& here = domains[d].gpus;
    const bool from_root = operation.kind == StepKind::broadcast && d == 0;
    for_each_inner_hop(here, channels, from_root,
                       [&](GpuId from, GpuId to, std::size_t times) { add_share(from, to, share * times); });
    if (d + 1 == domains.size() && !ring) continue;
    const std::vector<GpuId>& next = domains[(d + 1) % domains.size()].gpus;
    for (std::size_t c = 0; c < channels; ++c) {
      // A ring in one domain closes from the channel's last member to its first.
      const std::size_t exit = domains.size() == 1 ? c + here.size() - 1 : c;
      add_share(here[exit % here.size()], next[c % next.size()], share);
    }
  }
  if (shared_.empty()) return local;
  Route route;
  sort_shared();
  route.usages.reserve(shared_.size());
  for (const std::uint32_t link : shared_) {
    route.usages.push_back({link, static_cast<std::uint32_t>(shares_[link])});
    shares_[link] = 0;
  }
  shared_.clear();
  route.leaves_domain = domains.size() > 1;
  route.collective = true;
  list_.push_back(std::move(route));
  return static_cast<std::uint32_t>(list_.size() - 1);
}

std::uint32_t Routes::add_detour(const Operation& operation, const std::vector<char>& down) {
  if (avoided_ != down) {
    ways_around_.clear();
    avoided_ = down;
  }
  down_ = &avoided_;
  blocked_ = false;
  std::uint32_t index = local;
  if (operations_.collective(operation)) {
    index = add_collective(operation);
    if (blocked_ && index != local) {
      list_.pop_back();
      index = local;
    }
  } else if (const auto* links = hop(refit_.gpu(operation.source), refit_.gpu(operation.target))) {
    Route route;
    for (const LinkId link : *links) route.usages.push_back({link.value, Usage::one});
    route.leaves_domain = leaves_domain(of(operation));
    index = static_cast<std::uint32_t>(list_.size());
    list_.push_back(std::move(route));
  }
  down_ = nullptr;
  return index;
}

void Routes::sort_shared() {
  if (shared_.size() < shares_.size() / 16) return std::sort(shared_.begin(), shared_.end());
  shared_.clear();
  for (std::uint32_t link = 0; link < shares_.size(); ++link) {
    if (shares_[link] != 0) shared_.push_back(link);
  }
}

void Routes::note(const std::vector<LinkId>& links) {
  const auto add = [](std::vector<std::uint32_t>& list, std::uint32_t link) {
    if (std::find(list.begin(), list.end(), link) == list.end()) list.push_back(link);
  };
  for (std::size_t i = 0; i < links.size(); ++i) {
    Neighbours& around = neighbours_[links[i].index()];
    if (i > 0) {
      add(around.before, links[i - 1].value);
    } else {
      around.open_before = true;
    }
    if (i + 1 < links.size()) {
      add(around.after, links[i + 1].value);
    } else {
      around.open_after = true;
    }
  }
}

void Routes::count_bytes() {
  for (std::size_t i = 0; i < route_of_.size(); ++i) {
    if (route_of_[i] != local) list_[route_of_[i]].carried += operations_.list[i].bytes;
  }
  link_bytes_.resize(neighbours_.size());
  for (const Route& route : list_) {
    for (const Usage& usage : route.usages) {
      const Int128 share = Int128{route.carried.value} * usage.weight;
      link_bytes_[usage.resource].value += static_cast<std::int64_t>(share / Usage::one);
    }
  }
}

std::vector<char> Routes::binding_links(const std::vector<Bandwidth>& capacities) const {
  std::vector<char> binds(neighbours_.size(), 0);
  std::vector<std::uint32_t> order;
  for (std::uint32_t l = 0; l < neighbours_.size(); ++l) {
    const Neighbours& around = neighbours_[l];
    if (around.before.empty() && around.after.empty() && !around.open_before) continue;  // not used
    binds[l] = 1;
    order.push_back(l);
  }
  // The widest first, so that narrow ports stay. A link is dropped only for links that are kept at that
  // moment; if those are dropped later, the links that justify it cover this one as well.
  std::stable_sort(order.begin(), order.end(),
                   [&capacities](std::uint32_t a, std::uint32_t b) { return capacities[a] > capacities[b]; });
  for (const std::uint32_t link : order) {
    const auto covers = [&](const std::vector<std::uint32_t>& others) {
      Bandwidth sum;
      for (const std::uint32_t other : others) {
        if (binds[other] == 0) return false;
        sum += capacities[other];
      }
      return sum <= capacities[link];
    };
    const Neighbours& around = neighbours_[link];
    const bool redundant =
        (!around.open_before && covers(around.before)) || (!around.open_after && covers(around.after));
    if (redundant) binds[link] = 0;
  }
  return binds;
}

}  // namespace isthmus::sim

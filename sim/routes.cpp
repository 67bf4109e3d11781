#include "sim/routes.hpp"

#include <algorithm>
#include <numeric>

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

/// The GPUs of a domain in the order in which a channel visits them: from member number `channel` on; in the
/// domain of a broadcast's root the root comes first whatever the channel.
std::vector<GpuId> channel_chain(const std::vector<GpuId>& gpus, std::size_t channel, bool from_root) {
  std::vector<GpuId> chain = gpus;
  const auto first = chain.begin() + (from_root ? 1 : 0);
  const auto count = static_cast<std::size_t>(chain.end() - first);
  if (count > 1) std::rotate(first, first + static_cast<std::ptrdiff_t>(channel % count), chain.end());
  return chain;
}

}  // namespace

Routes::Routes(const Refit& refit, const Operations& operations)
    : refit_(refit),
      operations_(operations),
      pair_index_(refit.fabric.gpu_count()),
      neighbours_(refit.fabric.links().size()) {
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

void Routes::add_share(std::map<std::uint32_t, std::uint64_t>& shares, const std::vector<LinkId>& links,
                       std::uint64_t share) {
  for (const LinkId link : links) shares[link.value] += share;
  note(links);
}

std::uint32_t Routes::collective_route(const Operation& operation) {
  const std::vector<Rank>& members = operations_.members[operation.members];
  const std::vector<std::uint32_t> key{static_cast<std::uint32_t>(operation.kind), operation.source.value,
                                       operation.members};
  const auto known = collective_index_.find(key);
  if (known != collective_index_.end()) return known->second;
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
  std::map<std::uint32_t, std::uint64_t> shares;
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t d = 0; d < domains.size(); ++d) {
      const std::vector<GpuId>& here = domains[d].gpus;
      const std::vector<GpuId> chain =
          channel_chain(here, c, operation.kind == StepKind::broadcast && d == 0);
      for (std::size_t m = 0; m + 1 < chain.size(); ++m) {
        add_share(shares, refit_.fabric.route(chain[m], chain[m + 1]), share);
      }
      if (d + 1 == domains.size() && !ring) continue;
      const std::vector<GpuId>& next = domains[(d + 1) % domains.size()].gpus;
      const GpuId exit = domains.size() == 1 ? chain.back() : here[c % here.size()];
      add_share(shares, refit_.fabric.route(exit, next[c % next.size()]), share);
    }
  }
  const auto index = static_cast<std::uint32_t>(shares.empty() ? local : list_.size());
  collective_index_.emplace(key, index);
  if (shares.empty()) return local;
  Route route;
  for (const auto& [link, sum] : shares) route.usages.push_back({link, static_cast<std::uint32_t>(sum)});
  route.leaves_domain = domains.size() > 1;
  route.collective = true;
  list_.push_back(std::move(route));
  return index;
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

#include "model/m2n_rules.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace isthmus {
namespace {

constexpr std::int64_t fast_path_ranks = 64, fast_path_sources = 32, fast_path_targets = 64;
constexpr std::int64_t most_injected_replicas = 4;  // on large communicators

/// The group of `position` when `count` things form `groups` consecutive groups, the larger ones first.
std::int64_t balanced_group(std::int64_t position, std::int64_t count, std::int64_t groups) {
  const std::int64_t quotient = count / groups, rest = count % groups;
  const std::int64_t larger = rest * (quotient + 1);
  return position < larger ? position / (quotient + 1) : rest + (position - larger) / quotient;
}

/// The first of the things that form group `group`.
std::int64_t first_of_group(std::int64_t group, std::int64_t count, std::int64_t groups) {
  return group * (count / groups) + std::min(group, count % groups);
}

/// Where M2N puts everything itself inside one NVLink domain, and no communicator is split.
bool takes_fast_path(const M2nTask& task) {
  return task.one_domain && task.source.start < task.target.start &&
         task.communicator_ranks <= fast_path_ranks && task.source.shards <= fast_path_sources &&
         task.target.shards <= fast_path_targets;
}

/// Two phases: the first `injected` domains are fed by sources, the others by chains.
struct SplitDomains {
  std::int64_t domains = 0, per_replica = 1, injected = 0;
  bool strided() const { return injected < domains; }
};

/// nullopt where the domains do not suit the replicas.
std::optional<SplitDomains> split_domains(const M2nTask& task) {
  const M2nSide& target = task.target;
  const std::int64_t size = std::min(task.domain_size, target.ranks());
  SplitDomains split{(target.ranks() + size - 1) / size, 1, 0};
  if (target.shards > 1 && target.replicas > 1 && target.replica_stride == 1) {
    split.per_replica = split.domains;
  } else if (split.domains >= target.replicas) {
    if (split.domains % target.replicas != 0) return std::nullopt;
    split.per_replica = split.domains / target.replicas;
  }
  std::int64_t replicas = std::min(task.source.replicas, target.replicas);
  if (task.communicator_ranks > m2n_large_communicator)
    replicas = split.per_replica > 1 ? 1 : std::min(replicas, most_injected_replicas);
  split.injected = std::min(replicas * split.per_replica, split.domains);
  return split;
}

std::int64_t uniform_feeder(std::int64_t replica, std::int64_t sources, std::int64_t targets) {
  return sources > targets ? first_of_group(replica, sources, targets)
                           : balanced_group(replica, targets, sources);
}

void set_feeders(const M2nTask& task, const SplitDomains& split, M2nMapping& mapping) {
  const M2nSide& target = task.target;
  const std::int64_t sources = task.source.replicas;
  const std::int64_t first = mapping.domain(target.rank(0, 0));
  const std::int64_t domains = mapping.domain(target.rank(0, target.replicas - 1)) - first + 1;
  const bool strided = mapping.split && split.strided();
  for (std::int64_t replica = 0; replica < target.replicas; ++replica) {
    const std::int64_t offset = mapping.domain(target.rank(0, replica)) - first;
    if (mapping.balance == M2nBalance::uniform) {
      mapping.feeder.push_back(uniform_feeder(replica, sources, target.replicas));
    } else if (strided) {
      mapping.feeder.push_back((offset / split.per_replica) %
                               std::max<std::int64_t>(1, split.injected / split.per_replica));
    } else {
      mapping.feeder.push_back(sources >= domains ? offset : balanced_group(offset, domains, sources));
    }
  }
}

/// `may_split`: false once a chain was found to need what split communicators lack.
M2nMapping map_replicas(const M2nTask& task, const M2nChoice& choice, bool may_split) {
  M2nMapping mapping;
  mapping.balance = choice.balance;
  mapping.domain_size = task.domain_size;
  const bool wanted = choice.balance == M2nBalance::node_aware && choice.spec.plan == M2nPlan::ring &&
                      (choice.spec.split == M2nSplit::on ||
                       (choice.spec.split == M2nSplit::automatic && !takes_fast_path(task)));
  const bool broadcast = task.source.shards == 1 && task.target.shards == 1;
  if (broadcast && task.communicator_ranks <= m2n_large_communicator) {
    if (wanted) mapping.given_up = "a broadcast is balanced uniformly, on one communicator";
    mapping.balance = M2nBalance::uniform;
  }
  SplitDomains domains;
  if (wanted && mapping.given_up.empty()) {
    const std::optional<SplitDomains> split = split_domains(task);
    if (!split) {
      mapping.given_up = "the number of target domains is no multiple of the number of replicas";
    } else if (!may_split) {
      mapping.given_up = "a step of a chain would join two rails";
    } else {
      domains = *split;
      mapping.split = true;
      mapping.anchor = task.target.start;
      mapping.domain_size = std::min(task.domain_size, task.target.ranks());
    }
  }
  set_feeders(task, domains, mapping);
  return mapping;
}

/// Target replicas that one source replica feeds with one shard, by domain in the order of the chain.
std::vector<std::vector<std::int64_t>> chain_of(const M2nTask& task, const M2nMapping& mapping,
                                                std::int64_t source_replica, std::int64_t target_shard) {
  std::vector<std::vector<std::int64_t>> chain;
  std::int64_t last = -1;
  for (std::int64_t replica = 0; replica < task.target.replicas; ++replica) {
    if (mapping.feeder[to_size(replica)] != source_replica) continue;
    const std::int64_t domain = mapping.domain(task.target.rank(target_shard, replica));
    if (domain != last) chain.emplace_back();
    last = domain;
    chain.back().push_back(replica);
  }
  return chain;
}

class Deciding {
 public:
  Deciding(const M2nTask& task, M2nMapping mapping) : task_(task) {
    decision_.mapping = std::move(mapping);
    for (const Region& target : task.target.regions) {
      std::vector<std::int64_t>& list = sources_.emplace_back();
      for (std::int64_t s = 0; s < task.source.shards; ++s)
        if (!intersect(task.source.regions[to_size(s)], target).empty()) list.push_back(s);
    }
  }

  M2nDecision ring() {
    for (std::int64_t replica = 0; replica < task_.source.replicas; ++replica) {
      for (std::int64_t d = 0; d < task_.target.shards; ++d) {
        const auto chain = chain_of(task_, decision_.mapping, replica, d);
        if (!chain.empty()) follow(chain, replica, d);
      }
    }
    return std::move(decision_);
  }

  M2nDecision direct() {
    const std::vector<std::int64_t>& feeder = decision_.mapping.feeder;
    for (std::int64_t d = 0; d < task_.target.shards; ++d) {
      for (const std::int64_t s : sources_[to_size(d)]) {
        for (std::int64_t replica = 0; replica < task_.target.replicas; ++replica) {
          M2nTransfer transfer{.sender = task_.source.rank(s, feeder[to_size(replica)]),
                               .receivers = {task_.target.rank(d, replica)},
                               .source_shard = s,
                               .target_shard = d};
          decision_.transfers.push_back(std::move(transfer));
        }
      }
    }
    return std::move(decision_);
  }

 private:
  /// All overlaps of one target shard along one chain.
  void follow(const std::vector<std::vector<std::int64_t>>& chain, std::int64_t replica, std::int64_t d) {
    const std::vector<std::int64_t>& sources = sources_[to_size(d)];
    const auto count = static_cast<std::int64_t>(sources.size());
    const auto slots = static_cast<std::int64_t>(chain.front().size());
    for (std::int64_t p = 0; p < count; ++p) {
      std::int64_t slot = balanced_group(p, count, slots);
      M2nTransfer transfer;
      transfer.source_shard = sources[to_size(p)];
      transfer.target_shard = d;
      transfer.chain_length = static_cast<std::uint32_t>(chain.size());
      transfer.piece = static_cast<std::uint32_t>(p - first_of_group(slot, count, slots));
      transfer.pieces = static_cast<std::uint32_t>(first_of_group(slot + 1, count, slots) -
                                                   first_of_group(slot, count, slots));
      std::int64_t sender = task_.source.rank(transfer.source_shard, replica);
      auto active = slots;
      for (std::uint32_t hop = 0; hop < chain.size(); ++hop) {
        active = std::min(active, static_cast<std::int64_t>(chain[hop].size()));
        slot = std::min(slot, active - 1);
        const std::int64_t leader = task_.target.rank(d, chain[hop][to_size(slot)]);
        transfer.phase = hop == 0 ? M2nPhase::inject : M2nPhase::chain;
        transfer.hop = hop == 0 ? 0 : hop - 1;
        add(transfer, sender, {leader});
        transfer.phase = M2nPhase::fanout;
        transfer.hop = hop;
        add(transfer, leader, followers(chain[hop], slot, d));
        sender = leader;
      }
    }
  }

  std::vector<std::int64_t> followers(const std::vector<std::int64_t>& replicas, std::int64_t slot,
                                      std::int64_t d) const {
    std::vector<std::int64_t> ranks;
    for (std::size_t r = 0; r < replicas.size(); ++r)
      if (r != to_size(slot)) ranks.push_back(task_.target.rank(d, replicas[r]));
    return ranks;
  }

  void add(M2nTransfer transfer, std::int64_t sender, std::vector<std::int64_t> receivers) {
    if (receivers.empty()) return;
    transfer.sender = sender;
    transfer.receivers = std::move(receivers);
    decision_.transfers.push_back(std::move(transfer));
  }

  const M2nTask& task_;
  M2nDecision decision_;
  std::vector<std::vector<std::int64_t>> sources_;  // by target shard: the source shards that it meets
};

/// Split communicators connect equal positions of their domains only.
bool joins_rails(const M2nDecision& decision) {
  const M2nMapping& mapping = decision.mapping;
  const auto rail = [&](std::int64_t rank) { return (rank - mapping.anchor) % mapping.domain_size; };
  return std::any_of(decision.transfers.begin(), decision.transfers.end(), [&](const M2nTransfer& transfer) {
    return transfer.phase == M2nPhase::chain && rail(transfer.sender) != rail(transfer.receivers.front());
  });
}

}  // namespace

std::string_view to_string(M2nBalance balance) {
  return balance == M2nBalance::uniform ? "uniform" : "node-aware";
}

M2nSide m2n_side(const Layout& layout, std::int64_t start) {
  const auto size = static_cast<std::int64_t>(layout.mesh.size());
  M2nSide side{start, 1, size, size, 1, {}};
  for (std::size_t axis = 0; axis < layout.placements.size(); ++axis) {
    if (layout.placements[axis] == Placement{}) continue;
    const std::int64_t inner = layout.mesh.shape.size() == 2 ? layout.mesh.shape[1] : 1;
    side.shards = layout.mesh.shape[axis];
    side.replicas = size / side.shards;
    side.shard_stride = axis == 0 ? inner : 1;
    side.replica_stride = axis == 0 ? 1 : inner;
  }
  for (std::int64_t s = 0; s < side.shards; ++s)
    side.regions.push_back(layout.region(to_size(s * side.shard_stride)));
  return side;
}

M2nTask m2n_task(const Refit& refit, const RefitEntry& entry) {
  const Geometry& geometry = refit.geometries[entry.geometry];
  const bool bare = refit.train_ranks == 0;
  const std::size_t stage_ranks = bare ? 0 : refit.train_ranks / to_size(refit.stages);
  std::vector<Rank> communicator;
  for (std::uint32_t r = 0; r < stage_ranks; ++r) communicator.push_back({entry.source_base.value + r});
  for (std::size_t r = refit.train_ranks; r < refit.members(); ++r)
    communicator.push_back({static_cast<std::uint32_t>(r)});
  std::map<DomainId, std::int64_t> ranks_in;
  for (const Rank rank : communicator) ++ranks_in[refit.fabric.domain_of(refit.gpu(rank))];
  M2nTask task;
  task.communicator_ranks = static_cast<std::int64_t>(communicator.size());
  task.one_domain = ranks_in.size() == 1;
  task.domain_size = 1;
  for (const Rank local : geometry.target.mesh.ranks) {
    const DomainId domain = refit.fabric.domain_of(refit.gpu({entry.target_base.value + local.value}));
    task.domain_size = std::max(task.domain_size, ranks_in[domain]);
  }
  const std::int64_t source_start = bare ? entry.source_base.value : 0;
  const auto target_start = static_cast<std::int64_t>(
      bare ? entry.target_base.index() : stage_ranks + entry.target_base.index() - refit.train_ranks);
  task.source = m2n_side(geometry.source, source_start + geometry.source.mesh.ranks.front().value);
  task.target = m2n_side(geometry.target, target_start + geometry.target.mesh.ranks.front().value);
  return task;
}

M2nDecision m2n_decide(const M2nTask& task, const M2nChoice& choice) {
  M2nMapping mapping = map_replicas(task, choice, true);
  if (choice.spec.plan == M2nPlan::direct) return Deciding(task, std::move(mapping)).direct();
  M2nDecision decision = Deciding(task, std::move(mapping)).ring();
  if (!decision.mapping.split || !joins_rails(decision)) return decision;
  return Deciding(task, map_replicas(task, choice, false)).ring();
}

}  // namespace isthmus

#pragma once
// How NCCL M2N maps one tensor onto transfers, as arithmetic over ranks of one communicator: which source
// replica feeds which target replica, which target ranks lead, how overlaps travel on to further domains.
// An overlap (s, d) is what source shard s and target shard d have in common. Domains are blocks of
// `domain_size` communicator ranks counted from `anchor`: rank 0, or the target's first rank once the
// communicator is split. Blocks that the fabric does not have are part of the rules.
//   ring    per source replica and target shard: the first domain's replicas (slots) take balanced shares of
//           the overlaps, each passes its own on to the other replicas of its domain (fanout) and to one of
//           the chain's next domain; slots that a smaller domain lost stay on its last slot
//   direct  every overlap to every replica of the target
// Invariant: each target replica gets each of its overlaps exactly once. Source: NVIDIA/nccl-extensions at
// 44d2de0 (limits: model/m2n_limits.hpp).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

/// Communicators above this size balance node-aware whatever the tensor, and split ones inject few replicas.
inline constexpr std::int64_t m2n_large_communicator = 200;

enum class M2nBalance : std::uint8_t { uniform, node_aware };
std::string_view to_string(M2nBalance balance);

/// One side: a mesh of shards x replicas over an interval of communicator ranks.
struct M2nSide {
  std::int64_t start = 0;
  std::int64_t shards = 1, replicas = 1;
  std::int64_t shard_stride = 1, replica_stride = 1;
  std::vector<Region> regions;  // by shard

  std::int64_t ranks() const { return shards * replicas; }
  std::int64_t rank(std::int64_t shard, std::int64_t replica) const {
    return start + shard * shard_stride + replica * replica_stride;
  }
};

struct M2nTask {
  M2nSide source, target;
  std::int64_t domain_size = 8;
  std::int64_t communicator_ranks = 0;
  bool one_domain = false;  // all of them share one NVLink domain
};

/// Requires at most two mesh axes, at most one of them sharded.
M2nSide m2n_side(const Layout& layout, std::int64_t start);
/// The communicator: of whole refits the stage's training ranks, then all generation ranks; of bare tensors
/// all ranks. domain_size: the most of its ranks that share an NVLink domain with a target.
M2nTask m2n_task(const Refit& refit, const RefitEntry& entry);

struct M2nChoice {
  M2nBalance balance = M2nBalance::node_aware;
  M2nSpec spec{};
};

struct M2nMapping {
  M2nBalance balance = M2nBalance::uniform;  // in force
  bool split = false;
  std::string given_up;  // why split communicators were asked for and are not used
  std::int64_t anchor = 0, domain_size = 1;
  std::vector<std::int64_t> feeder;  // by target replica: its source replica

  std::int64_t domain(std::int64_t rank) const { return (rank - anchor) / domain_size; }
};

enum class M2nPhase : std::uint8_t { inject, chain, fanout };

struct M2nTransfer {
  M2nPhase phase = M2nPhase::inject;
  std::int64_t sender = 0;
  std::vector<std::int64_t> receivers;  // fanout: every follower, else one rank
  std::int64_t source_shard = 0, target_shard = 0;
  std::uint32_t hop = 0;                // domains of the chain before the sender's
  std::uint32_t chain_length = 1;       // domains of the chain
  std::uint32_t piece = 0, pieces = 1;  // place among the overlaps that its first leader got
};

struct M2nDecision {
  M2nMapping mapping;
  std::vector<M2nTransfer> transfers;  // each after the one that brings its data
};

M2nDecision m2n_decide(const M2nTask& task, const M2nChoice& choice);

}  // namespace isthmus

#pragma once
// In which order NCCL meets its peers in a group of sends and receives, and on which channels. Ranks stand
// domain after domain, local rank after local rank, in groups of G; a position is group x G + place in it.
//   round: for i = 0, 1, ... with delta = 0, 1, 3, 6, ... mod the power of two >= the groups:
//          if delta < groups, for d = 0 ... G - 1: send to place + d of group + delta, receive from
//          place - d of group - delta
//   base channel of round r: the bits of (several domains: r div G x ceil(G / 8) + r mod G div 8, else r)
//          reversed within log2 T bits; part p of an op takes channel base + p mod T
// Invariant: every round is a permutation of the ranks; all rounds together hold every pair once; round 0 is
// a rank with itself. Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <span>
#include <vector>

#include "model/topology/nccl_settings.hpp"

namespace isthmus {

/// G, from the ranks of each domain.
std::uint32_t schedule_group(std::span<const std::uint32_t> ranks_per_domain,
                             const NcclSettings& settings = {});

/// The order in which groups are met: 0, 1, 3, 2 for four.
std::vector<std::uint32_t> group_deltas(std::uint32_t groups);

struct NcclRound {
  std::uint32_t send_to = 0, receive_from = 0;  // positions
  friend bool operator==(const NcclRound&, const NcclRound&) = default;
};

/// All rounds of one position. Requires ranks to be a multiple of `group`.
std::vector<NcclRound> peer_rounds(std::uint32_t position, std::uint32_t ranks, std::uint32_t group);

struct NcclChannelRule {
  std::uint32_t total_channels = 16;  // T, a power of two
  std::uint32_t group = 8;            // G
  std::uint32_t domains = 1;
};

std::uint32_t base_channel(std::uint32_t round, const NcclChannelRule& rule);
std::uint32_t part_channel(std::uint32_t base, std::uint32_t part, const NcclChannelRule& rule);

}  // namespace isthmus

#pragma once
// The steps of one tensor under `balanced`. Every cell (bytes with one set of holders and one of receivers)
// enters each NVLink domain of its receivers once, cut into equally many parts for each receiver (small cells
// for fewer receivers); each receiver passes its parts on to the others over NVLink. At most `heads` domains
// are fed by the holders, the others by a domain before them in a chain, or in one of two binary trees that
// take turns from part to part. A domain that has a holder is fed from inside. Load shares: parts of one
// source shard go to its holders in turn, to receivers on the holder's rail first; parts start at another
// receiver for each cell.

#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"
#include "planner/shards.hpp"

namespace isthmus {

inline constexpr std::uint16_t network_lane = 0, nvlink_lane = 1;

struct BalancedSituation {
  Rank source_base, target_base;
  std::uint32_t heads = 1;     // most domains that one cell is sent to by its holders
  std::uint32_t rotation = 0;  // where holders, receivers and chains start
  Bytes unit{1};               // cells are cut into parts of at most half of it for each receiver
  bool trees = false;          // two binary trees below each head in place of longer chains
};

/// Whether chains below the heads would be longer than two domains, the least for which trees are shorter.
bool needs_trees(std::size_t domains, std::size_t heads);

/// `cells` are those of the geometry.
Pattern balanced_pattern(const Refit& refit, const Geometry& geometry, const Cells& cells,
                         const BalancedSituation& situation);

struct EntryTraits {
  /// Domains that receive cells and hold none of it, at most over the cells: the n of the chain rule.
  std::uint32_t domains = 0;
  /// Whether tensors of the geometry should start at different holders and receivers to spread the load.
  bool rotation_helps = false;
};

EntryTraits entry_traits(const Refit& refit, const Geometry& geometry, const Cells& cells, Rank source_base,
                         Rank target_base);

}  // namespace isthmus

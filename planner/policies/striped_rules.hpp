#pragma once
// Who sends what to whom under NeMo RL's two reshard transports: values, no steps yet.
//   exact    each overlap of a source box with a target box goes once, to the representative of the ranks
//            that hold the target box (their group): from itself where it holds the source box, else from the
//            first holder. The representative then broadcasts the box to its group.
//   striped  a group's box is cut along dimension 0 into one stripe per member. Each overlap of a source box
//            with a stripe goes to that member: from itself, else from the source box's holders in turn, for
//            every tensor from the first one on. The group then gathers its box.
// Striped is taken where some group has two members, the boxes of all such groups divide into stripes, and no
// transfer is strided on both sides; else the whole tensor goes by exact. Boxes follow the layouts' own chunk
// rules (NeMo RL's is ceil), empty ones take no part. Source: NeMo RL 7ea279ab.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/shards.hpp"

namespace isthmus {

struct ReshardTransfer {
  std::uint32_t sender = 0, receiver = 0;  // local ranks of the source and of the target
  Region box;
  bool local = false;   // sender and receiver are one rank
  bool packed = false;  // strided in the sender's box, so sent from a dense temporary
  bool staged = false;  // strided in the receiver's box, so received into one
};

enum class ReshardPath : std::uint8_t { striped, no_replicas, stripes_uneven, strided_twice };

struct ReshardRules {
  ReshardPath path = ReshardPath::striped;  // or why it is exact
  std::vector<Shard> groups;                // target boxes; members in exchange order, representative first
  std::vector<ReshardTransfer> transfers;   // by sender, receiver, box
  bool striped() const { return path == ReshardPath::striped; }
};

/// Striped where it applies, else exact.
ReshardRules striped_rules(const Geometry& geometry, Rank source_base, Rank target_base);
/// The exact transfers, whether or not striped applies.
std::vector<ReshardTransfer> exact_transfers(const Geometry& geometry, Rank source_base, Rank target_base);

/// Whether `part` is one run of `box` laid out row-major. Requires that the box contains it.
bool contiguous(const Region& part, const Region& box);

}  // namespace isthmus

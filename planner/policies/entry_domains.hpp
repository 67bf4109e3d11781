#pragma once
// The NVLink domains that a cell has to enter: those of its receivers that do not hold it already, each with
// its receivers and with the holders inside it, in order of first appearance. Where no holder of the tensor
// shares a domain with a receiver, they follow from the target shard alone and are found once for each.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/shards.hpp"

namespace isthmus {

/// A domain's receivers of one cell, and the cell's holders that sit in the domain.
struct EntryDomain {
  DomainId domain;
  std::vector<std::uint32_t> receivers;  // local target ranks
  std::vector<std::uint32_t> holders;    // local source ranks inside the domain
};

class EntryDomains {
 public:
  /// Keeps references to both.
  EntryDomains(const Refit& refit, const Cells& cells, Rank source_base, Rank target_base);

  /// Valid until the next call.
  const std::vector<EntryDomain>& of(const Cell& cell);

 private:
  std::vector<EntryDomain> find(const Cell& cell) const;
  DomainId domain(std::uint32_t rank) const { return refit_.fabric.domain_of(refit_.gpu(Rank{rank})); }

  const Refit& refit_;
  const Cells& cells_;
  Rank source_base_, target_base_;
  bool meet_ = false;                                // some holder shares a domain with a receiver
  std::vector<std::vector<EntryDomain>> of_target_;  // by target shard
};

/// The rail of a GPU: the leaf that its NIC is plugged into. So all GPUs below one switch are on one rail,
/// and no GPUs of two units are, since their bytes cross a spine in any case.
std::uint32_t rail_of(const Fabric& fabric, GpuId gpu);

/// Whether it costs anything to change rails: uplinks together carry less than NICs do, or there are none.
/// Then holders on a receiver's rail come first; otherwise that only makes rounds less even.
bool spines_bind(const Fabric& fabric);

}  // namespace isthmus

#pragma once
// Links and routes of the switches above the NICs. A route climbs from the one leaf to the lowest switches
// that both leaves reach upwards, and descends; shortest, and never down and up again, as in any Clos fabric.
// Adaptive (InfiniBand): packets spread over all wires, so that a *pool* of switches - one leaf; the leaves
// and spines that hang together (a pod); and so on upwards - has one link up and one down, the sum of its
// cables to higher tiers. Hashed (Ethernet): every wire is a link of its own, and a pair of GPUs keeps to one
// wire of each stage, chosen by a hash of (seed, pair).
// Invariants: links are numbered pool by pool (tier, then order), up before down; hashed, cable by cable and
// wire by wire. Switches that share no ancestor are unreachable, never slow.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/fabric.hpp"
#include "model/topology/topology.hpp"

namespace isthmus {

class NetworkRoutes {
 public:
  NetworkRoutes(const Network& network, const Routing& routing);

  const std::vector<Link>& links() const { return links_; }
  /// Links from a switch that NICs hang on to another, counted from this network's first; nullopt where no
  /// way leads. `pair` tells pairs of GPUs apart for the hash.
  std::optional<std::vector<std::uint32_t>> route(std::uint32_t from, std::uint32_t to,
                                                  std::uint64_t pair) const;
  /// Switches on the way: 1 below one leaf, 3 over a spine; nullopt as above.
  std::optional<int> hops(std::uint32_t from, std::uint32_t to) const;
  /// The link of a cable's first wire, up; down follows behind it. Pooled cables share theirs.
  std::uint32_t cable_link(std::uint32_t cable) const { return link_of_cable_[cable]; }

 private:
  struct Up {  // a cable as its lower switch sees it
    std::uint32_t to = 0, cable = 0;
  };
  struct Pool {
    std::uint32_t tier = 0;
    std::optional<std::uint32_t> up;  // its link; down stands behind
  };

  void find_ancestors();
  void find_pools();
  void add_pool_links(std::size_t tier, const std::vector<std::uint32_t>& pool_of, std::uint32_t pools);
  void add_wire_links();
  /// The lowest tier at which both have a common ancestor.
  std::optional<std::uint32_t> meeting_tier(std::uint32_t from, std::uint32_t to) const;
  std::vector<std::uint32_t> meeting_switches(std::uint32_t from, std::uint32_t to, std::uint32_t tier) const;
  void climb(std::uint32_t from, std::uint32_t to, std::uint64_t hash, bool down,
             std::vector<std::uint32_t>& links) const;
  bool reaches(std::uint32_t from, std::uint32_t to) const;

  const Network& network_;
  bool hashed_;
  std::uint64_t seed_;
  std::vector<Link> links_;
  std::vector<std::vector<Up>> up_;                    // per switch
  std::vector<std::uint32_t> class_of_;                // per switch: those with equal ancestors share one
  std::vector<std::vector<std::uint32_t>> ancestors_;  // per class, itself left out, sorted
  std::vector<std::vector<std::uint8_t>> tier_of_classes_;  // [class][class]: meeting tier, or none
  std::vector<std::vector<Pool>> pools_;                    // per switch: its pools, lowest first
  std::vector<std::uint32_t> link_of_cable_;
};

}  // namespace isthmus

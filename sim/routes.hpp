#pragma once
// The routes that the operations of a plan use, each once: GPU pairs of sends, and channel bundles of
// collectives. A collective runs as C channels side by side, C = the most members that one of its NVLink
// domains has. Channel j goes from domain to domain (order of first appearance, root's domain first) through
// member j mod m of each, and inside a domain along all its m members, in the root's domain from the root. So
// it is one flow whose links carry shares of its rate. An all-gather of n members closes the ring and sends
// (n-1)/n of its bytes along every hop. Invariant: shares are rounded up, so a collective never beats its
// links.

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "sim/fluid.hpp"

namespace isthmus::sim {

class Routes {
 public:
  static constexpr std::uint32_t local = 0xFFFFFFFF;  // both ends on one GPU

  Routes(const Refit& refit, const Operations& operations);

  std::size_t size() const { return list_.size(); }
  /// Those before detours were added.
  std::size_t planned() const { return planned_; }
  /// Adds the route that an operation takes while these links (by link) are down, with a way around them for
  /// each of its hops (sim/detour.hpp); `local` where there is none.
  std::uint32_t add_detour(const Operation& operation, const std::vector<char>& down);
  std::uint32_t of(const Operation& operation) const;
  /// Links with the share of the route's rate that they carry; resource = link number.
  const std::vector<Usage>& usages(std::uint32_t route) const { return list_[route].usages; }
  bool leaves_domain(std::uint32_t route) const { return list_[route].leaves_domain; }
  bool collective(std::uint32_t route) const { return list_[route].collective; }
  /// Bytes that all operations together move along it.
  Bytes bytes(std::uint32_t route) const { return list_[route].carried; }

  /// Bytes that each link carries in all.
  const std::vector<Bytes>& link_bytes() const { return link_bytes_; }
  /// For each link, whether it is used and can bind when links have these capacities.
  std::vector<char> binding_links(const std::vector<Bandwidth>& capacities) const;

 private:
  struct Route {
    std::vector<Usage> usages;
    bool leaves_domain = false;
    bool collective = false;
    Bytes carried;
  };
  /// Distinct links before and after a link on any route; open: a route starts or ends there.
  struct Neighbours {
    std::vector<std::uint32_t> before, after;
    bool open_before = false, open_after = false;
  };

  std::uint32_t pair_route(GpuId from, GpuId to);
  std::uint32_t collective_route(const Operation& operation);
  /// Adds a route of the shares of a collective's hops; `local` where it has none.
  std::uint32_t add_collective(const Operation& operation);
  const std::vector<LinkId>* hop(GpuId from, GpuId to);
  void add_share(GpuId from, GpuId to, std::uint64_t share);
  void sort_shared();
  void note(const std::vector<LinkId>& links);
  void count_bytes();

  const Refit& refit_;
  const Operations& operations_;
  std::vector<Route> list_;
  std::vector<std::vector<std::uint32_t>> pair_index_;                    // by source GPU, then target GPU
  std::map<std::vector<std::uint32_t>, std::uint32_t> collective_index_;  // (kind, root, members) -> route
  std::vector<std::uint32_t> route_of_;                                   // per operation
  std::vector<Neighbours> neighbours_;
  std::unordered_map<std::uint64_t, std::vector<LinkId>> hops_;  // of collectives, by GPU pair
  std::unordered_map<std::uint64_t, std::optional<std::vector<LinkId>>> ways_around_;  // likewise
  std::vector<char> avoided_;                                                          // what these avoid
  const std::vector<char>* down_ = nullptr;  // where a detour is sought
  bool blocked_ = false;                     // some hop has no way
  std::size_t planned_ = 0;
  std::vector<std::uint64_t> shares_;  // of the collective at hand, by link
  std::vector<std::uint32_t> shared_;  // links with a share
  std::vector<Bytes> link_bytes_;
};

}  // namespace isthmus::sim

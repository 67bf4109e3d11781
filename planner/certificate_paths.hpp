#pragma once
// Internal to planner/certificate*.cpp: shortest paths between GPUs at given prices of links, in integers. A
// path goes from GPU to GPU by whole routes of the fabric; its length is the sum of the prices of all links
// on the way.
// Invariant: a distance is exact, or `beyond` where no path leads.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/certificate.hpp"
#include "planner/certificate_classes.hpp"

namespace isthmus {

class PricedPaths {
 public:
  static constexpr std::int64_t beyond = std::int64_t{1} << 60;

  /// Between these GPUs; only links with a price are kept of a route.
  PricedPaths(const Fabric& fabric, const GpuList& gpus, const std::vector<LinkPrice>& prices);

  /// GPUs between which everything is free are one vertex. Call before distance().
  void solve();
  /// From the nearest of the holders.
  std::int64_t distance(const GpuList& holders, std::uint32_t receiver) const;
  /// The same at other prices of the same links, of which a part may be free.
  std::int64_t distance(const GpuList& holders, std::uint32_t receiver,
                        const std::vector<LinkPrice>& prices) const;
  std::size_t vertices() const { return vertex_count_; }

 private:
  using Row = std::vector<std::uint32_t>;  // numbers of priced links
  static constexpr std::uint32_t no_row = 0xFFFFFFFF;

  GpuList gpus_;
  std::vector<std::uint32_t> position_;  // per GPU of the fabric
  std::vector<LinkPrice> prices_;
  std::vector<Row> rows_;              // distinct
  std::vector<std::uint32_t> row_of_;  // per pair of positions
  std::vector<std::int64_t> length_of_row_;
  std::vector<std::uint32_t> vertex_;  // per position
  std::size_t vertex_count_ = 0;
  std::vector<std::int64_t> distance_;  // per pair of vertices
};

}  // namespace isthmus

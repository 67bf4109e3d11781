#include "planner/shards.hpp"

#include <map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/refit_generator.hpp"

namespace isthmus {
namespace {

/// By definition: who holds each region that is not empty.
std::map<Region, std::vector<std::uint32_t>> holders_of(const Layout& layout) {
  std::map<Region, std::vector<std::uint32_t>> holders;
  for (std::size_t i = 0; i < layout.mesh.size(); ++i)
    if (!layout.region(i).empty()) holders[layout.region(i)].push_back(layout.mesh.ranks[i].value);
  return holders;
}

RC_GTEST_PROP(Cells, are_all_overlaps_of_source_and_target_shards_once_in_order, ()) {
  const Refit refit = test::make_refit(*test::refit_cases());
  for (const Geometry& geometry : refit.geometries) {
    const Cells cells = cells_of(geometry);
    std::vector<Region> expected, found;
    for (const Shard& target : cells.targets)
      for (const Shard& source : cells.sources)
        if (const Region both = intersect(source.region, target.region); !both.empty())
          expected.push_back(both);
    for (const Cell cell : cells.list) {
      found.push_back(cells.region(cell));
      RC_ASSERT(found.back() ==
                intersect(cells.sources[cell.source].region, cells.targets[cell.target].region));
    }
    RC_ASSERT(found == expected);
  }
}

RC_GTEST_PROP(Shards, are_the_distinct_regions_with_all_their_holders, ()) {
  const Refit refit = test::make_refit(*test::refit_cases());
  for (const Geometry& geometry : refit.geometries) {
    for (const Layout* layout : {&geometry.source, &geometry.target}) {
      std::map<Region, std::vector<std::uint32_t>> found;
      const std::vector<Shard> shards = distinct_shards(*layout);
      for (const Shard& shard : shards) found[shard.region] = shard.holders;
      RC_ASSERT(found.size() == shards.size());
      RC_ASSERT(found == holders_of(*layout));
    }
  }
}

}  // namespace
}  // namespace isthmus

#include "model/fabric_paths.hpp"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

constexpr std::uint32_t vertex_count = 8;

std::vector<Arc> any_arcs() {
  std::vector<Arc> arcs;
  for (int count = *rc::gen::inRange(0, 30); count > 0; --count) {
    arcs.push_back({*rc::gen::inRange(0u, vertex_count), *rc::gen::inRange(0u, vertex_count),
                    *rc::gen::inRange(1u, 4u)});
  }
  return arcs;
}

/// Relaxes every arc until nothing changes.
std::vector<std::uint32_t> distances_by_relaxation(const std::vector<Arc>& arcs, std::uint32_t source) {
  std::vector<std::uint32_t> distance(vertex_count, unreached);
  distance[source] = 0;
  for (std::uint32_t round = 0; round < vertex_count; ++round) {
    for (const Arc& arc : arcs) {
      if (distance[arc.from] == unreached) continue;
      distance[arc.to] = std::min(distance[arc.to], distance[arc.from] + arc.weight);
    }
  }
  return distance;
}

std::vector<std::uint32_t> vertices_on(const std::vector<std::uint32_t>& path, const std::vector<Arc>& arcs) {
  std::vector<std::uint32_t> vertices;
  for (const std::uint32_t arc : path) vertices.push_back(arcs[arc].from);
  return vertices;
}

RC_GTEST_PROP(FabricPaths, are_walks_as_short_as_repeated_relaxation_finds, ()) {
  const std::vector<Arc> arcs = any_arcs();
  const std::vector<std::uint32_t> sources{0, 3};
  const auto trees = shortest_paths(vertex_count, arcs, sources);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    RC_ASSERT(trees[i].distance == distances_by_relaxation(arcs, sources[i]));
    for (std::uint32_t target = 0; target < vertex_count; ++target) {
      if (trees[i].distance[target] == unreached) continue;
      std::uint32_t at = sources[i], length = 0;
      for (const std::uint32_t arc : trees[i].arcs_to(target, arcs)) {
        RC_ASSERT(arcs[arc].from == at);
        at = arcs[arc].to;
        length += arcs[arc].weight;
      }
      RC_ASSERT(at == target);
      RC_ASSERT(length == trees[i].distance[target]);
    }
  }
}

RC_GTEST_PROP(FabricPaths, do_not_depend_on_the_order_of_the_arcs, ()) {
  const std::vector<Arc> arcs = any_arcs();
  std::vector<Arc> reversed = arcs;
  std::reverse(reversed.begin(), reversed.end());
  const std::vector<std::uint32_t> sources{0};
  const auto tree = shortest_paths(vertex_count, arcs, sources)[0];
  const auto same = shortest_paths(vertex_count, reversed, sources)[0];
  for (std::uint32_t target = 0; target < vertex_count; ++target) {
    RC_ASSERT(vertices_on(tree.arcs_to(target, arcs), arcs) ==
              vertices_on(same.arcs_to(target, reversed), reversed));
  }
}

TEST(FabricPaths, tie_to_the_lower_vertex_number) {
  const std::vector<Arc> arcs{{0, 2}, {0, 1}, {2, 3}, {1, 3}};
  const std::vector<std::uint32_t> sources{0};
  const auto path = shortest_paths(4, arcs, sources)[0].arcs_to(3, arcs);
  EXPECT_EQ(path, (std::vector<std::uint32_t>{1, 3}));
}

/// The least capacity over all cuts.
std::int64_t least_cut(const std::vector<FlowArc>& arcs, std::uint32_t source, std::uint32_t target) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t set = 0; set < (1u << vertex_count); ++set) {
    if ((set >> source & 1u) == 0 || (set >> target & 1u) == 1) continue;
    std::int64_t capacity = 0;
    for (const FlowArc& arc : arcs)
      if ((set >> arc.from & 1u) == 1 && (set >> arc.to & 1u) == 0) capacity += arc.capacity;
    least = std::min(least, capacity);
  }
  return least;
}

RC_GTEST_PROP(FabricPaths, carry_as_much_as_the_least_of_all_cuts, ()) {
  std::vector<FlowArc> arcs;
  for (int count = *rc::gen::inRange(0, 30); count > 0; --count) {
    arcs.push_back({*rc::gen::inRange(0u, vertex_count), *rc::gen::inRange(0u, vertex_count),
                    *rc::gen::inRange<std::int64_t>(0, 6) * 1'000'000'000'000});
  }
  const std::uint32_t source = *rc::gen::inRange(0u, vertex_count);
  const std::uint32_t target = (source + *rc::gen::inRange(1u, vertex_count)) % vertex_count;
  RC_ASSERT(maximum_flow(vertex_count, arcs, source, target) == least_cut(arcs, source, target));
}

TEST(FabricPaths, components_are_numbered_by_their_lowest_vertex) {
  const std::vector<Arc> arcs{{5, 1}, {3, 4}};
  EXPECT_EQ(components(6, arcs), (std::vector<std::uint32_t>{0, 1, 2, 3, 3, 1}));
  EXPECT_TRUE(components(0, {}).empty());
}

}  // namespace
}  // namespace isthmus

#include "model/topology/graphviz.hpp"

#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include "tests/support/topology_generator.hpp"

namespace isthmus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// The text with quoted parts taken out; nullopt when a quote stays open.
std::optional<std::string> without_quotes(const std::string& text) {
  std::string bare;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      inside = !inside;
    } else if (!inside) {
      bare += text[i];
    }
  }
  return inside ? std::nullopt : std::optional(bare);
}

RC_GTEST_PROP(Graphviz, closes_what_it_opens_and_joins_only_vertices_that_it_draws, ()) {
  const auto bare = without_quotes(to_graphviz(*arbitrary_topology()));
  RC_ASSERT(bare.has_value());
  RC_ASSERT(std::count(bare->begin(), bare->end(), '{') == std::count(bare->begin(), bare->end(), '}'));
  std::set<std::string> drawn;
  const std::regex vertex(R"((\w+) \[shape)"), edge(R"((\w+) -- (\w+) \[label)");
  for (std::sregex_iterator at(bare->begin(), bare->end(), vertex), end; at != end; ++at)
    RC_ASSERT(drawn.insert((*at)[1]).second);
  for (std::sregex_iterator at(bare->begin(), bare->end(), edge), end; at != end; ++at)
    RC_ASSERT(drawn.count((*at)[1]) == 1u && drawn.count((*at)[2]) == 1u);
}

TEST(Graphviz, labels_edges_with_wires_and_rate) {
  const std::string text = to_graphviz(healthy_topology(2));
  EXPECT_THAT(text, HasSubstr("b0v0 -- b0v4 [label=\"NVLink\\n9 x 25 GB/s\"]"));
  EXPECT_THAT(text, HasSubstr("b1v11 -- s0 [label=\"50 GB/s\"]"));
  EXPECT_THAT(text, HasSubstr("s0 -- s4 [label=\"2 x 50 GB/s\"]"));
}

TEST(Graphviz, draws_many_equal_blocks_and_large_tiers_once) {
  const std::string text = to_graphviz(healthy_topology(100, 4, 40));
  EXPECT_THAT(text, HasSubstr("block 0, one of 100 alike"));
  EXPECT_THAT(text, Not(HasSubstr("cluster_b1 ")));
  EXPECT_THAT(text, HasSubstr("b0v11 -- s0 [label=\"100 x 50 GB/s\"]"));
  EXPECT_THAT(text, HasSubstr("tier1 [shape=component, label=\"40 x spine\"]"));
  EXPECT_THAT(text, HasSubstr("s3 -- tier1 [label=\"4000 x 50 GB/s\"]"));
}

TEST(Graphviz, shows_both_rates_of_a_wire_that_is_slower_one_way) {
  Topology topology = healthy_topology(1);
  topology.types[0].wires[0].rate = {90'000'000'000};
  EXPECT_THAT(to_graphviz(topology), HasSubstr("9 x 10 GB/s, back 9 x 25 GB/s"));
}

}  // namespace
}  // namespace isthmus

#include "model/layout.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/refit_generator.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

using test::Element;
using test::elements_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t side = 5;  // boxes lie in a cube of this side

Region box(std::vector<std::int64_t> begin, std::vector<std::int64_t> end) {
  Region region;
  region.dimensions = begin.size();
  std::copy(begin.begin(), begin.end(), region.begin.begin());
  std::copy(end.begin(), end.end(), region.end.begin());
  return region;
}

rc::Gen<Region> boxes(std::size_t dimensions) {
  return rc::gen::exec([dimensions] {
    std::vector<std::int64_t> begin, end;
    for (std::size_t d = 0; d < dimensions; ++d) {
      begin.push_back(*rc::gen::inRange<std::int64_t>(0, side));
      end.push_back(*rc::gen::inRange<std::int64_t>(begin.back(), side + 1));  // may be empty
    }
    return box(begin, end);
  });
}

rc::Gen<std::vector<Region>> several_boxes(std::size_t dimensions) {
  return rc::gen::resize(6, rc::gen::container<std::vector<Region>>(boxes(dimensions)));
}

std::size_t pick_dimensions() { return *rc::gen::inRange<std::size_t>(1, 4); }

bool has(const Region& region, const Element& element) {
  for (std::size_t d = 0; d < element.size(); ++d) {
    if (element[d] < region.begin[d] || element[d] >= region.end[d]) return false;
  }
  return true;
}

std::vector<Element> cube(std::size_t dimensions) {
  return elements_of(std::vector<std::int64_t>(dimensions, side));
}

std::size_t count_with(const std::vector<Region>& regions, const Element& element) {
  return to_size(
      std::count_if(regions.begin(), regions.end(), [&](const Region& r) { return has(r, element); }));
}

/// Lengths of the pieces of n elements cut over mesh axes that all shard dimension 0.
std::vector<std::int64_t> lengths(std::int64_t n, std::vector<std::int64_t> axes, ChunkRule rule) {
  Layout layout{{n}, Dtype::u8, contiguous_mesh(axes, {0}), {}, rule};
  layout.placements.assign(axes.size(), {0});
  std::vector<std::int64_t> result;
  std::int64_t next = 0;
  for (const Region& region : layout.regions()) {
    EXPECT_TRUE(region.empty() || region.begin[0] == next);
    result.push_back(region.volume());
    if (!region.empty()) next = region.end[0];
  }
  EXPECT_EQ(next, n);
  return result;
}

// ---- boxes

RC_GTEST_PROP(Region, volume_is_the_number_of_its_elements, ()) {
  const std::size_t dimensions = pick_dimensions();
  const Region region = *boxes(dimensions);
  std::int64_t count = 0;
  for (const Element& element : cube(dimensions)) count += has(region, element);
  RC_ASSERT(region.volume() == count);
  RC_ASSERT(region.empty() == (count == 0));
}

RC_GTEST_PROP(Region, contains_another_exactly_when_it_has_all_its_elements, ()) {
  const std::size_t dimensions = pick_dimensions();
  const Region a = *boxes(dimensions), b = *boxes(dimensions);
  bool all = true;
  for (const Element& element : cube(dimensions)) all &= has(a, element) || !has(b, element);
  RC_ASSERT(a.contains(b) == all);
}

RC_GTEST_PROP(Region, intersection_has_exactly_the_common_elements, ()) {
  const std::size_t dimensions = pick_dimensions();
  const Region a = *boxes(dimensions), b = *boxes(dimensions), common = intersect(a, b);
  for (const Element& element : cube(dimensions)) {
    RC_ASSERT(has(common, element) == (has(a, element) && has(b, element)));
  }
}

RC_GTEST_PROP(Region, subtraction_leaves_disjoint_boxes_with_exactly_the_other_elements, ()) {
  const std::size_t dimensions = pick_dimensions();
  const Region a = *boxes(dimensions), b = *boxes(dimensions);
  const std::vector<Region> rest = subtract(a, b);
  RC_ASSERT(rest.size() <= 2 * dimensions);
  for (const Element& element : cube(dimensions)) {
    RC_ASSERT(count_with(rest, element) == (has(a, element) && !has(b, element) ? 1U : 0U));
  }
}

RC_GTEST_PROP(Region, is_covered_exactly_when_every_element_is_in_some_box, ()) {
  const std::size_t dimensions = pick_dimensions();
  const Region region = *boxes(dimensions);
  std::vector<Region> cover = *several_boxes(dimensions);
  if (*rc::gen::arbitrary<bool>() && !cover.empty()) {  // random boxes seldom cover: complete them
    for (const Region& rest : subtract(region, cover.front())) cover.push_back(rest);
  }
  bool all = true;
  for (const Element& element : cube(dimensions))
    all &= !has(region, element) || count_with(cover, element) > 0;
  RC_CLASSIFY(all && !region.empty(), "covered");
  RC_ASSERT(covered(region, cover) == all);
}

TEST(Region, prints_half_open_ranges) { EXPECT_EQ(to_string(box({0, 2}, {4, 3})), "[0:4, 2:3]"); }

TEST(Region, of_a_shape_is_the_whole_index_space) {
  EXPECT_EQ(whole({4, 3}), box({0, 0}, {4, 3}));
  EXPECT_EQ(whole({4, 3}).volume(), 12);
}

TEST(Region, without_common_elements_intersects_to_zeros) {
  EXPECT_EQ(intersect(box({0, 0}, {2, 2}), box({2, 0}, {4, 2})), box({0, 0}, {0, 0}));
}

// ---- layouts

RC_GTEST_PROP(Layout, regions_hold_exactly_the_elements_that_the_chunk_rule_gives_each_rank, ()) {
  const test::RefitCase refit_case = *test::refit_cases();
  for (const TensorSpec& spec : refit_case.tensors) {
    for (const Layout* layout : {&spec.source, &spec.target}) {
      RC_ASSERT(faults(*layout).empty());
      const std::vector<Region> regions = layout->regions();
      for (std::size_t position = 0; position < regions.size(); ++position) {
        for (const Element& element : elements_of(layout->shape)) {
          RC_ASSERT(has(regions[position], element) == test::twin_holds(*layout, position, element));
        }
      }
    }
  }
}

RC_GTEST_PROP(Layout, regions_tile_the_tensor_once_per_declared_replica, ()) {
  const test::RefitCase refit_case = *test::refit_cases();
  for (const TensorSpec& spec : refit_case.tensors) {
    const Layout& layout = *rc::gen::element(spec.source, spec.target);
    std::int64_t replicas = 1;
    for (std::size_t axis = 0; axis < layout.placements.size(); ++axis) {
      if (layout.placements[axis].dimension == Placement::replicated) replicas *= layout.mesh.shape[axis];
    }
    const std::vector<Region> regions = layout.regions();
    for (const Element& element : elements_of(layout.shape)) {
      RC_ASSERT(count_with(regions, element) == to_size(replicas));
    }
    Bytes bytes;
    for (const Region& region : regions) bytes += layout.bytes(region);
    RC_ASSERT(bytes == layout.bytes() * replicas);
  }
}

RC_GTEST_PROP(Layout, two_regions_are_equal_or_disjoint, ()) {
  const test::RefitCase refit_case = *test::refit_cases();
  for (const TensorSpec& spec : refit_case.tensors) {
    const std::vector<Region> regions = spec.source.regions();
    for (const Region& a : regions) {
      for (const Region& b : regions) RC_ASSERT(a == b || intersect(a, b).empty());
    }
  }
}

// Where the two rules for the remainder disagree, and where they do not.
TEST(ChunkRule, ceil_and_balanced_part_10_over_4_differently) {
  EXPECT_THAT(lengths(10, {4}, ChunkRule::ceil), ElementsAre(3, 3, 3, 1));
  EXPECT_THAT(lengths(10, {4}, ChunkRule::balanced), ElementsAre(3, 3, 2, 2));
}

TEST(ChunkRule, ceil_leaves_a_shard_of_5_over_4_empty) {
  EXPECT_THAT(lengths(5, {4}, ChunkRule::ceil), ElementsAre(2, 2, 1, 0));
  EXPECT_THAT(lengths(5, {4}, ChunkRule::balanced), ElementsAre(2, 1, 1, 1));
}

TEST(ChunkRule, ceil_and_balanced_part_7_over_3_differently) {
  EXPECT_THAT(lengths(7, {3}, ChunkRule::ceil), ElementsAre(3, 3, 1));
  EXPECT_THAT(lengths(7, {3}, ChunkRule::balanced), ElementsAre(3, 2, 2));
}

TEST(ChunkRule, ceil_cuts_10_over_2_by_2_axis_after_axis_and_balanced_flattens) {
  EXPECT_THAT(lengths(10, {2, 2}, ChunkRule::ceil), ElementsAre(3, 2, 3, 2));
  EXPECT_THAT(lengths(10, {2, 2}, ChunkRule::balanced), ElementsAre(3, 3, 2, 2));
}

TEST(ChunkRule, ceil_leaves_an_inner_shard_of_9_over_2_by_4_empty) {
  EXPECT_THAT(lengths(9, {2, 4}, ChunkRule::ceil), ElementsAre(2, 2, 1, 0, 1, 1, 1, 1));
  EXPECT_THAT(lengths(9, {2, 4}, ChunkRule::balanced), ElementsAre(2, 1, 1, 1, 1, 1, 1, 1));
}

TEST(ChunkRule, ceil_leaves_ten_of_64_ranks_without_one_of_160_experts) {
  std::vector<std::int64_t> ceil(64, 0), balanced(64, 2);
  std::fill_n(ceil.begin(), 53, 3);
  ceil[53] = 1;
  std::fill_n(balanced.begin(), 32, 3);
  EXPECT_EQ(lengths(160, {64}, ChunkRule::ceil), ceil);
  EXPECT_EQ(lengths(160, {64}, ChunkRule::balanced), balanced);
}

TEST(ChunkRule, all_agree_exactly_when_the_remainder_is_none_or_one_short_or_pieces_are_single) {
  for (std::int64_t n = 1; n < 60; ++n) {
    for (std::int64_t k = 1; k < 30; ++k) {
      const bool same = lengths(n, {k}, ChunkRule::ceil) == lengths(n, {k}, ChunkRule::balanced);
      EXPECT_EQ(same, n % k == 0 || n % k == k - 1 || n < k) << n << " over " << k;
      if (n % k == 0) {
        EXPECT_EQ(lengths(n, {k}, ChunkRule::even), lengths(n, {k}, ChunkRule::ceil));
      }
    }
  }
}

TEST(Layout, even_flattens_two_axes_of_one_dimension_row_major) {
  const Layout layout{{12, 2}, Dtype::bf16, contiguous_mesh({2, 3}, {0}), {{0}, {0}}, ChunkRule::even};
  EXPECT_EQ(layout.region(4), box({8, 0}, {10, 2}));
}

TEST(Layout, shards_cut_the_frame_and_hold_what_of_it_is_tensor) {  // 10 rows padded to 12, and 2 of 5 slots
  const Layout padded{{10}, Dtype::u8, contiguous_mesh({4}, {0}), {{0}}, ChunkRule::even, Frame{{12}, {0}}};
  EXPECT_EQ(padded.region(2), box({6}, {9}));
  EXPECT_EQ(padded.region(3), box({9}, {10}));
  const Layout slots{{2}, Dtype::u8, contiguous_mesh({2}, {0}), {{0}}, ChunkRule::balanced, Frame{{5}, {2}}};
  EXPECT_EQ(slots.region(0), box({0}, {1}));
  EXPECT_EQ(slots.region(1), box({1}, {2}));
}

TEST(Layout, counts_bytes_by_dtype) {
  const Layout layout{{3, 5}, Dtype::f32, contiguous_mesh({1}, {0}), {{}}, ChunkRule::even};
  EXPECT_EQ(layout.bytes(), Bytes{60});
  EXPECT_EQ(layout.bytes(box({0, 1}, {2, 3})), Bytes{16});
}

TEST(Layout, names_and_sizes_of_dtypes_go_both_ways) {
  for (const Dtype dtype : {Dtype::bf16, Dtype::f16, Dtype::f32, Dtype::fp8_e4m3, Dtype::fp8_e5m2, Dtype::u8,
                            Dtype::i8, Dtype::i32, Dtype::i64, Dtype::f64}) {
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
    EXPECT_GT(element_size(dtype).value, 0);
  }
  EXPECT_EQ(parse_dtype("float"), std::nullopt);
  EXPECT_EQ(parse_chunk_rule("balanced"), ChunkRule::balanced);
  EXPECT_EQ(parse_chunk_rule("round-robin"), std::nullopt);
}

class LayoutFaults : public ::testing::Test {
 protected:
  Layout layout_{{8, 6}, Dtype::bf16, contiguous_mesh({2, 3}, {0}), {{0}, {1}}, ChunkRule::even};

  void expect(const std::string& sentence) { EXPECT_THAT(faults(layout_), ElementsAre(HasSubstr(sentence))); }
};

TEST_F(LayoutFaults, of_a_valid_layout_are_none) { EXPECT_TRUE(faults(layout_).empty()); }

TEST_F(LayoutFaults, name_a_missing_placement) {
  layout_.placements.pop_back();
  expect("1 placements for 2 mesh axes");
}

TEST_F(LayoutFaults, name_a_dimension_that_the_tensor_lacks) {
  layout_.placements[0] = {2};
  expect("shard(2) of a tensor of 2 dimensions");
}

TEST_F(LayoutFaults, name_a_repeated_rank) {
  layout_.mesh.ranks[5] = {1};
  expect("rank 1 stands twice");
}

TEST_F(LayoutFaults, name_a_rank_too_few) {
  layout_.mesh.ranks.pop_back();
  expect("6 positions but 5 ranks");
}

TEST_F(LayoutFaults, name_a_dimension_that_even_shards_do_not_divide) {
  layout_.shape[1] = 7;
  expect("dimension 1 of 7 elements is not divided by its 3 shards");
  layout_.chunk_rule = ChunkRule::ceil;
  EXPECT_TRUE(faults(layout_).empty());
}

TEST_F(LayoutFaults, name_a_frame_that_does_not_hold_the_tensor) {
  layout_.frame = Frame{{10, 6}, {3, 0}};
  expect("dimension 0: 8 elements at 3 do not fit a frame of 10");
  layout_.frame = Frame{{12, 6}, {4, 0}};
  EXPECT_TRUE(faults(layout_).empty());
  layout_.frame = Frame{{9, 6}, {1, 0}};
  expect("dimension 0 of 9 elements is not divided by its 2 shards");
  layout_.frame = Frame{{8}, {0, 0}};
  expect("a frame of 1 extents and 2 origins for 2 dimensions");
}

TEST_F(LayoutFaults, name_an_empty_dimension) {
  layout_.shape[0] = 0;
  expect("dimension of 0 elements");
}

}  // namespace
}  // namespace isthmus

#include "model/fused_view.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

LocalView view_of(std::string tensor, std::int64_t indices, std::int64_t offset, std::int64_t block,
                  std::int64_t stride, std::int64_t extent) {
  return {std::move(tensor), {indices, 4}, Dtype::bf16, {"base", 0, offset, block, stride, extent, ""}};
}

/// q, k and v of two groups: two heads of q, one of k and v, two rows a head.
std::vector<LocalView> grouped_attention() {
  return {view_of("q", 8, 0, 4, 8, 16), view_of("k", 4, 4, 2, 8, 16), view_of("v", 4, 6, 2, 8, 16)};
}

TEST(FusedView, of_a_shard_must_lie_inside_its_base) {
  EXPECT_THAT(faults({"b", 0, 4, 4, 4, 8, ""}, {4, 2}), IsEmpty());
  EXPECT_THAT(faults({"b", 0, 5, 4, 4, 8, ""}, {4, 2}),
              ElementsAre("local index 3 stands at 8, outside the base's 8"));
  EXPECT_THAT(faults({"b", 1, 0, 2, 6, 12, ""}, {4, 4}), IsEmpty());
  EXPECT_THAT(faults({"b", 1, 0, 2, 6, 8, ""}, {4, 6}),
              ElementsAre("local index 5 stands at 13, outside the base's 8"));
  EXPECT_THAT(faults({"b", 0, 7, 1, 1, 8, ""}, {0, 4}), IsEmpty());  // an empty shard stands nowhere
}

TEST(FusedView, has_blocks_that_do_not_overlap) {
  EXPECT_THAT(faults({"b", 0, 0, 4, 2, 8, ""}, {6}), ElementsAre("blocks of 4 every 2 overlap"));
  EXPECT_THAT(faults({"b", 0, 0, 4, 2, 8, ""}, {4}), IsEmpty());  // a single block
}

TEST(FusedView, has_sizes_from_1_and_a_dimension_of_the_shard) {
  EXPECT_THAT(faults({"", 2, -1, 0, 0, 0, ""}, {4, 2}), SizeIs(6));
  EXPECT_THAT(faults({"b", 2, 0, 1, 1, 8, ""}, {4, 2}),
              ElementsAre("dimension 2 of a shard of 2 dimensions"));
}

TEST(FusedView, of_a_huge_shard_does_not_overflow) {
  constexpr std::int64_t huge = std::int64_t{1} << 60;
  EXPECT_THAT(faults({"b", 0, huge, 1, huge, huge, ""}, {huge}),
              ElementsAre(HasSubstr("outside the base's")));
  EXPECT_THAT(fused_faults(std::vector<LocalView>{view_of("t", huge, 0, 1, 2, 2 * huge)}),
              ElementsAre("base base: more than 1048576 blocks"));
}

TEST(FusedView, is_printed_with_all_its_numbers) {
  EXPECT_EQ(
      to_string(FusedView{"linear_qkv", 0, 4, 2, 6, 12, "block128"}, 4),
      "linear_qkv: 4 indices of dimension 0 in blocks of 2 every 6 from 4 on, of 12, stored as block128");
  EXPECT_EQ(to_string(FusedView{"w13", 1, 4, 4, 4, 8, ""}, 4),
            "w13: 4 indices of dimension 1 from 4 on, of 8");
}

TEST(FusedViews, of_interleaved_attention_tile_their_base) {
  EXPECT_THAT(fused_faults(grouped_attention()), IsEmpty());
  EXPECT_THAT(fused_faults({}), IsEmpty());
}

TEST(FusedViews, name_the_first_index_that_no_tensor_holds_and_both_neighbours) {
  std::vector<LocalView> views = grouped_attention();
  views.erase(views.begin() + 1);
  EXPECT_THAT(fused_faults(views),
              ElementsAre("base base: index 4 of 16 on dimension 0 is held by no tensor (between q and v)"));
  EXPECT_THAT(
      fused_faults(std::vector{view_of("up", 2, 2, 2, 2, 4)}),
      ElementsAre("base base: index 0 of 4 on dimension 0 is held by no tensor (between the begin and "
                  "up)"));
  EXPECT_THAT(fused_faults(std::vector{view_of("gate", 2, 0, 2, 2, 4)}),
              ElementsAre("base base: index 2 of 4 on dimension 0 is held by no tensor (between gate and the "
                          "end)"));
}

TEST(FusedViews, name_the_first_index_that_two_tensors_hold_and_both) {
  EXPECT_THAT(fused_faults(std::vector{view_of("gate", 3, 0, 3, 3, 4), view_of("up", 2, 2, 2, 2, 4)}),
              ElementsAre("base base: index 2 of 4 on dimension 0 is held by gate and by up"));
}

TEST(FusedViews, must_agree_on_what_their_base_is) {
  const LocalView gate = view_of("gate", 2, 0, 2, 2, 4);
  LocalView up = view_of("up", 2, 2, 2, 2, 4);
  EXPECT_THAT(fused_faults(std::vector{gate, up}), IsEmpty());
  up.extents[1] = 8;
  EXPECT_THAT(fused_faults(std::vector{gate, up}),
              ElementsAre("base base: gate has beside dimension 0 [4], up has [8]"));
  up = view_of("up", 2, 2, 2, 2, 6);
  up.dtype = Dtype::f32;
  up.view.storage = "block128";
  EXPECT_THAT(fused_faults(std::vector{gate, up}),
              ElementsAre("base base: gate has dtype bf16, up has f32",
                          "base base: gate has storage canonical, up has block128",
                          "base base: gate has extent 4, up has 6"));
  up = view_of("up", 2, 2, 2, 2, 4);
  up.view.dimension = 1;
  EXPECT_THAT(fused_faults(std::vector{gate, up}), ElementsAre(HasSubstr("outside the base's 4")));
}

/// By looking at every index: how often each of the base is held.
std::vector<int> holders(const std::vector<LocalView>& views, std::int64_t extent) {
  std::vector<int> count(to_size(extent));
  for (const LocalView& local : views) {
    for (std::int64_t i = 0; i < local.extents[0]; ++i)
      ++count[to_size(local.view.offset + i / local.view.block * local.view.stride + i % local.view.block)];
  }
  return count;
}

RC_GTEST_PROP(FusedViews, are_refused_exactly_when_some_index_is_not_held_once, ()) {
  // One repeating unit of 1 to 4 tensors, cut at random; then one number of one view may be changed.
  const auto pick = [](int least, int most) { return *rc::gen::inRange<std::int64_t>(least, most + 1); };
  const std::int64_t units = pick(1, 3), tensors = pick(1, 4);
  std::vector<std::int64_t> sizes;
  std::int64_t unit = 0;
  for (std::int64_t t = 0; t < tensors; ++t) unit += sizes.emplace_back(pick(1, 3));
  std::vector<LocalView> views;
  std::int64_t offset = 0;
  for (std::int64_t t = 0; t < tensors; ++t) {
    const std::int64_t size = sizes[to_size(t)];
    views.push_back(view_of(fmt::format("t{}", t), units * size, offset, size, unit, units * unit));
    offset += size;
  }
  RC_ASSERT(fused_faults(views).empty());
  FusedView& view = views[to_size(pick(0, static_cast<int>(tensors) - 1))].view;
  std::int64_t& number = **rc::gen::element(&view.offset, &view.block, &view.stride);
  number = pick(0, 9);
  bool inside = true;
  for (const LocalView& local : views) inside = inside && faults(local.view, local.extents).empty();
  const std::vector<int> count = inside ? holders(views, units * unit) : std::vector<int>{};
  const bool once = inside && std::all_of(count.begin(), count.end(), [](int n) { return n == 1; });
  RC_TAG(once);
  const std::vector<std::string> found = fused_faults(views);
  RC_ASSERT(found.empty() == once);
  if (!inside || once) return;
  const auto first = [&](bool twice) {
    const auto at = std::find_if(count.begin(), count.end(), [&](int n) { return twice ? n > 1 : n == 0; });
    return fmt::format("index {} of", at - count.begin());
  };
  std::size_t expected = 0;
  for (const bool twice : {false, true}) {
    if (std::none_of(count.begin(), count.end(), [&](int n) { return twice ? n > 1 : n == 0; })) continue;
    ++expected;
    RC_ASSERT(std::any_of(found.begin(), found.end(), [&](const std::string& text) {
      return text.find(first(twice)) != std::string::npos;
    }));
  }
  RC_ASSERT(found.size() == expected);
}

}  // namespace
}  // namespace isthmus

// Pieces of shards in larger live buffers, against element by element arithmetic; and that what fused views
// say of several tensors tiles their buffer.

#include "hw/base_pieces.hpp"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "model/bare_tensors.hpp"
#include "model/error.hpp"
#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::hw {
namespace {

/// Where the elements of a box stand from `offset` on, in row-major order, by element.
std::map<std::vector<std::int64_t>, std::int64_t> positions(const Region& box, std::int64_t offset,
                                                            std::int64_t element) {
  std::map<std::vector<std::int64_t>, std::int64_t> found;
  std::vector<std::int64_t> at(box.begin.begin(),
                               box.begin.begin() + static_cast<std::ptrdiff_t>(box.dimensions));
  for (std::int64_t i = 0; i < box.volume(); ++i) {
    found[at] = offset + i * element;
    for (std::size_t d = box.dimensions; d-- > 0;) {
      if (++at[d] < box.end[d]) break;
      at[d] = box.begin[d];
    }
  }
  return found;
}

TEST(BasePieces, hold_each_element_where_the_view_says) {
  // A shard of 2 x 6 x 3, padded to 2 x 8 x 4 in front of dimension 1 and behind dimension 2.
  for (const bool padded : {false, true}) {
    for (int dimension = 0; dimension < 3; ++dimension) {
      Layout layout{{2, 6, 3}, Dtype::f32, contiguous_mesh({1}, {0}), {{Placement::replicated}}};
      if (padded) layout.frame = Frame{{2, 8, 4}, {0, 2, 0}};
      const std::vector<std::int64_t> extents = padded ? std::vector<std::int64_t>{2, 8, 4} : layout.shape;
      const FusedView view{"base", dimension, 1, 2, 5, 21};
      const BasePieces pieces(layout, 0, view);
      std::map<std::vector<std::int64_t>, std::int64_t> found;
      for (const Shard& piece : pieces.list({7}, Bytes{1000})) {
        EXPECT_EQ(piece.tensor, TensorId{7});
        EXPECT_EQ(piece.bytes, Bytes{piece.region.volume() * 4});
        for (const auto& [element, byte] : positions(piece.region, piece.offset.value, 4))
          EXPECT_TRUE(found.emplace(element, byte).second);
      }
      EXPECT_EQ(found.size(), 36U);
      for (const auto& [element, byte] : found) {
        std::int64_t position = 0;
        for (std::size_t d = 0; d < 3; ++d) {
          std::int64_t local = element[d] + (padded && d == 1 ? 2 : 0);
          const bool fused = d == to_size(dimension);
          if (fused) local = 1 + local / 2 * 5 + local % 2;
          position = position * (fused ? 21 : extents[d]) + local;
        }
        EXPECT_EQ(byte, 1000 + 4 * position);
      }
    }
  }
}

TEST(BasePieces, of_too_many_blocks_are_refused) {
  const Layout layout{{4'000'000, 2}, Dtype::u8, contiguous_mesh({1}, {0}), {{Placement::replicated}}};
  const BasePieces pieces(layout, 0, {"base", 0, 0, 1, 2, 8'000'000});
  EXPECT_THROW((void)pieces.list({0}, {}), InputError);
}

TEST(BasePieces, of_fused_tensors_tile_their_buffers) {
  int fused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Refit refit = test::make_refit(test::sample_case(seed));
    if (refit.views.empty() || !refit.views.front().target) continue;
    ++fused;
    const PlanResult result = plan_p2p(refit);
    const Program program(refit, std::get<Plan>(result));
    for (std::uint32_t rank = 0; rank < program.ranks(); ++rank) {
      std::set<std::pair<std::int64_t, std::int64_t>> ranges;
      for (const Shard& shard : program.targets({rank}))
        ranges.insert({shard.offset.value, shard.offset.value + shard.bytes.value});
      std::int64_t end = ranges.empty() ? 0 : ranges.begin()->first;
      for (const auto& [from, to] : ranges) {
        EXPECT_EQ(from, end) << seed;  // one base, without gaps and overlaps
        end = to;
      }
    }
  }
  EXPECT_GE(fused, 20);
}

}  // namespace
}  // namespace isthmus::hw

#pragma once
// Who holds which part of a tensor. A tensor of shape n_0 x n_1 x ... is spread over a mesh of ranks: each
// mesh axis either shards one tensor dimension or replicates. From this follows one Region (box of global
// element indices) per mesh coordinate.
// Invariant: two regions of one layout are equal or disjoint, and all regions together cover the tensor.
// A frame is the larger index space that the shards cut where engines hold more than the tensor: a padded
// vocabulary, or expert slots of which the tensor fills some. A rank's region is its piece of the frame,
// less what lies outside the tensor; so it may be empty.
// Chunk rules: how n elements are cut over k coordinates.
//   even      k divides n, piece i = [i n/k, (i+1) n/k); axes on one dimension are flattened row-major
//   ceil      c = ceil(n/k), piece i = [min(n, i c), min(n, (i+1) c)); axes one after the other (torch.chunk)
//   balanced  axes flattened row-major; the first n mod k pieces have one element more

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

inline constexpr std::size_t max_dimensions = 4;

/// Half-open box of element indices, [begin, end) in each of `dimensions` dimensions. Unused entries are 0.
struct Region {
  std::array<std::int64_t, max_dimensions> begin{};
  std::array<std::int64_t, max_dimensions> end{};
  std::size_t dimensions = 0;

  friend bool operator==(const Region&, const Region&) = default;
  friend auto operator<=>(const Region&, const Region&) = default;

  std::int64_t volume() const;  // elements; 0 when empty
  bool empty() const { return volume() == 0; }
  bool contains(const Region& other) const;
};

/// The whole index space of a shape. Requires shape.size() <= max_dimensions.
Region whole(const std::vector<std::int64_t>& shape);
/// The common part; empty (all begin = end = 0) when the boxes do not meet.
Region intersect(const Region& a, const Region& b);
/// Parts of `a` outside `b`: at most 2 x dimensions disjoint boxes.
std::vector<Region> subtract(const Region& a, const Region& b);
/// True when `box` is covered by the union of `cover`.
bool covered(const Region& box, const std::vector<Region>& cover);
/// "[0:4, 2:3]"
std::string to_string(const Region& region);

enum class Dtype : std::uint8_t { bf16, f16, f32, fp8_e4m3, fp8_e5m2, u8, i8, i32, i64, f64 };
Bytes element_size(Dtype dtype);
std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view name);

enum class ChunkRule : std::uint8_t { even, ceil, balanced };
std::string_view to_string(ChunkRule rule);
std::optional<ChunkRule> parse_chunk_rule(std::string_view name);

/// What one mesh axis does: shards tensor dimension `dimension`, or replicates.
struct Placement {
  static constexpr int replicated = -1;
  int dimension = replicated;
  friend bool operator==(Placement, Placement) = default;
};
std::string to_string(Placement placement);  // "replicated", "shard(0)"

/// n-dimensional array of ranks, row-major (the last axis varies fastest). Rank order is free.
struct Mesh {
  std::vector<std::int64_t> shape;
  std::vector<Rank> ranks;

  std::size_t size() const { return ranks.size(); }
  friend bool operator==(const Mesh&, const Mesh&) = default;
};
/// Ranks first, first + 1, ... in row-major order.
Mesh contiguous_mesh(std::vector<std::int64_t> shape, Rank first);

/// Per dimension the extent that shards cut, and where the tensor begins in it.
struct Frame {
  std::vector<std::int64_t> extent, origin;
  friend bool operator==(const Frame&, const Frame&) = default;
};

struct Layout {
  std::vector<std::int64_t> shape;
  Dtype dtype = Dtype::bf16;
  Mesh mesh;
  std::vector<Placement> placements;  // one per mesh axis
  ChunkRule chunk_rule = ChunkRule::even;
  std::optional<Frame> frame{};  // unset: the tensor itself

  Bytes bytes() const;                          // of the whole tensor
  Bytes bytes(const Region& region) const;      // of a part
  Region region(std::size_t mesh_index) const;  // of the rank at this row-major position
  std::vector<Region> regions() const;          // of all mesh positions, in order
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Every reason why `layout` is not a layout (empty when it is one): counts that do not match, dimensions out
/// of range, repeated ranks, a frame that does not hold the tensor, and under `even` a dimension (of the
/// frame) that its shard count does not divide. One sentence each.
std::vector<std::string> faults(const Layout& layout);

}  // namespace isthmus

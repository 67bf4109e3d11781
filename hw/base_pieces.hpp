#pragma once
// A shard inside a larger live buffer, its base (model/fused_view.hpp), as pieces that are contiguous there:
// blocks of the view, for every index of the dimensions before it. Where padding stands behind the view's
// dimension, pieces end there.
// Invariant: pieces are disjoint, in row-major order of the shard, and together the shard; each is row-major
// and in one piece in the base, because all dimensions behind the one that is cut are whole.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/program.hpp"
#include "model/fused_view.hpp"
#include "model/layout.hpp"

namespace isthmus::hw {

/// More pieces than this, of one shard, raise an InputError.
inline constexpr std::int64_t most_base_pieces = 1'048'576;

class BasePieces {
 public:
  /// The shard at a position of the layout's mesh, which is not empty.
  BasePieces(const Layout& layout, std::size_t position, const FusedView& view);
  Bytes base_bytes() const;
  /// The base begins at byte `base` of the arena.
  std::vector<Shard> list(TensorId tensor, Bytes base) const;

 private:
  void add(Region box, std::size_t dimension, std::vector<Region>& pieces) const;
  std::int64_t piece_count() const;
  std::int64_t extent(std::size_t dimension) const;  // of the base
  std::int64_t offset(const Region& piece) const;    // in elements

  FusedView view_;
  std::size_t fused_ = 0, cut_ = 0;  // the view's dimension; the one behind which everything is whole
  Region region_;                    // the shard, in indices of the tensor
  Region held_;                      // the same with its padding
  std::int64_t element_ = 1;         // bytes
};

}  // namespace isthmus::hw

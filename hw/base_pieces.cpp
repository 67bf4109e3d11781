#include "hw/base_pieces.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"
#include "model/error.hpp"

namespace isthmus::hw {

BasePieces::BasePieces(const Layout& layout, std::size_t position, const FusedView& view)
    : view_(view),
      fused_(to_size(view.dimension)),
      cut_(fused_),
      region_(layout.region(position)),
      held_(held_layout(layout).region(position)),
      element_(element_size(layout.dtype).value) {
  for (std::size_t d = 0; d < held_.dimensions; ++d) {
    if (layout.frame) {
      held_.begin[d] -= layout.frame->origin[d];
      held_.end[d] -= layout.frame->origin[d];
    }
    if (d > cut_ && region_.end[d] - region_.begin[d] != held_.end[d] - held_.begin[d]) cut_ = d;
  }
}

std::int64_t BasePieces::extent(std::size_t dimension) const {
  return dimension == fused_ ? view_.extent : held_.end[dimension] - held_.begin[dimension];
}

Bytes BasePieces::base_bytes() const {
  std::int64_t bytes = element_;
  for (std::size_t d = 0; d < held_.dimensions; ++d) bytes *= extent(d);
  return {bytes};
}

std::int64_t BasePieces::offset(const Region& piece) const {
  std::int64_t position = 0;
  for (std::size_t d = 0; d < piece.dimensions; ++d) {
    std::int64_t index = piece.begin[d] - held_.begin[d];
    if (d == fused_) index = view_.offset + index / view_.block * view_.stride + index % view_.block;
    position = position * extent(d) + index;
  }
  return position;
}

std::int64_t BasePieces::piece_count() const {
  Int128 count = 1;
  for (std::size_t d = 0; d <= cut_; ++d) {
    const std::int64_t indices = region_.end[d] - region_.begin[d];
    if (d < cut_) count *= indices;
    if (d == cut_ && d == fused_) count *= indices / view_.block + 2;
  }
  return static_cast<std::int64_t>(std::min<Int128>(count, INT64_MAX));
}

void BasePieces::add(Region box, std::size_t dimension, std::vector<Region>& pieces) const {
  const std::int64_t first = region_.begin[dimension], last = region_.end[dimension];
  for (std::int64_t begin = first, end = last; begin < last; begin = end) {
    const std::int64_t local = begin - held_.begin[dimension];
    end = dimension < cut_ ? begin + 1 : last;
    if (dimension == cut_ && dimension == fused_)
      end = std::min(last, begin + view_.block - local % view_.block);
    box.begin[dimension] = begin;
    box.end[dimension] = end;
    if (dimension == cut_) {
      pieces.push_back(box);
    } else {
      add(box, dimension + 1, pieces);
    }
  }
}

std::vector<Shard> BasePieces::list(TensorId tensor, Bytes base) const {
  if (piece_count() > most_base_pieces) {
    throw InputError({}, fmt::format("a shard in {} pieces of base {}", piece_count(), view_.base),
                     fmt::format("at most {}", most_base_pieces));
  }
  std::vector<Region> pieces;
  add(region_, 0, pieces);
  std::vector<Shard> shards;
  for (const Region& piece : pieces) {
    shards.push_back({tensor, piece, {base.value + offset(piece) * element_}, {piece.volume() * element_}});
  }
  return shards;
}

}  // namespace isthmus::hw

#pragma once
// Where a rank's shard stands inside a larger live buffer, its base: gate and up in gate_up_proj, q, k and v
// in linear_qkv. Along `dimension` of the shard's local index space,
//     base index = offset + (i / block) * stride + i % block      for local index i,
// and the base has `extent` indices there; elsewhere it has the shard's own extents. `storage` names how the
// base keeps its elements, where that is not the canonical order ("block128"); "" is canonical.
// Invariant of a correct set of views: those that name one base on one rank agree in everything but offset
// and block, and hold each index of the base exactly once.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/layout.hpp"

namespace isthmus {

struct FusedView {
  std::string base;
  int dimension = 0;
  std::int64_t offset = 0, block = 1, stride = 1, extent = 1;
  std::string storage{};
  friend bool operator==(const FusedView&, const FusedView&) = default;
};

/// "linear_qkv: 4 indices of dimension 0 in blocks of 2 every 6 from 0 on, of 12" and the storage, if any;
/// `indices` is what the shard has along the dimension.
std::string to_string(const FusedView& view, std::int64_t indices);

/// Every reason why a shard of these extents has no such view (empty when it has): sizes below their least
/// value, a dimension that the shard lacks, indices outside the base, blocks that overlap.
std::vector<std::string> faults(const FusedView& view, const std::vector<std::int64_t>& extents);

/// A tensor's shard on one rank (or a part of it, such as one expert) and where it stands.
struct LocalView {
  std::string tensor;
  std::vector<std::int64_t> extents;
  Dtype dtype = Dtype::bf16;
  FusedView view;
  friend bool operator==(const LocalView&, const LocalView&) = default;
};

/// More blocks than this are not compared, but named as a fault.
inline constexpr std::int64_t max_view_blocks = 1'048'576;

/// What is wrong with views of one base on one rank: first those that are no views or disagree; if there are
/// none, the first index that two of them hold and the first that none holds, with both neighbours.
std::vector<std::string> fused_faults(std::span<const LocalView> views);

}  // namespace isthmus

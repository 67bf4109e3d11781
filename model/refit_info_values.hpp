#pragma once
// Internal to the readers of refit descriptions and local maps: values that both have, and the ways in which
// people print dtypes, placements and meshes. Spellings of placements that are taken: "replicated",
// "Replicate()", null; "shard(0)", "Shard(dim=0)", "Sharded(0)", {"shard": 0}, {"type": "shard", "dim": 0}.
// Source of the spellings: torch.distributed.tensor's text forms, this project's scenarios.

#include <cstdint>
#include <vector>

#include "model/json_tree.hpp"
#include "model/layout.hpp"

namespace isthmus {

/// bf16, bfloat16, torch.bfloat16, BF16, and so on.
Dtype read_dtype_name(const JsonValue& value);

/// Refuses extents whose product times `bytes` exceeds 2^60; empty ones count as 1.
void require_bounded(const JsonValue& value, const std::vector<std::int64_t>& extents, std::int64_t bytes);
/// At most max_dimensions numbers of at least `least`, whose product is at most 2^60 / `bytes`.
std::vector<std::int64_t> read_extents(const JsonValue& value, std::int64_t least, std::int64_t bytes);

/// [[begin, end], ...] of at most 2^60 elements.
Region read_box(const JsonValue& value);

/// The dimension as it is written: negative ones, which count from the end, are for the caller to settle.
struct WrittenPlacement {
  bool shard = false;
  std::int64_t dimension = 0;
};
WrittenPlacement read_written_placement(const JsonValue& value);

struct NamedMesh {
  Mesh mesh;
  std::vector<std::string> axes;  // by dim_map
};
/// {"shape": [...], "ranks": [...], "dim_map": {...}}; ranks flat or nested, or nothing but nested ranks.
/// Adds the mesh's size to `positions` and refuses more than max_mesh_positions in all.
NamedMesh read_named_mesh(const JsonValue& value, std::int64_t& positions);

}  // namespace isthmus

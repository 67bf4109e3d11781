#include "model/layout.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

struct Piece {
  std::int64_t begin, end;
};

Piece even_or_balanced(std::int64_t n, std::int64_t count, std::int64_t index) {
  const std::int64_t base = n / count, extra = n % count;
  const std::int64_t begin = index * base + std::min(index, extra);
  return {begin, begin + base + (index < extra ? 1 : 0)};
}

/// One axis of torch.chunk on [begin, end).
Piece ceil_piece(Piece whole, std::int64_t count, std::int64_t index) {
  const std::int64_t n = whole.end - whole.begin;
  const std::int64_t chunk = (n + count - 1) / count;
  return {whole.begin + std::min(n, index * chunk), whole.begin + std::min(n, (index + 1) * chunk)};
}

/// Coordinates of a row-major mesh position.
std::vector<std::int64_t> coordinates(const Mesh& mesh, std::size_t mesh_index) {
  std::vector<std::int64_t> result(mesh.shape.size());
  auto rest = static_cast<std::int64_t>(mesh_index);
  for (std::size_t axis = mesh.shape.size(); axis-- > 0;) {
    result[axis] = rest % mesh.shape[axis];
    rest /= mesh.shape[axis];
  }
  return result;
}

struct NamedDtype {
  Dtype dtype;
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::array<NamedDtype, 10> dtypes{{{Dtype::bf16, "bf16", 2},
                                             {Dtype::f16, "f16", 2},
                                             {Dtype::f32, "f32", 4},
                                             {Dtype::fp8_e4m3, "fp8_e4m3", 1},
                                             {Dtype::fp8_e5m2, "fp8_e5m2", 1},
                                             {Dtype::u8, "u8", 1},
                                             {Dtype::i8, "i8", 1},
                                             {Dtype::i32, "i32", 4},
                                             {Dtype::i64, "i64", 8},
                                             {Dtype::f64, "f64", 8}}};

const NamedDtype& entry(Dtype dtype) { return dtypes[to_size(dtype)]; }

}  // namespace

std::int64_t Region::volume() const {
  std::int64_t product = dimensions == 0 ? 0 : 1;
  for (std::size_t d = 0; d < dimensions; ++d) product *= std::max<std::int64_t>(0, end[d] - begin[d]);
  return product;
}

bool Region::contains(const Region& other) const {
  if (other.empty()) return true;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (other.begin[d] < begin[d] || other.end[d] > end[d]) return false;
  }
  return dimensions == other.dimensions;
}

Region whole(const std::vector<std::int64_t>& shape) {
  ISTHMUS_ASSERT(shape.size() <= max_dimensions, "{} dimensions", shape.size());
  Region region;
  region.dimensions = shape.size();
  std::copy(shape.begin(), shape.end(), region.end.begin());
  return region;
}

Region intersect(const Region& a, const Region& b) {
  Region common;
  common.dimensions = a.dimensions;
  for (std::size_t d = 0; d < a.dimensions; ++d) {
    common.begin[d] = std::max(a.begin[d], b.begin[d]);
    common.end[d] = std::min(a.end[d], b.end[d]);
    if (common.begin[d] >= common.end[d]) {
      Region empty;
      empty.dimensions = a.dimensions;
      return empty;
    }
  }
  return common;
}

std::vector<Region> subtract(const Region& a, const Region& b) {
  if (a.empty()) return {};
  const Region common = intersect(a, b);
  if (common.empty()) return {a};
  std::vector<Region> rest;
  Region core = a;  // shrinks to `common`, one dimension after the other
  for (std::size_t d = 0; d < a.dimensions; ++d) {
    if (core.begin[d] < common.begin[d]) {
      rest.push_back(core);
      rest.back().end[d] = common.begin[d];
    }
    if (common.end[d] < core.end[d]) {
      rest.push_back(core);
      rest.back().begin[d] = common.end[d];
    }
    core.begin[d] = common.begin[d];
    core.end[d] = common.end[d];
  }
  return rest;
}

bool covered(const Region& box, const std::vector<Region>& cover) {
  std::vector<Region> open{box};
  for (const Region& part : cover) {
    std::vector<Region> still_open;
    for (const Region& region : open) {
      const auto rest = subtract(region, part);
      still_open.insert(still_open.end(), rest.begin(), rest.end());
    }
    open = std::move(still_open);
    if (open.empty()) return true;
  }
  return std::all_of(open.begin(), open.end(), [](const Region& region) { return region.empty(); });
}

std::string to_string(const Region& region) {
  std::string text = "[";
  for (std::size_t d = 0; d < region.dimensions; ++d) {
    text += fmt::format("{}{}:{}", d == 0 ? "" : ", ", region.begin[d], region.end[d]);
  }
  return text + "]";
}

Bytes element_size(Dtype dtype) { return {entry(dtype).bytes}; }

std::string_view to_string(Dtype dtype) { return entry(dtype).name; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const NamedDtype& known : dtypes) {
    if (known.name == name) return known.dtype;
  }
  return std::nullopt;
}

std::string_view to_string(ChunkRule rule) {
  switch (rule) {
    case ChunkRule::even: return "even";
    case ChunkRule::ceil: return "ceil";
    case ChunkRule::balanced: return "balanced";
  }
  return "";
}

std::optional<ChunkRule> parse_chunk_rule(std::string_view name) {
  for (const ChunkRule rule : {ChunkRule::even, ChunkRule::ceil, ChunkRule::balanced}) {
    if (to_string(rule) == name) return rule;
  }
  return std::nullopt;
}

std::string to_string(Placement placement) {
  if (placement.dimension == Placement::replicated) return "replicated";
  return fmt::format("shard({})", placement.dimension);
}

Mesh contiguous_mesh(std::vector<std::int64_t> shape, Rank first) {
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) size *= extent;
  Mesh mesh{std::move(shape), {}};
  for (std::int64_t i = 0; i < size; ++i) mesh.ranks.push_back({first.value + static_cast<std::uint32_t>(i)});
  return mesh;
}

Bytes Layout::bytes() const { return bytes(whole(shape)); }

Bytes Layout::bytes(const Region& region) const { return element_size(dtype) * region.volume(); }

Region Layout::region(std::size_t mesh_index) const {
  Region result = whole(shape);
  const std::vector<std::int64_t> at = coordinates(mesh, mesh_index);
  for (std::size_t dimension = 0; dimension < shape.size(); ++dimension) {
    const std::int64_t extent = frame ? frame->extent[dimension] : shape[dimension];
    const std::int64_t origin = frame ? frame->origin[dimension] : 0;
    Piece piece{0, extent};
    std::int64_t count = 1, index = 0;  // the axes on this dimension, flattened row-major
    for (std::size_t axis = 0; axis < placements.size(); ++axis) {
      if (placements[axis].dimension != static_cast<int>(dimension)) continue;
      if (chunk_rule == ChunkRule::ceil) piece = ceil_piece(piece, mesh.shape[axis], at[axis]);
      count *= mesh.shape[axis];
      index = index * mesh.shape[axis] + at[axis];
    }
    if (chunk_rule != ChunkRule::ceil) piece = even_or_balanced(extent, count, index);
    result.begin[dimension] = std::clamp<std::int64_t>(piece.begin - origin, 0, shape[dimension]);
    result.end[dimension] = std::clamp<std::int64_t>(piece.end - origin, 0, shape[dimension]);
  }
  return result;
}

std::vector<Region> Layout::regions() const {
  std::vector<Region> result;
  result.reserve(mesh.size());
  for (std::size_t i = 0; i < mesh.size(); ++i) result.push_back(region(i));
  return result;
}

namespace {

void mesh_faults(const Layout& layout, std::vector<std::string>& found) {
  std::int64_t positions = 1;
  for (const std::int64_t extent : layout.mesh.shape) {
    if (extent < 1) {
      found.push_back(fmt::format("mesh axis of size {}; at least 1 is needed", extent));
      return;
    }
    positions *= extent;
  }
  if (static_cast<std::size_t>(positions) != layout.mesh.ranks.size()) {
    found.push_back(fmt::format("mesh has {} positions but {} ranks", positions, layout.mesh.ranks.size()));
  }
  std::vector<Rank> sorted = layout.mesh.ranks;
  std::sort(sorted.begin(), sorted.end());
  const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
  if (repeated != sorted.end())
    found.push_back(fmt::format("rank {} stands twice in the mesh", repeated->value));
}

void frame_faults(const Layout& layout, std::vector<std::string>& found) {
  if (!layout.frame) return;
  const Frame& frame = *layout.frame;
  if (frame.extent.size() != layout.shape.size() || frame.origin.size() != layout.shape.size()) {
    found.push_back(fmt::format("a frame of {} extents and {} origins for {} dimensions", frame.extent.size(),
                                frame.origin.size(), layout.shape.size()));
    return;
  }
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    if (frame.origin[d] >= 0 && frame.origin[d] <= frame.extent[d] - layout.shape[d]) continue;
    found.push_back(fmt::format("dimension {}: {} elements at {} do not fit a frame of {}", d,
                                layout.shape[d], frame.origin[d], frame.extent[d]));
  }
}

void divisibility_faults(const Layout& layout, std::vector<std::string>& found) {
  for (std::size_t dimension = 0; dimension < layout.shape.size(); ++dimension) {
    std::int64_t count = 1;
    for (std::size_t axis = 0; axis < layout.placements.size(); ++axis) {
      if (layout.placements[axis].dimension == static_cast<int>(dimension)) count *= layout.mesh.shape[axis];
    }
    const std::int64_t extent = layout.frame ? layout.frame->extent[dimension] : layout.shape[dimension];
    if (count > 0 && extent % count != 0) {
      found.push_back(
          fmt::format("dimension {} of {} elements is not divided by its {} shards (chunk_rule even)",
                      dimension, extent, count));
    }
  }
}

}  // namespace

std::vector<std::string> faults(const Layout& layout) {
  std::vector<std::string> found;
  if (layout.shape.empty() || layout.shape.size() > max_dimensions) {
    found.push_back(fmt::format("{} dimensions; 1 to {} are allowed", layout.shape.size(), max_dimensions));
  }
  for (const std::int64_t extent : layout.shape) {
    if (extent < 1) found.push_back(fmt::format("dimension of {} elements; at least 1 is needed", extent));
  }
  if (layout.placements.size() != layout.mesh.shape.size()) {
    found.push_back(
        fmt::format("{} placements for {} mesh axes", layout.placements.size(), layout.mesh.shape.size()));
  }
  for (const Placement placement : layout.placements) {
    const bool known = placement.dimension == Placement::replicated ||
                       (placement.dimension >= 0 && to_size(placement.dimension) < layout.shape.size());
    if (!known) {
      found.push_back(
          fmt::format("{} of a tensor of {} dimensions", to_string(placement), layout.shape.size()));
    }
  }
  mesh_faults(layout, found);
  frame_faults(layout, found);
  if (found.empty() && layout.chunk_rule == ChunkRule::even) divisibility_faults(layout, found);
  return found;
}

}  // namespace isthmus

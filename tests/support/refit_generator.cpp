#include "tests/support/refit_generator.hpp"

#include <algorithm>
#include <numeric>
#include <ostream>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace isthmus::test {
namespace {

std::size_t pick(std::size_t count) { return *rc::gen::inRange<std::size_t>(0, count); }

template <class T>
T pick(const std::vector<T>& choices) {
  return choices[pick(choices.size())];
}

std::vector<std::int64_t> pick_shape() {
  const std::size_t dimensions = pick(std::vector<std::size_t>{1, 2, 2, 2, 3, 3, 4});
  const std::size_t largest = dimensions == 1 ? 20 : dimensions == 2 ? 9 : dimensions == 3 ? 6 : 4;
  std::vector<std::int64_t> shape;
  for (std::size_t d = 0; d < dimensions; ++d) shape.push_back(static_cast<std::int64_t>(1 + pick(largest)));
  return shape;
}

/// 1-3 axis sizes whose product is one of the sizes that meshes have.
std::vector<std::int64_t> pick_mesh() {
  std::int64_t size =
      pick(std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 8, 8, 8, 9, 10, 12, 12, 12, 16, 16, 16});
  const std::size_t axes = pick(std::vector<std::size_t>{1, 2, 2, 2, 3, 3});
  std::vector<std::int64_t> shape;
  while (shape.size() + 1 < axes) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t divisor = 1; divisor <= size; ++divisor) {
      if (size % divisor == 0 && (divisor > 1 || size < 4) && (divisor < size || size < 4))
        divisors.push_back(divisor);
    }
    if (divisors.empty()) divisors.push_back(size);
    shape.push_back(pick(divisors));
    size /= shape.back();
  }
  shape.push_back(size);
  return shape;
}

/// Fisher-Yates from a seed; 0 leaves the order.
template <class T>
void shuffle(std::vector<T>& values, std::size_t seed) {
  if (seed == 0) return;
  std::mt19937_64 random(seed);
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random() % i]);
}

Layout pick_layout(const std::vector<std::int64_t>& shape, Dtype dtype) {
  Layout layout{shape, dtype, contiguous_mesh(pick_mesh(), {0}), {}, ChunkRule::even};
  for (std::size_t axis = 0; axis < layout.mesh.shape.size(); ++axis) {
    const bool sharded = pick(5) != 0;
    layout.placements.push_back({sharded ? static_cast<int>(pick(shape.size())) : Placement::replicated});
  }
  if (pick(4) == 0) {  // padded in front, behind, or both
    Frame frame{shape, {}};
    for (std::int64_t& extent : frame.extent) {
      frame.origin.push_back(static_cast<std::int64_t>(pick(3)));
      extent += frame.origin.back() + static_cast<std::int64_t>(pick(3));
    }
    layout.frame = std::move(frame);
  }
  layout.chunk_rule = pick(std::vector<ChunkRule>{ChunkRule::even, ChunkRule::ceil, ChunkRule::balanced});
  if (!faults(layout).empty()) layout.chunk_rule = pick(2) == 0 ? ChunkRule::ceil : ChunkRule::balanced;
  return layout;
}

/// Ranks first, first + 1, ... in some order, now and then with gaps.
void place(Mesh& mesh, std::size_t first, std::size_t shuffle_seed, std::size_t stride) {
  for (std::size_t i = 0; i < mesh.ranks.size(); ++i) {
    mesh.ranks[i] = {static_cast<std::uint32_t>(first + i * stride)};
  }
  shuffle(mesh.ranks, shuffle_seed);
}

std::size_t pick_shuffle() { return pick(5) < 3 ? 0 : pick(1000); }

TensorSpec pick_tensor(std::size_t number) {
  const std::vector<std::int64_t> shape = pick_shape();
  const auto dtype = pick(std::vector<Dtype>{Dtype::bf16, Dtype::f32, Dtype::u8});
  TensorSpec spec{fmt::format("t{}", number), pick_layout(shape, dtype), pick_layout(shape, dtype)};
  const std::size_t first = pick(3), stride = pick(8) == 7 ? 2 : 1;
  place(spec.source.mesh, first, pick_shuffle(), stride);
  const std::size_t past = first + spec.source.mesh.size() * stride;
  const bool overlap = pick(3) == 2;
  place(spec.target.mesh, overlap ? pick(past) : past + pick(2), pick_shuffle(), 1);
  return spec;
}

/// The same geometry further up, both sides by the same distance or by different ones.
TensorSpec pick_relative(const TensorSpec& other, std::size_t number) {
  TensorSpec spec = other;
  spec.name = fmt::format("t{}", number);
  const auto source_shift = static_cast<std::uint32_t>(pick(4));
  const auto target_shift = pick(2) == 0 ? source_shift : static_cast<std::uint32_t>(pick(4));
  for (Rank& rank : spec.source.mesh.ranks) rank.value += source_shift;
  for (Rank& rank : spec.target.mesh.ranks) rank.value += target_shift;
  return spec;
}

/// Indices that every rank has along a dimension of its shard, where all ranks have equally many; else 0.
std::int64_t equal_extent(const Layout& layout, std::size_t dimension) {
  const std::vector<Region> regions = layout.regions();
  const auto extent = [dimension](const Region& region) {
    return region.empty() ? 0 : region.end[dimension] - region.begin[dimension];
  };
  for (const Region& region : regions) {
    if (extent(region) != extent(regions.front())) return 0;
  }
  return extent(regions.front());
}

/// Views of `count` shards side by side in one base, in blocks of some divisor of what each has; none where
/// no dimension is cut evenly.
std::vector<std::optional<FusedView>> pick_views(const Layout& layout, const char* base, std::size_t count) {
  std::vector<std::optional<FusedView>> views(count);
  std::vector<std::size_t> even;
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    if (equal_extent(layout, d) > 0) even.push_back(d);
  }
  if (layout.frame || even.empty()) return views;
  const std::size_t dimension = pick(even);
  const std::int64_t extent = equal_extent(layout, dimension);
  std::vector<std::int64_t> blocks;
  for (std::int64_t block = 1; block <= extent; ++block) {
    if (extent % block == 0) blocks.push_back(block);
  }
  if (blocks.size() > 1 && pick(4) != 0) blocks.pop_back();  // mostly in several pieces
  const std::int64_t block = pick(blocks), all = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    views[i] = FusedView{
        base,        static_cast<int>(dimension), static_cast<std::int64_t>(i) * block, block, all * block,
        all * extent};
  }
  return views;
}

/// The first tensor and one or two like it, in common live buffers.
void fuse(RefitCase& refit_case) {
  refit_case.tensors.resize(1, refit_case.tensors.front());
  const TensorSpec first = refit_case.tensors.front();
  const std::size_t count = 2 + pick(2);
  const auto sources = pick_views(first.source, "held", count),
             targets = pick_views(first.target, "live", count);
  refit_case.tensors.clear();
  for (std::size_t i = 0; i < count; ++i) {
    TensorSpec spec = first;
    spec.name = fmt::format("t{}", i);
    spec.source_view = sources[i];
    spec.target_view = targets[i];
    refit_case.tensors.push_back(std::move(spec));
  }
}

RefitCase pick_case() {
  RefitCase result;
  const std::size_t tensors = 1 + pick(3);
  for (std::size_t i = 0; i < tensors; ++i) {
    const bool relative = i > 0 && pick(2) == 1;
    result.tensors.push_back(relative ? pick_relative(result.tensors[pick(i)], i) : pick_tensor(i));
  }
  if (pick(2) == 0) fuse(result);
  for (const TensorSpec& spec : result.tensors) {
    for (const Layout* layout : {&spec.source, &spec.target}) {
      for (const Rank rank : layout->mesh.ranks) result.ranks = std::max(result.ranks, rank.index() + 1);
    }
  }
  return result;
}

Layout localised(Layout layout, Rank base) {
  for (Rank& rank : layout.mesh.ranks) rank.value -= base.value;
  return layout;
}

std::string frame_text(const Layout& layout) {
  if (!layout.frame) return "";
  return fmt::format(", frame: [{}], origin: [{}]", fmt::join(layout.frame->extent, ", "),
                     fmt::join(layout.frame->origin, ", "));
}

std::string view_text(const std::optional<FusedView>& view) {
  if (!view) return "";
  return fmt::format(", view: {{base: {}, dimension: {}, offset: {}, block: {}, stride: {}, extent: {}}}",
                     view->base, view->dimension, view->offset, view->block, view->stride, view->extent);
}

std::string layout_text(const Layout& layout, const std::optional<FusedView>& view) {
  std::vector<std::string> placements;
  for (const Placement placement : layout.placements) placements.push_back(to_string(placement));
  std::vector<std::uint32_t> ranks;
  for (const Rank rank : layout.mesh.ranks) ranks.push_back(rank.value);
  return fmt::format("{{mesh: [{}], ranks: [{}], placements: [{}], chunk_rule: {}{}{}}}",
                     fmt::join(layout.mesh.shape, ", "), fmt::join(ranks, ", "), fmt::join(placements, ", "),
                     to_string(layout.chunk_rule), frame_text(layout), view_text(view));
}

void add_traits(const Layout& layout, CaseTraits& traits) {
  int sharded = 0;
  for (std::size_t axis = 0; axis < layout.placements.size(); ++axis) {
    sharded += layout.placements[axis].dimension != Placement::replicated && layout.mesh.shape[axis] > 1;
  }
  traits.two_sharded_axes |= sharded >= 2;
  const std::vector<Region> regions = layout.regions();
  for (const Region& region : regions) {
    traits.uneven |= region.volume() != regions.front().volume();
    traits.empty_shard |= region.empty();
  }
  traits.shuffled |= !std::is_sorted(layout.mesh.ranks.begin(), layout.mesh.ranks.end());
}

/// Whether the shards lie in more than one piece.
bool is_strided(const Layout& layout, const std::optional<FusedView>& view) {
  if (!view) return false;
  const auto dimension = to_size(view->dimension);
  if (view->block < equal_extent(layout, dimension)) return true;
  const std::vector<Region> regions = layout.regions();
  return std::any_of(regions.begin(), regions.end(), [dimension](const Region& region) {
    std::int64_t before = 1;
    for (std::size_t d = 0; d < dimension; ++d) before *= region.end[d] - region.begin[d];
    return before > 1;
  });
}

}  // namespace

void showValue(const RefitCase& refit_case, std::ostream& stream) {
  stream << "tensors:\n";
  for (const TensorSpec& spec : refit_case.tensors) {
    stream << fmt::format(
        "  - tensor: {{name: {}, shape: [{}], dtype: {}}}\n    source: {}\n    target: {}\n", spec.name,
        fmt::join(spec.source.shape, ", "), to_string(spec.source.dtype),
        layout_text(spec.source, spec.source_view), layout_text(spec.target, spec.target_view));
  }
  stream << fmt::format("fabric: {{preset: dgx-h100-superpod, hosts: {}}}\n", (refit_case.ranks + 7) / 8);
}

Refit make_refit(const RefitCase& refit_case) {
  FabricSpec fabric;
  fabric.hosts = static_cast<int>((refit_case.ranks + 7) / 8);
  Refit refit{.name = "bare",
              .fabric = Fabric(fabric),
              .gpu_of_rank = {},
              .geometries = {},
              .tensors = {},
              .settings = {},
              .totals = {}};
  for (std::uint32_t rank = 0; rank < refit_case.ranks; ++rank) refit.gpu_of_rank.push_back({rank});
  for (const TensorSpec& spec : refit_case.tensors) {
    RefitEntry entry;
    entry.tensor.name = spec.name;
    entry.tensor.shape = spec.source.shape;
    entry.tensor.dtype = spec.source.dtype;
    entry.source_base = *std::min_element(spec.source.mesh.ranks.begin(), spec.source.mesh.ranks.end());
    entry.target_base = *std::min_element(spec.target.mesh.ranks.begin(), spec.target.mesh.ranks.end());
    Geometry geometry{localised(spec.source, entry.source_base), localised(spec.target, entry.target_base)};
    const auto known = std::find(refit.geometries.begin(), refit.geometries.end(), geometry);
    entry.geometry = static_cast<std::uint32_t>(known - refit.geometries.begin());
    if (known == refit.geometries.end()) refit.geometries.push_back(std::move(geometry));
    entry.tensor.install = spec.claims.install;
    refit.tensors.push_back(std::move(entry));
    refit.views.push_back({spec.source_view, spec.target_view});
  }
  const bool viewed = std::any_of(refit.views.begin(), refit.views.end(),
                                  [](const TensorViews& views) { return views.source || views.target; });
  if (!viewed) refit.views.clear();
  return refit;
}

rc::Gen<RefitCase> refit_cases() { return rc::gen::resize(rc::kNominalSize, rc::gen::exec(pick_case)); }

RefitCase sample_case(std::uint64_t seed) {
  return refit_cases()(rc::Random(seed), rc::kNominalSize).value();
}

RefitCase repeated_case(std::uint64_t seed) {
  RefitCase result = sample_case(seed);
  TensorSpec first = result.tensors.front();
  first.source_view.reset();
  first.target_view.reset();
  result.tensors.clear();
  for (std::size_t i = 0; i < 3 + seed / 4 % 2; ++i) {
    result.tensors.push_back(first);
    result.tensors.back().name = fmt::format("t{}", i);
  }
  return result;
}

CaseTraits traits_of(const RefitCase& refit_case) {
  CaseTraits traits;
  for (const TensorSpec& spec : refit_case.tensors) {
    add_traits(spec.source, traits);
    add_traits(spec.target, traits);
    traits.strided_view |=
        is_strided(spec.source, spec.source_view) || is_strided(spec.target, spec.target_view);
    for (const Rank rank : spec.source.mesh.ranks) {
      const std::vector<Rank>& others = spec.target.mesh.ranks;
      traits.overlapping |= std::find(others.begin(), others.end(), rank) != others.end();
    }
  }
  const Refit refit = make_refit(refit_case);
  traits.shared_geometry = refit.geometries.size() < refit.tensors.size();
  return traits;
}

}  // namespace isthmus::test

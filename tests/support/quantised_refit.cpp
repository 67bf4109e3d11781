#include "tests/support/quantised_refit.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "tests/support/mutants.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::test {
namespace {

constexpr std::int64_t group_values = 32;

Layout pick_cut(const std::vector<std::int64_t>& shape, Random& random, bool cut_last) {
  const std::size_t last = shape.size() - 1;
  Layout layout{shape, Dtype::fp8_e4m3, {}, {}, ChunkRule::even};
  std::vector<std::int64_t> axes;
  const std::size_t count = 1 + random.below(2);
  for (std::size_t axis = 0; axis < count; ++axis) {
    axes.push_back(static_cast<std::int64_t>(1 + random.below(axis == 0 ? 4 : 2)));
    const std::size_t choice = random.below(shape.size() + 1);
    layout.placements.push_back({choice == shape.size() ? Placement::replicated : static_cast<int>(choice)});
  }
  if (cut_last) {
    axes.front() = 2 + static_cast<std::int64_t>(random.below(2));
    layout.placements.front() = {static_cast<int>(last)};
  }
  layout.mesh = contiguous_mesh(axes, {0});
  layout.chunk_rule = random.below(2) == 0 ? ChunkRule::ceil : ChunkRule::balanced;
  return layout;
}

/// One scale for each group of 32 of these values.
Layout scales_of(Layout values) {
  values.shape.back() /= group_values;
  values.dtype = Dtype::u8;
  return values;
}

bool cuts_groups(const Layout& values) {
  const Layout scales = scales_of(values);
  for (std::size_t i = 0; i < values.mesh.size(); ++i) {
    Region of_scales = scales.region(i);
    const Region shard = values.region(i);
    of_scales.begin[of_scales.dimensions - 1] *= group_values;
    of_scales.end[of_scales.dimensions - 1] *= group_values;
    const bool equal = shard == of_scales || (shard.empty() && of_scales.empty());
    if (!equal) return true;
  }
  return false;
}

void move_to(Layout& layout, std::uint32_t first) {
  for (std::size_t i = 0; i < layout.mesh.ranks.size(); ++i)
    layout.mesh.ranks[i] = {first + static_cast<std::uint32_t>(i)};
}

}  // namespace

Refit quantised_refit(std::uint64_t seed, QuantisedRefitOptions options) {
  Random random(seed);
  RefitCase made;
  std::vector<QuantisedPart> parts;
  const std::size_t matrices = 1 + random.below(3);
  for (std::size_t m = 0; m < matrices; ++m) {
    std::vector<std::int64_t> shape;
    if (random.below(3) == 0) shape.push_back(static_cast<std::int64_t>(1 + random.below(3)));
    shape.push_back(static_cast<std::int64_t>(1 + random.below(4)));
    shape.push_back(group_values * static_cast<std::int64_t>(1 + random.below(4)));
    const bool cut = options.cut_groups && m == 0;
    Layout source = pick_cut(shape, random, cut);
    while (cuts_groups(source) != cut) {
      if (cut) shape.back() = group_values * (1 + 2 * static_cast<std::int64_t>(random.below(2)));
      source = pick_cut(shape, random, cut);
    }
    Layout target = pick_cut(shape, random, false);
    const bool overlap = random.below(4) == 0;
    move_to(target, static_cast<std::uint32_t>(overlap ? 1 : 8));
    const std::string name = fmt::format("m{}.weight", m);
    Layout scaled = pick_cut(scales_of(target).shape, random, false);
    scaled.dtype = Dtype::u8;
    move_to(scaled, static_cast<std::uint32_t>(overlap ? 1 : 8));
    made.tensors.push_back({name, source, target});
    made.tensors.push_back({name + "_scale", scales_of(source), scaled});
    parts.insert(parts.end(), {QuantisedPart::values, QuantisedPart::scales});
    if (!options.plain || random.below(3) != 0) continue;
    made.tensors.push_back({fmt::format("n{}", m), source, target});
    for (Layout* layout : {&made.tensors.back().source, &made.tensors.back().target})
      layout->dtype = Dtype::bf16;
    parts.push_back(QuantisedPart::none);
  }
  made.ranks = 16;
  Refit refit = make_refit(made);
  for (std::size_t t = 0; t < parts.size(); ++t) refit.tensors[t].tensor.quantised = parts[t];
  return refit;
}

WireBytes wire_bytes(const Refit& refit) {
  WireBytes bytes;
  for (const RefitEntry& entry : refit.tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : entry.tensor.shape) elements *= extent;
    if (entry.tensor.quantised != QuantisedPart::none) bytes.quantised += elements;
    if (entry.tensor.quantised == QuantisedPart::values) bytes.bf16 += 2 * elements;
  }
  return bytes;
}

}  // namespace isthmus::test

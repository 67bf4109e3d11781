#include "model/refit_scale.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

namespace isthmus {
namespace {

// ---- Layers

/// What tensors of two layers must share for the layers to be of one kind.
using TensorKind = std::tuple<std::uint32_t, Role, int, Rank, Rank, bool, std::int64_t>;

TensorKind kind_of(const RefitEntry& entry) {
  return {entry.geometry,    entry.tensor.role, entry.stage,
          entry.source_base, entry.target_base, entry.tensor.receiver_quantises,
          entry.tensor.parts};
}

/// The layers that stay: of each kind the first ones.
std::set<int> kept_layers(const Refit& refit, double share) {
  std::map<int, std::vector<TensorKind>> kinds;  // by layer, in transfer order
  for (const RefitEntry& entry : refit.tensors)
    if (entry.tensor.layer >= 0) kinds[entry.tensor.layer].push_back(kind_of(entry));
  std::map<std::vector<TensorKind>, std::vector<int>> layers_of;
  for (const auto& [layer, kind] : kinds) layers_of[kind].push_back(layer);
  std::set<int> kept;
  for (const auto& [kind, layers] : layers_of) {
    const double wanted = std::ceil(share * static_cast<double>(layers.size()));
    const auto count = std::clamp<std::size_t>(static_cast<std::size_t>(wanted), 1, layers.size());
    kept.insert(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return kept;
}

void drop_layers(Refit& refit, double share) {
  const std::set<int> kept = kept_layers(refit, share);
  std::erase_if(refit.tensors, [&kept](const RefitEntry& entry) {
    return entry.tensor.layer >= 0 && kept.count(entry.tensor.layer) == 0;
  });
}

// ---- Lengths

/// What all cuts of a layout along a dimension are multiples of, `unit` among them.
std::int64_t with_cuts(std::int64_t unit, const Layout& layout, std::size_t dimension) {
  Layout around = layout;  // the frame itself, whose pieces the ranks hold
  if (layout.frame) {
    unit = std::gcd(unit, std::gcd(layout.frame->extent[dimension], layout.frame->origin[dimension]));
    around.shape = layout.frame->extent;
    around.frame.reset();
  }
  for (const Region& region : around.regions()) {
    unit = std::gcd(unit, region.begin[dimension]);
    unit = std::gcd(unit, region.end[dimension]);
  }
  return std::gcd(unit, layout.shape[dimension]);
}

/// The unit of each dimension of a geometry.
std::vector<std::int64_t> units_of(const Geometry& geometry) {
  std::vector<std::int64_t> units;
  for (std::size_t d = 0; d < geometry.source.shape.size(); ++d)
    units.push_back(with_cuts(with_cuts(0, geometry.source, d), geometry.target, d));
  return units;
}

struct Lengths {
  std::vector<std::int64_t> units;  // by dimension
  bool stacked = false;             // dimension 0 stays

  std::int64_t scaled(std::size_t dimension, double factor) const {
    const std::int64_t unit = units[dimension];
    if (stacked && dimension == 0) return unit;
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(factor * static_cast<double>(unit))),
                                    1, unit);
  }
};

std::vector<Lengths> lengths_of(const Refit& refit) {
  std::vector<Lengths> lengths;
  for (const Geometry& geometry : refit.geometries) lengths.push_back({units_of(geometry), false});
  for (const RefitEntry& entry : refit.tensors) {
    const bool stacked = entry.tensor.parts > 1 || entry.tensor.expert;
    if (stacked) lengths[entry.geometry].stacked = true;
  }
  return lengths;
}

double bytes_with(const Refit& refit, const std::vector<Lengths>& lengths, double factor) {
  std::vector<double> of_geometry;
  for (std::size_t g = 0; g < lengths.size(); ++g) {
    const Layout& layout = refit.geometries[g].source;
    double bytes = static_cast<double>(layout.bytes().value);
    for (std::size_t d = 0; d < layout.shape.size(); ++d) {
      bytes *= static_cast<double>(lengths[g].scaled(d, factor));
      bytes /= static_cast<double>(lengths[g].units[d]);
    }
    of_geometry.push_back(bytes);
  }
  double sum = 0;
  for (const RefitEntry& entry : refit.tensors) sum += of_geometry[entry.geometry];
  return sum;
}

/// The greatest factor for which no more than `most` bytes are left; 0 where there is none.
double find_factor(const Refit& refit, const std::vector<Lengths>& lengths, double most) {
  if (bytes_with(refit, lengths, 1) <= most) return 1;
  double low = 0, high = 1;
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (bytes_with(refit, lengths, middle) <= most ? low : high) = middle;
  }
  return low;
}

void scale_layout(Layout& layout, const Lengths& lengths, double factor) {
  for (std::size_t d = 0; d < layout.shape.size(); ++d) {
    const std::int64_t from = lengths.units[d], to = lengths.scaled(d, factor);
    layout.shape[d] = layout.shape[d] / from * to;
    if (!layout.frame) continue;
    layout.frame->extent[d] = layout.frame->extent[d] / from * to;
    layout.frame->origin[d] = layout.frame->origin[d] / from * to;
  }
}

}  // namespace

ScaledRefit scale_refit(Refit refit, double share) {
  ScaledRefit scaled{std::move(refit), 1};
  if (share >= 1) return scaled;
  Refit& small = scaled.refit;
  const double all = bytes_with(small, lengths_of(small), 1);
  drop_layers(small, share);
  const std::vector<Lengths> lengths = lengths_of(small);
  const double before = bytes_with(small, lengths, 1);
  const double factor = find_factor(small, lengths, share * all);
  for (std::size_t g = 0; g < small.geometries.size(); ++g) {
    scale_layout(small.geometries[g].source, lengths[g], factor);
    scale_layout(small.geometries[g].target, lengths[g], factor);
  }
  for (RefitEntry& entry : small.tensors) entry.tensor.shape = small.geometries[entry.geometry].source.shape;
  const double after = bytes_with(small, lengths_of(small), 1);
  const double packet = static_cast<double>(small.settings.packet_bytes.value) * after / before;
  small.settings.packet_bytes = {std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(packet)))};
  scaled.share = after / all;
  return scaled;
}

}  // namespace isthmus

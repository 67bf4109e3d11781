#include "tests/support/twin.hpp"

#include <algorithm>

#include "tests/support/twin_run.hpp"

namespace isthmus::test {
namespace {

/// Which of `count` pieces of n elements the element at `index` falls into; balanced also serves even.
std::int64_t balanced_owner(std::int64_t n, std::int64_t count, std::int64_t index) {
  std::int64_t owner = 0, left = n, pieces = count;
  while (true) {
    const std::int64_t size = left / pieces + (left % pieces != 0 ? 1 : 0);  // larger pieces come first
    if (index < size) return owner;
    index -= size;
    left -= size;
    --pieces;
    ++owner;
  }
}

}  // namespace

bool twin_holds(const Layout& layout, std::size_t position, const Element& element) {
  std::vector<std::int64_t> coordinate(layout.mesh.shape.size());
  for (std::size_t axis = coordinate.size(); axis-- > 0;) {
    const std::size_t size = to_size(layout.mesh.shape[axis]);
    coordinate[axis] = static_cast<std::int64_t>(position % size);
    position /= size;
  }
  for (std::size_t d = 0; d < element.size(); ++d) {
    std::int64_t index = element[d], length = layout.shape[d], wanted = 0, count = 1;
    if (layout.frame) {
      index += layout.frame->origin[d];
      length = layout.frame->extent[d];
    }
    for (std::size_t axis = 0; axis < coordinate.size(); ++axis) {
      if (layout.placements[axis].dimension != static_cast<int>(d)) continue;
      const std::int64_t size = layout.mesh.shape[axis];
      wanted = wanted * size + coordinate[axis];
      count *= size;
      if (layout.chunk_rule != ChunkRule::ceil) continue;
      std::int64_t chunk = length / size;
      if (chunk * size < length) ++chunk;
      if (index / chunk != coordinate[axis]) return false;
      length = std::min(chunk, length - coordinate[axis] * chunk);
      index %= chunk;
    }
    if (layout.chunk_rule != ChunkRule::ceil && balanced_owner(length, count, index) != wanted) return false;
  }
  return true;
}

std::vector<Element> elements_of(const std::vector<std::int64_t>& shape) {
  std::vector<Element> elements{{}};
  for (const std::int64_t extent : shape) {
    std::vector<Element> longer;
    for (const Element& prefix : elements) {
      for (std::int64_t i = 0; i < extent; ++i) {
        longer.push_back(prefix);
        longer.back().push_back(i);
      }
    }
    elements = std::move(longer);
  }
  return elements;
}

Twin::Twin(const Refit& refit) : refit_(refit) {
  for (const RefitEntry& entry : refit.tensors) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    Tensor tensor{elements_of(geometry.source.shape), {}, {}};
    tensor.source.resize(refit.ranks());
    tensor.target.resize(refit.ranks());
    const auto place = [&](const Layout& layout, Rank base, std::vector<std::vector<bool>>& held) {
      for (std::size_t position = 0; position < layout.mesh.ranks.size(); ++position) {
        std::vector<bool>& of_rank = held[base.value + layout.mesh.ranks[position].value];
        for (const Element& element : tensor.elements)
          of_rank.push_back(twin_holds(layout, position, element));
      }
    };
    place(geometry.source, entry.source_base, tensor.source);
    place(geometry.target, entry.target_base, tensor.target);
    tensors_.push_back(std::move(tensor));
  }
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    const TensorViews views = refit.views.empty() ? TensorViews{} : refit.views[t];
    tensors_[t].source_place = places_of(t, tensors_[t].source, views.source, true);
    tensors_[t].target_place = places_of(t, tensors_[t].target, views.target, false);
  }
}

std::vector<Twin::Place> Twin::places_of(std::size_t tensor, const std::vector<std::vector<bool>>& held,
                                         const std::optional<FusedView>& view, bool source) {
  std::vector<Place> places;
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    const bool fused = view && std::count(held[rank].begin(), held[rank].end(), true) > 0;
    std::size_t memory = memory_size_.size();
    if (fused) memory = fused_.try_emplace({source, view->base, rank}, memory).first->second;
    if (memory == memory_size_.size()) memory_size_.push_back(0);
    if (fused) {
      places.push_back(fused_place(tensor, held[rank], *view, memory));
    } else {
      places.push_back({memory, {}});
      memory_size_[memory] = tensors_[tensor].elements.size();
    }
  }
  return places;
}

/// Row-major in the base, which along the view's dimension is as long as it says and else as the shard.
Twin::Place Twin::fused_place(std::size_t tensor, const std::vector<bool>& held, const FusedView& view,
                              std::size_t memory) {
  const std::vector<Element>& elements = tensors_[tensor].elements;
  const auto dimension = static_cast<std::size_t>(view.dimension);
  Element low, high;
  for (std::size_t e = 0; e < elements.size(); ++e) {
    if (!held[e]) continue;
    if (low.empty()) low = high = elements[e];
    for (std::size_t d = 0; d < low.size(); ++d) {
      low[d] = std::min(low[d], elements[e][d]);
      high[d] = std::max(high[d], elements[e][d]);
    }
  }
  Place place{memory, std::vector<std::size_t>(elements.size(), nowhere)};
  std::size_t size = 1;
  for (std::size_t d = 0; d < low.size(); ++d)
    size *= to_size(d == dimension ? view.extent : high[d] - low[d] + 1);
  for (std::size_t e = 0; e < elements.size(); ++e) {
    if (!held[e]) continue;
    std::size_t position = 0;
    for (std::size_t d = 0; d < low.size(); ++d) {
      const std::int64_t local = elements[e][d] - low[d];
      const bool fused = d == dimension;
      const std::int64_t within =
          fused ? view.offset + local / view.block * view.stride + local % view.block : local;
      position = position * to_size(fused ? view.extent : high[d] - low[d] + 1) + to_size(within);
    }
    place.at[e] = position;
  }
  memory_size_[memory] = std::max(memory_size_[memory], size);
  return place;
}

TwinResult Twin::run(const Plan& plan, TwinSchedule schedule, EndState* end) const {
  TwinRun run(*this, plan);
  TwinResult result = run.run(schedule);
  if (end != nullptr) *end = run.end_state();
  return result;
}

bool Twin::under_some_schedule(const Plan& plan, const std::function<bool(const TwinResult&)>& found) const {
  TwinRun runs(*this, plan);
  std::size_t operations = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const TwinResult result = runs.run({seed, TwinSchedule::nobody});
    if (found(result)) return true;
    operations = result.operations;
  }
  const std::size_t stride = operations / most_starved + 1;
  for (std::size_t starved = 0; starved < operations; starved += stride) {
    if (found(runs.run({0, starved}))) return true;
  }
  return false;
}

}  // namespace isthmus::test

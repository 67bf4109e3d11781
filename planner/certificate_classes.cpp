#include "planner/certificate_classes.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace isthmus {
namespace {

/// Ranks, by mesh position, that have a part of the tensor.
struct SharedPart {
  std::set<std::uint32_t> holders, receivers;  // local ranks
  Int128 bytes = 0;
};

/// Boxes whose elements are alike: regions of one layout are equal or disjoint, so equal boxes are one part.
std::vector<SharedPart> parts_of(const Geometry& geometry) {
  const std::vector<Region> held = geometry.source.regions(), needed = geometry.target.regions();
  std::map<Region, std::vector<std::uint32_t>> sources, targets;
  for (std::size_t i = 0; i < held.size(); ++i)
    sources[held[i]].push_back(geometry.source.mesh.ranks[i].value);
  for (std::size_t i = 0; i < needed.size(); ++i)
    targets[needed[i]].push_back(geometry.target.mesh.ranks[i].value);
  const auto width = element_size(geometry.source.dtype).value;
  std::vector<SharedPart> parts;
  for (const auto& [target, receivers] : targets) {
    for (const auto& [source, holders] : sources) {
      Int128 elements = 1;
      for (std::size_t d = 0; d < target.dimensions; ++d) {
        const auto begin = std::max(source.begin[d], target.begin[d]);
        elements *= std::max<std::int64_t>(0, std::min(source.end[d], target.end[d]) - begin);
      }
      if (elements == 0) continue;
      parts.push_back(
          {{holders.begin(), holders.end()}, {receivers.begin(), receivers.end()}, elements * width});
    }
  }
  return parts;
}

GpuList on_gpus(const Refit& refit, const std::set<std::uint32_t>& locals, Rank base) {
  std::set<std::uint32_t> gpus;
  for (const std::uint32_t local : locals) gpus.insert(refit.gpu(Rank{base.value + local}).value);
  return {gpus.begin(), gpus.end()};
}

}  // namespace

NeededBytes needed_bytes(const Refit& refit) {
  std::map<std::tuple<std::uint32_t, Rank, Rank>, std::int64_t> times;
  for (const RefitEntry& entry : refit.tensors) {
    if (!entry.tensor.copy) ++times[{entry.geometry, entry.source_base, entry.target_base}];
  }
  std::map<std::uint32_t, std::vector<SharedPart>> parts;
  NeededBytes needed;
  for (const auto& [key, count] : times) {
    const auto& [geometry, source_base, target_base] = key;
    if (!parts.contains(geometry)) parts[geometry] = parts_of(refit.geometries[geometry]);
    for (const SharedPart& part : parts[geometry]) {
      GpuList holders = on_gpus(refit, part.holders, source_base);
      GpuList receivers = on_gpus(refit, part.receivers, target_base);
      std::erase_if(receivers, [&](std::uint32_t gpu) {
        return std::find(holders.begin(), holders.end(), gpu) != holders.end();
      });
      if (!receivers.empty()) needed[{std::move(holders), std::move(receivers)}] += part.bytes * count;
    }
  }
  return needed;
}

GpuList acting_gpus(const Refit& refit) {
  std::set<std::uint32_t> acting;
  if (refit.settings.relay == Relay::any) {
    for (std::uint32_t gpu = 0; gpu < refit.fabric.gpu_count(); ++gpu) acting.insert(gpu);
  }
  std::set<std::tuple<std::uint32_t, Rank, Rank>> known;
  for (const RefitEntry& entry : refit.tensors) {
    if (!known.insert({entry.geometry, entry.source_base, entry.target_base}).second) continue;
    const Geometry& geometry = refit.geometries[entry.geometry];
    for (const Rank rank : geometry.source.mesh.ranks)
      acting.insert(refit.gpu(Rank{entry.source_base.value + rank.value}).value);
    for (const Rank rank : geometry.target.mesh.ranks)
      acting.insert(refit.gpu(Rank{entry.target_base.value + rank.value}).value);
  }
  return {acting.begin(), acting.end()};
}

}  // namespace isthmus

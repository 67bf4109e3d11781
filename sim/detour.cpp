#include "sim/detour.hpp"

#include <algorithm>

namespace isthmus::sim {
namespace {

/// The GPUs of a GPU's host that NVLink joins it to, itself first, then round the host.
std::vector<GpuId> neighbours_of(const Fabric& fabric, GpuId gpu) {
  const HostId host = fabric.host_of(gpu);
  const std::size_t count = fabric.gpus_on(host);
  const std::size_t own = gpu.index() - fabric.gpu_at(host, 0).index();
  std::vector<GpuId> result;
  for (std::size_t i = 0; i < count; ++i) {
    const GpuId other = fabric.gpu_at(host, (own + i) % count);
    if (fabric.domain_of(other) == fabric.domain_of(gpu)) result.push_back(other);
  }
  return result;
}

/// Appends the route of one leg; false where there is none, or it is down, or a link would be crossed twice.
bool append_leg(const Fabric& fabric, GpuId from, GpuId to, const std::vector<char>& down,
                std::vector<LinkId>& way) {
  if (from == to) return true;
  if (!fabric.reachable(from, to)) return false;
  for (const LinkId link : fabric.route(from, to)) {
    if (down[link.index()] != 0 || std::find(way.begin(), way.end(), link) != way.end()) return false;
    way.push_back(link);
  }
  return true;
}

}  // namespace

std::optional<std::vector<LinkId>> way_around(const Fabric& fabric, GpuId from, GpuId to,
                                              const std::vector<char>& down) {
  std::vector<LinkId> way;
  if (append_leg(fabric, from, to, down, way)) return way;
  if (fabric.domain_of(from) == fabric.domain_of(to)) return std::nullopt;
  const std::vector<GpuId> exits = neighbours_of(fabric, from), entries = neighbours_of(fabric, to);
  for (std::size_t steps = 1; steps + 1 < exits.size() + entries.size(); ++steps) {
    for (std::size_t e = 0; e < std::min(exits.size(), steps + 1); ++e) {
      if (steps - e >= entries.size()) continue;
      const GpuId exit = exits[e], entry = entries[steps - e];
      way.clear();
      if (append_leg(fabric, from, exit, down, way) && append_leg(fabric, exit, entry, down, way) &&
          append_leg(fabric, entry, to, down, way)) {
        return way;
      }
    }
  }
  return std::nullopt;
}

}  // namespace isthmus::sim

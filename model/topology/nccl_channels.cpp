#include "model/topology/nccl_channels.hpp"

#include <algorithm>
#include <bit>
#include <limits>

namespace isthmus {

namespace {

constexpr std::uint32_t max_rings = 32;

// 10 MB/s, so that every value of NCCL's lists is whole.
constexpr std::int64_t unit = 10'000'000;
using Speeds = std::span<const std::int32_t>;

constexpr std::int32_t speeds_sm90_one[]{6000, 5000, 4000, 3000, 2400, 2000, 1500, 1200, 1100, 600, 300};
constexpr std::int32_t speeds_sm90_several[]{4800, 4500, 4200, 4000, 3000, 2400, 2200, 2000, 1750,
                                             1500, 1200, 600,  300,  240,  120,  24,   12};
constexpr std::int32_t speeds_sm100_one[]{9000, 8000, 7000, 6000, 5000, 4500,
                                          4000, 3000, 2400, 2000, 1900, 1800};
constexpr std::int32_t speeds_sm100_several[]{9600, 8600, 8000, 4800, 4510, 4200, 4000, 3000, 2400, 2200,
                                              2000, 1750, 1500, 1200, 600,  300,  240,  120,  24,   12};
constexpr std::int32_t speeds_older_one[]{4000, 3000, 2000, 1800, 1500, 1200, 1000,
                                          900,  700,  600,  500,  400,  300};
// Not read from the modelled version: the list of earlier ones.
constexpr std::int32_t speeds_older_several[]{4800, 3000, 2800, 2400, 2000, 1800, 1500, 1200, 1000, 900,
                                              700,  600,  500,  400,  300,  240,  120,  24,   12};

Speeds speeds_of(const NcclRingShape& shape) {
  const bool one = shape.domains == 1;
  if (shape.sm >= 100) return one ? Speeds(speeds_sm100_one) : Speeds(speeds_sm100_several);
  if (shape.sm >= 90) return one ? Speeds(speeds_sm90_one) : Speeds(speeds_sm90_several);
  return one ? Speeds(speeds_older_one) : Speeds(speeds_older_several);
}

std::int64_t rings_at(const NcclRingShape& shape, Bandwidth speed) {
  const std::int64_t ranks = shape.ranks_per_domain;
  if (shape.domains == 1) return shape.gpu_capacity.value / speed.value;
  const std::int64_t entries = shape.nets * (shape.gpu_to_net.value / speed.value);
  if (ranks < 2) return entries;
  const Int128 rings = Int128{shape.gpu_capacity.value} * ranks / (Int128{speed.value} * (ranks - 1));
  return std::min(entries, static_cast<std::int64_t>(rings));
}

NcclRings searched_rings(const NcclRingShape& shape) {
  const Bandwidth best = shape.domains == 1 ? shape.gpu_to_gpu : shape.gpu_to_net;
  NcclRings found;
  for (const std::int32_t value : speeds_of(shape)) {
    const Bandwidth speed{value * unit};
    if (speed > best || (shape.ranks_per_domain > 1 && speed > shape.gpu_capacity)) continue;
    const auto rings =
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(rings_at(shape, speed), 0, max_rings));
    if (speed * rings > found.speed * found.rings) found = {rings, speed};
  }
  return found;
}

}  // namespace

NcclRingShape ring_shape(const NcclPaths& paths, std::uint32_t domains) {
  const auto gpus = static_cast<std::uint32_t>(paths.system.gpus.size());
  const auto nets = static_cast<std::uint32_t>(paths.system.nets.size());
  NcclRingShape shape{100'000, domains, gpus, Bandwidth{}, Bandwidth{}, Bandwidth{}, nets};
  Bandwidth least_capacity{std::numeric_limits<std::int64_t>::max()};
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    shape.sm = std::min(shape.sm, paths.system.gpus[gpu].sm);
    Bandwidth best_path{};
    for (std::uint32_t other = 0; other < gpus; ++other) {
      if (other != gpu) best_path = std::max(best_path, paths.between(gpu, other).bandwidth);
    }
    shape.gpu_to_gpu = std::max(shape.gpu_to_gpu, best_path);
    least_capacity = std::min(least_capacity, std::max(best_path, paths.system.gpus[gpu].nvlink));
    for (std::uint32_t net = 0; net < nets; ++net) {
      shape.gpu_to_net = std::max(shape.gpu_to_net, paths.to_net(gpu, net).send.bandwidth);
    }
  }
  if (gpus > 0) shape.gpu_capacity = least_capacity;
  return shape;
}

NcclRings collective_rings(const NcclRingShape& shape) {
  NcclRings found = searched_rings(shape);
  const Bandwidth fast = gigabytes_per_second(50), least = gigabytes_per_second(25);
  const bool keep = shape.sm > 80 && found.speed < fast && found.rings > 4;
  if (found.rings == 0 || found.speed < least || keep) return found;
  return {found.rings * 2, {found.speed.value / 2}};
}

std::uint32_t collective_channels(const NcclRingShape& shape, const NcclSettings& settings) {
  const NcclRings found = collective_rings(shape);
  std::uint32_t channels = std::min(nccl_max_channels, std::max(1u, found.rings) * 2);
  const bool fast = shape.sm >= 90 && shape.domains > 1 && found.speed > gigabytes_per_second(45);
  if (fast && channels < 16) channels *= 2;
  if (settings.max_ctas) channels = std::min(channels, *settings.max_ctas);
  if (settings.min_ctas) channels = std::max(channels, *settings.min_ctas);
  return channels;
}

std::uint32_t p2p_channels(std::uint32_t collective, const NcclSettings& settings) {
  const std::uint32_t wanted =
      std::max(settings.min_p2p_channels, std::min(collective, settings.max_p2p_channels));
  return std::min(std::bit_ceil(wanted), nccl_max_channels);
}

std::uint32_t local_peer_start(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t peer) {
  const NcclPath& path = paths.between(gpu, peer);
  const Bandwidth wire = paths.system.gpus[gpu].nvlink_wire;
  const bool nvlink = path.kind == PathKind::nvl || path.kind == PathKind::nvb;
  if (!nvlink || wire.value <= 0) return 2;
  return 2 * std::max(1u, static_cast<std::uint32_t>(path.bandwidth.value / wire.value));
}

std::uint32_t remote_peer_start(const NcclPaths& paths, std::uint32_t gpu, const NcclSettings& settings) {
  if (settings.channels_per_network_peer) return *settings.channels_per_network_peer;
  const NcclOwnBandwidth own = own_bandwidth(paths, gpu, settings.nic_policy);
  if (own.nets == 0) return 2;
  const std::int64_t whole = own.total.value / 1'000'000'000,
                     each = settings.p2p_per_channel_network_gigabytes;
  return std::max(own.nets, static_cast<std::uint32_t>((whole + each - 1) / each));
}

std::uint32_t least_peer_start(const NcclPaths& paths, std::uint32_t domains, const NcclSettings& settings) {
  std::uint32_t least = nccl_max_channels;
  for (std::uint32_t gpu = 0; gpu < paths.system.gpus.size(); ++gpu) {
    for (std::uint32_t peer = 0; peer < paths.system.gpus.size(); ++peer) {
      if (peer != gpu) least = std::min(least, local_peer_start(paths, gpu, peer));
    }
    if (domains > 1) least = std::min(least, remote_peer_start(paths, gpu, settings));
  }
  return least;
}

std::uint32_t channels_per_peer(std::uint32_t least_start, std::uint32_t total_channels,
                                const NcclCommunicatorSize& size, const NcclSettings& settings) {
  std::uint32_t channels = std::bit_ceil(std::clamp(least_start, 1u, nccl_max_channels));
  if (size.domains <= 1 || settings.channels_per_network_peer) return std::min(channels, total_channels);
  const std::uint64_t peers = settings.max_p2p_peers.value_or(size.ranks);
  while (channels > 1 && channels * ((peers + 7) / 8) > total_channels) channels /= 2;
  return channels;
}

}  // namespace isthmus

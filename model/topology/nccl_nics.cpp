#include "model/topology/nccl_nics.hpp"

#include <algorithm>
#include <bit>

namespace isthmus {

namespace {

/// Whether `a` is as good as `b` for the choice of a device: hops do not count.
bool ties(const NcclPath& a, const NcclPath& b) { return a.bandwidth == b.bandwidth && a.kind == b.kind; }
bool nearer(const NcclPath& a, const NcclPath& b) {
  return a.bandwidth != b.bandwidth ? a.bandwidth > b.bandwidth : a.kind < b.kind;
}

template <class PathOf>
std::vector<std::uint32_t> nearest(std::size_t count, const PathOf& path_of) {
  std::vector<std::uint32_t> best;
  for (std::uint32_t candidate = 0; candidate < count; ++candidate) {
    const NcclPath& path = path_of(candidate);
    if (path.kind == PathKind::dis) continue;
    if (!best.empty() && nearer(path, path_of(best.front()))) best.clear();
    if (best.empty() || ties(path, path_of(best.front()))) best.push_back(candidate);
  }
  return best;
}

std::vector<std::uint32_t> nearest_gpus(const NcclPaths& paths, std::uint32_t net) {
  return nearest(paths.system.gpus.size(),
                 [&](std::uint32_t gpu) -> const NcclPath& { return paths.to_net(gpu, net).send; });
}

std::uint32_t reversed_bits(std::uint32_t value, std::uint32_t bits) {
  std::uint32_t result = 0;
  for (std::uint32_t bit = 0; bit < bits; ++bit) result |= ((value >> bit) & 1u) << (bits - 1 - bit);
  return result;
}

std::uint32_t spread_of(std::uint32_t nets, std::uint32_t gpus, const NcclNicPolicy& policy) {
  switch (policy.kind) {
    case NcclNicPolicy::Kind::all: return nets;
    case NcclNicPolicy::Kind::at_most: return std::min(std::max(1u, policy.most), nets);
    case NcclNicPolicy::Kind::automatic: break;
  }
  return (nets + gpus - 1) / gpus;
}

std::optional<std::uint32_t> gpu_of_dev(const NcclPaths& paths, std::uint32_t host, std::uint32_t dev) {
  for (std::uint32_t gpu = 0; gpu < paths.system.gpus.size(); ++gpu) {
    if (paths.system.gpus[gpu].host == host && paths.system.gpus[gpu].dev == dev) return gpu;
  }
  return std::nullopt;
}

/// The GPU whose proxy may send for `gpu` through this device.
std::optional<std::uint32_t> proxy_for(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t net,
                                       const NcclSettings& settings) {
  const std::uint32_t level = settings.pxn ? settings.pxn_level : 0;
  if (level == 0) return std::nullopt;
  const NcclNetPath& existing = paths.to_net(gpu, net);
  if (level == 1) {
    if (existing.send.kind > PathKind::pxn) return std::nullopt;
    return existing.relay.value_or(gpu);
  }
  const auto owner = owner_of_net(paths, net, settings.nic_policy);
  if (!owner || paths.between(*owner, gpu).kind > PathKind::nvl) return std::nullopt;
  if (paths.system.gpus[*owner].host != paths.system.gpus[gpu].host) return std::nullopt;
  const NcclNetPath& path = paths.to_net(*owner, net);
  if (path.send.kind > (settings.pxn_c2c ? PathKind::p2c : PathKind::pxb)) return std::nullopt;
  return path.gpudirect_send ? owner : std::nullopt;
}

}  // namespace

std::vector<std::uint32_t> own_nets(const NcclPaths& paths, std::uint32_t gpu) {
  return nearest(paths.system.nets.size(),
                 [&](std::uint32_t net) -> const NcclPath& { return paths.to_net(gpu, net).send; });
}

std::optional<std::uint32_t> net_of_channel(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t channel,
                                            const NcclNicPolicy& policy) {
  const std::vector<std::uint32_t> own = own_nets(paths, gpu);
  if (own.empty()) return std::nullopt;
  const auto count = static_cast<std::uint32_t>(own.size());
  const auto sharers = std::max(1u, static_cast<std::uint32_t>(nearest_gpus(paths, own.front()).size()));
  std::uint32_t first = paths.system.gpus[gpu].dev % sharers;
  if (std::has_single_bit(count)) {
    first = reversed_bits(first, static_cast<std::uint32_t>(std::countr_zero(count)));
  }
  return own[(first + channel % spread_of(count, sharers, policy)) % count];
}

std::optional<std::uint32_t> owner_of_net(const NcclPaths& paths, std::uint32_t net,
                                          const NcclNicPolicy& policy) {
  const std::vector<std::uint32_t> candidates = nearest_gpus(paths, net);
  for (std::uint32_t channel = 0; channel < nccl_max_channels; ++channel) {
    for (const std::uint32_t gpu : candidates) {
      if (net_of_channel(paths, gpu, channel, policy) == net) return gpu;
    }
  }
  return std::nullopt;
}

std::optional<NcclSendChoice> sending_net(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t channel,
                                          std::uint32_t target_dev, const NcclSettings& settings) {
  const auto own = net_of_channel(paths, gpu, channel, settings.nic_policy);
  if (!own) return std::nullopt;
  const NcclSendChoice own_choice{*own, paths.to_net(gpu, *own).relay.value_or(gpu)};
  const auto twin = gpu_of_dev(paths, paths.system.gpus[gpu].host, target_dev);
  if (!twin) return own_choice;
  const auto net = net_of_channel(paths, *twin, channel, settings.nic_policy);
  if (!net) return own_choice;
  if (const auto proxy = proxy_for(paths, gpu, *net, settings)) return NcclSendChoice{*net, *proxy};
  return settings.cross_nic == 0 ? NcclSendChoice{*net, gpu} : own_choice;
}

NcclOwnBandwidth own_bandwidth(const NcclPaths& paths, std::uint32_t gpu, const NcclNicPolicy& policy) {
  NcclOwnBandwidth result;
  const auto first = net_of_channel(paths, gpu, 0, policy);
  for (std::uint32_t channel = 0; first && channel < nccl_max_channels; ++channel) {
    const std::uint32_t net = *net_of_channel(paths, gpu, channel, policy);
    if ((channel > 0 && net == *first) || result.total >= paths.gpu_to_cpu[gpu].bandwidth) break;
    ++result.nets;
    result.total += paths.to_net(gpu, net).send.bandwidth;
  }
  return result;
}

}  // namespace isthmus

#include "model/traffic_channels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "model/topology/nccl_channels.hpp"

namespace isthmus {
namespace {

struct Setting {
  std::string_view name;
  void (*set)(NcclSettings&, std::int64_t);
};

/// Counts beyond 32 bits are out of every range that nccl_setting_faults allows.
std::uint32_t count(std::int64_t value) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, 0xFFFFFFFF));
}

constexpr std::array settings_table{
    Setting{"NCCL_MIN_CTAS", [](NcclSettings& s, std::int64_t v) { s.min_ctas = count(v); }},
    Setting{"NCCL_MAX_CTAS", [](NcclSettings& s, std::int64_t v) { s.max_ctas = count(v); }},
    Setting{"NCCL_MIN_P2P_NCHANNELS", [](NcclSettings& s, std::int64_t v) { s.min_p2p_channels = count(v); }},
    Setting{"NCCL_MAX_P2P_NCHANNELS", [](NcclSettings& s, std::int64_t v) { s.max_p2p_channels = count(v); }},
    Setting{"NCCL_NCHANNELS_PER_NET_PEER",
            [](NcclSettings& s, std::int64_t v) { s.channels_per_network_peer = count(v); }},
    Setting{"NCCL_P2P_PER_CHANNEL_NET_BW",
            [](NcclSettings& s, std::int64_t v) { s.p2p_per_channel_network_gigabytes = count(v); }},
    Setting{"NCCL_P2P_MAX_PEERS", [](NcclSettings& s, std::int64_t v) { s.max_p2p_peers = count(v); }},
    Setting{"NCCL_BUFFSIZE", [](NcclSettings& s, std::int64_t v) { s.buffer = Bytes{v}; }},
    Setting{"NCCL_P2P_NET_CHUNKSIZE", [](NcclSettings& s, std::int64_t v) { s.network_chunk = Bytes{v}; }},
    Setting{"NCCL_CHUNK_SIZE", [](NcclSettings& s, std::int64_t v) { s.chunk = Bytes{v}; }}};

}  // namespace

std::vector<std::string_view> nccl_setting_names() {
  std::vector<std::string_view> names;
  for (const Setting& setting : settings_table) names.push_back(setting.name);
  return names;
}

NcclSettings nccl_settings_of(const TrafficSpec& spec) {
  NcclSettings settings;
  for (const Setting& setting : settings_table) {
    const auto given = spec.nccl.find(std::string(setting.name));
    if (given != spec.nccl.end()) setting.set(settings, given->second);
  }
  return settings;
}

std::vector<TrafficDomain> traffic_domains(const Fabric& fabric, const std::vector<GpuId>& gpus) {
  const Topology& topology = fabric.topology();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> place;  // per GPU: block, number in it
  for (std::uint32_t block = 0; block < topology.blocks.size(); ++block) {
    const std::size_t count_here = topology.types[topology.blocks[block]].gpus.size();
    for (std::uint32_t number = 0; number < count_here; ++number) place.emplace_back(block, number);
  }
  std::vector<TrafficDomain> domains;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> known;  // block, partition
  for (const GpuId gpu : gpus) {
    const auto [block, number] = place[gpu.index()];
    const Block& type = topology.types[topology.blocks[block]];
    const std::uint32_t partition = type.hosts == 1 ? 0 : type.gpus[number].partition;
    const auto [at, is_new] = known.try_emplace({block, partition}, domains.size());
    if (is_new) domains.push_back({block, {}, {}});
    domains[at->second].gpus.push_back(gpu);
    domains[at->second].numbers.push_back(number);
  }
  for (TrafficDomain& domain : domains) std::sort(domain.numbers.begin(), domain.numbers.end());
  return domains;
}

std::uint32_t nccl_channels_per_peer(const Fabric& fabric, const std::vector<GpuId>& gpus,
                                     const NcclSettings& settings) {
  const std::vector<TrafficDomain> domains = traffic_domains(fabric, gpus);
  const auto domain_count = static_cast<std::uint32_t>(domains.size());
  std::uint32_t collective = nccl_max_channels, start = nccl_max_channels;
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, bool> seen;
  for (const TrafficDomain& domain : domains) {
    const std::uint32_t type = fabric.topology().blocks[domain.block];
    if (!seen.try_emplace({type, domain.numbers}, true).second) continue;
    const NcclPaths paths = nccl_paths(fabric.topology().types[type], settings, domain.numbers);
    collective = std::min(collective, collective_channels(ring_shape(paths, domain_count), settings));
    start = std::min(start, least_peer_start(paths, domain_count, settings));
  }
  const NcclCommunicatorSize size{static_cast<std::uint32_t>(gpus.size()), domain_count};
  return channels_per_peer(start, p2p_channels(collective, settings), size, settings);
}

}  // namespace isthmus

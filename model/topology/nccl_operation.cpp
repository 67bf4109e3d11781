#include "model/topology/nccl_operation.hpp"

#include <algorithm>

namespace isthmus {

namespace {

constexpr std::int64_t part_alignment = 4096;
constexpr std::uint32_t shared_slots = 16;  // network staging per channel and direction

std::int64_t ceiling(std::int64_t number, std::int64_t divisor) { return (number + divisor - 1) / divisor; }

}  // namespace

Bytes p2p_chunk(const NcclChunkRule& rule, const NcclSettings& settings) {
  raise_all(nccl_setting_faults(settings));
  if (settings.chunk) return *settings.chunk;
  const bool grace = rule.all_arm && rule.sm >= 100;
  const Bytes network = settings.network_chunk.value_or(Bytes{(grace ? 256 : 128) << 10});
  const Bytes local = rule.all_nvlink ? settings.nvlink_chunk : settings.pcie_chunk;
  const Bytes chunk = std::min(rule.domains > 1 ? network : local, nccl_slot(settings));
  return rule.parent ? std::min(chunk, *rule.parent) : chunk;
}

std::uint32_t part_count(Bytes bytes, const NcclCutRule& rule) {
  if (bytes.value == 0) return 1;
  std::uint32_t most_parts = rule.channels_per_peer;
  while (most_parts > 1 && std::uint64_t{most_parts} * rule.ranks > rule.total_channels) most_parts /= 2;
  const bool several = rule.domains > 1;
  const std::int64_t least = std::max<std::int64_t>(1, rule.chunk.value / (several ? 2 : 8));
  const std::int64_t most = several ? rule.chunk.value : rule.chunk.value * 32;
  auto parts = static_cast<std::uint32_t>(std::min<std::int64_t>(most_parts, ceiling(bytes.value, least)));
  std::int64_t length = std::max(least, ceiling(bytes.value, parts));
  while (length > most && parts <= rule.channels_per_peer / 2) {
    parts *= 2;
    length = ceiling(bytes.value, parts);
  }
  return parts;
}

std::vector<NcclPart> parts_of(Bytes bytes, const NcclCutRule& rule) {
  const std::uint32_t count = part_count(bytes, rule);
  const std::int64_t length = ceiling(ceiling(bytes.value, count), part_alignment) * part_alignment;
  std::vector<NcclPart> parts;
  for (std::uint32_t part = 0; part < count; ++part) {
    const std::int64_t begin = std::min(length * part, bytes.value);
    parts.push_back({{begin}, {std::min(length, bytes.value - begin)}});
  }
  return parts;
}

bool uses_ll(Bytes bytes, std::uint32_t parts, bool network, const NcclSettings& settings) {
  if (network && !settings.network_ll_buffers) return false;
  return bytes <= settings.ll_threshold * parts;
}

Bytes network_chunk(Bytes bytes, Bytes chunk) {
  if (bytes < chunk) return {std::max<std::int64_t>(1, chunk.value / 4)};
  return bytes < chunk * 8 ? Bytes{std::max<std::int64_t>(1, chunk.value / 2)} : chunk;
}

std::int64_t network_steps(Bytes part, Bytes bytes, Bytes chunk) {
  return ceiling(part.value, network_chunk(bytes, chunk).value);
}

std::uint32_t chunks_in_flight(std::uint32_t sharers) {
  return std::min(nccl_steps, shared_slots / std::max(1u, sharers));
}

bool zero_copy(const NcclZeroCopy& state) {
  const bool relays = state.pxn && state.local_ranks_nvlink && state.local_ranks > 1;
  return state.registered && state.simple && state.gpudirect && state.own_proxy && !relays;
}

}  // namespace isthmus

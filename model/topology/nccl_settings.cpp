#include "model/topology/nccl_settings.hpp"

#include <string>

#include <fmt/format.h>

namespace isthmus {

namespace {

InputFault fault_of(const std::string& key, std::string found, std::string allowed, std::string change) {
  return {{"", 0, key}, std::move(found), std::move(allowed), std::move(change)};
}

void judge_count(std::vector<InputFault>& faults, const std::string& key, std::uint32_t value,
                 std::uint32_t least, std::uint32_t most) {
  if (value >= least && value <= most) return;
  faults.push_back(fault_of(key, fmt::format("{}", value), fmt::format("{} to {}", least, most),
                            fmt::format("{}={}", key, value < least ? least : most)));
}

void judge_optional(std::vector<InputFault>& faults, const std::string& key,
                    std::optional<std::uint32_t> value, std::uint32_t most) {
  if (value) judge_count(faults, key, *value, 1, most);
}

void judge_positive(std::vector<InputFault>& faults, const std::string& key, std::optional<Bytes> value) {
  if (!value || value->value > 0) return;
  faults.push_back(fault_of(key, fmt::format("{}", value->value), "at least 1 byte", ""));
}

void judge_order(std::vector<InputFault>& faults, const std::string& least_key, std::uint32_t least,
                 const std::string& most_key, std::uint32_t most) {
  if (least <= most) return;
  faults.push_back(fault_of(least_key, fmt::format("{}, above {} = {}", least, most_key, most),
                            fmt::format("at most {}", most), fmt::format("{}={}", least_key, most)));
}

void judge_channels(std::vector<InputFault>& faults, const NcclSettings& settings) {
  const std::uint32_t most = nccl_max_channels;
  judge_optional(faults, "NCCL_MIN_CTAS", settings.min_ctas, most);
  judge_optional(faults, "NCCL_MAX_CTAS", settings.max_ctas, most);
  if (settings.min_ctas && settings.max_ctas) {
    judge_order(faults, "NCCL_MIN_CTAS", *settings.min_ctas, "NCCL_MAX_CTAS", *settings.max_ctas);
  }
  judge_count(faults, "NCCL_MIN_P2P_NCHANNELS", settings.min_p2p_channels, 1, most);
  judge_count(faults, "NCCL_MAX_P2P_NCHANNELS", settings.max_p2p_channels, 1, most);
  judge_order(faults, "NCCL_MIN_P2P_NCHANNELS", settings.min_p2p_channels, "NCCL_MAX_P2P_NCHANNELS",
              settings.max_p2p_channels);
  judge_optional(faults, "NCCL_NCHANNELS_PER_NET_PEER", settings.channels_per_network_peer, most);
  judge_count(faults, "NCCL_P2P_PER_CHANNEL_NET_BW", settings.p2p_per_channel_network_gigabytes, 1, 1 << 20);
  judge_optional(faults, "NCCL_P2P_MAX_PEERS", settings.max_p2p_peers, 1 << 30);
  judge_count(faults, "NCCL_P2P_SCHEDULE_GROUP_SIZE", settings.schedule_group_size, 1, 1 << 20);
  judge_count(faults, "NCCL_P2P_PXN_LEVEL", settings.pxn_level, 0, 2);
  judge_count(faults, "NCCL_CROSS_NIC", settings.cross_nic, 0, 2);
  if (settings.nic_policy.kind == NcclNicPolicy::Kind::at_most) {
    judge_count(faults, "NCCL_NETDEVS_POLICY", settings.nic_policy.most, 1, 1 << 20);
  }
}

/// The other sizes of chunks are cut down to the slot by NCCL; this one it takes as it stands.
void judge_chunk(std::vector<InputFault>& faults, const NcclSettings& settings) {
  const Bytes slot = nccl_slot(settings);
  if (!settings.chunk || *settings.chunk <= slot) return;
  faults.push_back(fault_of(
      "NCCL_CHUNK_SIZE",
      fmt::format("{} bytes, more than a slot of the connection's buffer: the data that arrives is wrong",
                  settings.chunk->value),
      fmt::format("at most NCCL_BUFFSIZE / {} = {}", nccl_steps, slot.value),
      fmt::format("NCCL_CHUNK_SIZE={}", slot.value)));
}

}  // namespace

Bytes nccl_slot(const NcclSettings& settings) { return {settings.buffer.value / nccl_steps}; }

std::vector<InputFault> nccl_setting_faults(const NcclSettings& settings) {
  std::vector<InputFault> faults;
  judge_channels(faults, settings);
  judge_positive(faults, "NCCL_P2P_NET_CHUNKSIZE", settings.network_chunk);
  judge_positive(faults, "NCCL_P2P_NVL_CHUNKSIZE", settings.nvlink_chunk);
  judge_positive(faults, "NCCL_P2P_PCI_CHUNKSIZE", settings.pcie_chunk);
  judge_positive(faults, "NCCL_CHUNK_SIZE", settings.chunk);
  judge_positive(faults, "NCCL_WORK_FIFO_BYTES", settings.work_fifo);
  if (settings.buffer.value < nccl_steps * 8) {
    faults.push_back(fault_of("NCCL_BUFFSIZE", fmt::format("{} bytes", settings.buffer.value),
                              fmt::format("at least {}", nccl_steps * 8), "NCCL_BUFFSIZE=4194304"));
  }
  judge_chunk(faults, settings);
  return faults;
}

}  // namespace isthmus

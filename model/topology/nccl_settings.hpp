#pragma once
// Settings of NCCL that change how send and receive use a machine, with NCCL's defaults. Each member names
// the environment variable that sets it. Where NCCL says "node", this project says domain: the ranks of a
// communicator that NVLink joins (a host; a rack where NVLink spans hosts).
// Invariant (judged by nccl_setting_faults, required of settings that go elsewhere): no chunk is larger than
// a slot of the FIFO, which is buffer / 8 - NCCL itself does not check this for NCCL_CHUNK_SIZE, and the data
// that arrives is then wrong; counts are in the ranges that NCCL can hold.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/input_fault.hpp"
#include "model/topology/nccl_path_kind.hpp"
#include "model/units.hpp"

namespace isthmus {

inline constexpr std::uint32_t nccl_steps = 8;  // slots of a connection's FIFO
inline constexpr std::uint32_t nccl_max_channels = 64;

struct NcclNicPolicy {
  enum class Kind : std::uint8_t { automatic, all, at_most };
  Kind kind = Kind::automatic;
  std::uint32_t most = 1;  // of at_most
  friend bool operator==(const NcclNicPolicy&, const NcclNicPolicy&) = default;
};

struct NcclSettings {
  // Channels
  std::optional<std::uint32_t> min_ctas, max_ctas;         // NCCL_MIN_CTAS, NCCL_MAX_CTAS
  std::uint32_t min_p2p_channels = 1;                      // NCCL_MIN_P2P_NCHANNELS
  std::uint32_t max_p2p_channels = nccl_max_channels;      // NCCL_MAX_P2P_NCHANNELS
  std::optional<std::uint32_t> channels_per_network_peer;  // NCCL_NCHANNELS_PER_NET_PEER
  std::uint32_t p2p_per_channel_network_gigabytes = 14;    // NCCL_P2P_PER_CHANNEL_NET_BW, GB/s
  std::optional<std::uint32_t> max_p2p_peers;              // NCCL_P2P_MAX_PEERS; empty: all ranks
  std::uint32_t schedule_group_size = 8;                   // NCCL_P2P_SCHEDULE_GROUP_SIZE
  // Sizes
  Bytes buffer{4 << 20};               // NCCL_BUFFSIZE, of a connection
  std::optional<Bytes> network_chunk;  // NCCL_P2P_NET_CHUNKSIZE; empty: 128 KiB (ARM with sm100: 256)
  Bytes nvlink_chunk{512 << 10};       // NCCL_P2P_NVL_CHUNKSIZE
  Bytes pcie_chunk{128 << 10};         // NCCL_P2P_PCI_CHUNKSIZE
  std::optional<Bytes> chunk;          // NCCL_CHUNK_SIZE, in place of all of them
  Bytes ll_threshold{16 << 10};        // NCCL_P2P_LL_THRESHOLD, per part
  bool network_ll_buffers = false;     // NCCL_ALLOC_P2P_NET_LL_BUFFERS
  Bytes work_fifo{1 << 20};            // NCCL_WORK_FIFO_BYTES
  // Paths
  bool nvb = true;                          // NCCL_NVB_DISABLE=0: NVLink through one other GPU
  std::optional<PathKind> p2p_level;        // NCCL_P2P_LEVEL, worst kind for GPU to GPU without host memory
  std::optional<PathKind> gpudirect_level;  // NCCL_NET_GDR_LEVEL
  bool gpudirect_c2c = true;                // NCCL_NET_GDR_C2C
  // NICs
  NcclNicPolicy nic_policy{};   // NCCL_NETDEVS_POLICY
  bool pxn = true;              // NCCL_PXN_DISABLE=0
  std::uint32_t pxn_level = 2;  // NCCL_P2P_PXN_LEVEL
  bool pxn_c2c = true;          // NCCL_PXN_C2C
  std::uint32_t cross_nic = 2;  // NCCL_CROSS_NIC
  friend bool operator==(const NcclSettings&, const NcclSettings&) = default;
};

/// Bytes of one slot of a connection's FIFO: no chunk may be larger.
Bytes nccl_slot(const NcclSettings& settings);

/// Every setting that NCCL would not run with, or would run with and deliver wrong data. Keys are the names
/// of the environment variables.
std::vector<InputFault> nccl_setting_faults(const NcclSettings& settings);

}  // namespace isthmus

#pragma once
// How NCCL cuts one send or receive: into parts, one per channel, and a part into chunks, the unit of the
// connection's FIFO. With chunk C, pp channels per peer, T in total:
//   count = pp, halved while count x ranks > T
//   parts = min(count, ceil(bytes / least)), doubled while a part is above the most and parts <= pp / 2;
//           least C / 2 and most C with several domains, else C / 8 and 32 C
//   length of a part = ceil(bytes / parts) rounded up to 4096; the last is shorter, trailing ones empty
//   chunk on the network: C / 4 for an op below C, C / 2 below 8 C, else C
// Invariant: the parts of an op cover it once, in order. p2p_chunk requires settings without faults.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/nccl_settings.hpp"

namespace isthmus {

struct NcclChunkRule {
  std::uint32_t domains = 1;
  bool all_nvlink = true;  // every pair of GPUs of a domain is joined by NVLink
  bool all_arm = false;    // every CPU is of ARM
  std::uint32_t sm = 90;
  std::optional<Bytes> parent{};  // chunk of the communicator whose resources this one shares
};

/// C. Raises InputError with the reason when the settings have faults (a chunk above the slot).
Bytes p2p_chunk(const NcclChunkRule& rule, const NcclSettings& settings = {});

struct NcclCutRule {
  std::uint32_t ranks = 1, domains = 1;
  std::uint32_t total_channels = 16, channels_per_peer = 4;  // T, pp
  Bytes chunk{128 << 10};                                    // C
};

struct NcclPart {
  Bytes offset, length;
  friend bool operator==(const NcclPart&, const NcclPart&) = default;
};

/// Channels that an op of this size uses.
std::uint32_t part_count(Bytes bytes, const NcclCutRule& rule);
std::vector<NcclPart> parts_of(Bytes bytes, const NcclCutRule& rule);

/// The low-latency protocol in place of Simple; `network`: the connection crosses the network, where buffers
/// for it exist only if asked for.
bool uses_ll(Bytes bytes, std::uint32_t parts, bool network, const NcclSettings& settings = {});

/// What one FIFO slot carries of an op of this size over the network, and how many a part takes.
Bytes network_chunk(Bytes bytes, Bytes chunk);
std::int64_t network_steps(Bytes part, Bytes bytes, Bytes chunk);

/// Chunks that one of `sharers` ops of a batch may have on their way on one channel of a NIC.
std::uint32_t chunks_in_flight(std::uint32_t sharers);

/// Whether user buffers go to the NIC without staging, one step per GiB.
struct NcclZeroCopy {
  bool registered = false;         // buffers, on this side
  bool simple = true;              // protocol
  bool gpudirect = true;           // on all channels
  bool own_proxy = true;           // proxy of this process
  bool pxn = true;                 // setting
  bool local_ranks_nvlink = true;  // all local ranks are joined by NVLink
  std::uint32_t local_ranks = 1;
};
bool zero_copy(const NcclZeroCopy& state);

}  // namespace isthmus

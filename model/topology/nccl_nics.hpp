#pragma once
// Which NIC a GPU sends through and receives from. A GPU's own network devices are those with the highest
// path bandwidth, of these those with the best kind; list L in the order of devices. With G the number of
// GPUs that tie for L[0] in the same way:
//   spread = ceil(|L| / G)      (policy `all`: |L|; `at_most k`: min(k, |L|))
//   first  = dev mod G, its bits reversed within log2 |L| bits where |L| is a power of two
//   device of channel c = L[(first + c mod spread) mod |L|]
// A sender looks further: at the device that the GPU with the receiver's number on the sender's host has, so
// that the message enters the network on the receiver's rail (PXN). A receiver always takes its own.
// Invariant: results are positions in NcclPaths::system; equal inputs give equal choices.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <optional>
#include <vector>

#include "model/topology/nccl_paths.hpp"

namespace isthmus {

/// L; empty where no path leads to any network device.
std::vector<std::uint32_t> own_nets(const NcclPaths& paths, std::uint32_t gpu);

/// The device that `gpu` receives from on this channel, and sends through unless PXN says otherwise.
std::optional<std::uint32_t> net_of_channel(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t channel,
                                            const NcclNicPolicy& policy = {});

/// The GPU that uses this device first: by channel, then in the order of GPUs.
std::optional<std::uint32_t> owner_of_net(const NcclPaths& paths, std::uint32_t net,
                                          const NcclNicPolicy& policy = {});

struct NcclSendChoice {
  std::uint32_t net = 0;
  std::uint32_t proxy = 0;  // GPU whose process drives the device; another one than the sender is a relay
  friend bool operator==(const NcclSendChoice&, const NcclSendChoice&) = default;
};

/// `target_dev`: number of the receiving GPU on its own host.
std::optional<NcclSendChoice> sending_net(const NcclPaths& paths, std::uint32_t gpu, std::uint32_t channel,
                                          std::uint32_t target_dev, const NcclSettings& settings = {});

/// How many of its own devices a GPU needs, and what they carry together: walked by channel until their
/// bandwidths reach that of the GPU's path to its CPU, or the list repeats.
struct NcclOwnBandwidth {
  std::uint32_t nets = 0;
  Bandwidth total;
};
NcclOwnBandwidth own_bandwidth(const NcclPaths& paths, std::uint32_t gpu, const NcclNicPolicy& policy = {});

}  // namespace isthmus

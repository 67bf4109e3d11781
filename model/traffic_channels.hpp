#pragma once
// How many channels NCCL gives each peer of a communicator on a fabric, whole blocks or parts of them: the
// rules of model/topology/nccl_channels.hpp, taken over all blocks that its GPUs stand in. A domain is a
// host, or the GPUs of a rack that NVLink joins.
// Equation: pp from the least start and the fewest collective channels over all domains.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md. Settings go by the names of NCCL's variables.

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/fabric.hpp"
#include "model/topology/nccl_settings.hpp"
#include "model/traffic.hpp"

namespace isthmus {

/// The settings that a scenario may give, in order.
std::vector<std::string_view> nccl_setting_names();
/// NCCL's defaults with those that the scenario gives.
NcclSettings nccl_settings_of(const TrafficSpec& spec);

/// The GPUs of one of NCCL's domains: a host or, where NVLink joins several, the part of a rack.
struct TrafficDomain {
  std::uint32_t block = 0;               // of the topology
  std::vector<GpuId> gpus{};             // in the order given
  std::vector<std::uint32_t> numbers{};  // the same, in Block::gpus, ascending
};
/// In the order of the first GPU of each.
std::vector<TrafficDomain> traffic_domains(const Fabric& fabric, const std::vector<GpuId>& gpus);

/// pp of a communicator of these GPUs. Requires settings without faults.
std::uint32_t nccl_channels_per_peer(const Fabric& fabric, const std::vector<GpuId>& gpus,
                                     const NcclSettings& settings);

}  // namespace isthmus

#pragma once
// What the transport's kernels can move where they have so many CTAs on each GPU and no more: one port out of
// a GPU and one into it, each with
//     CTAs x channel_bandwidth   bytes per second,
// which all that leaves (enters) the GPU shares, over NVLink and over the network alike: NCCL's channels copy
// both out of and into their FIFOs.
// Invariant: traffic that is charged to a GPU's port crosses that GPU's own NVLink port, or the link of its
// own that leads to its NIC. GPUs without such a link, because they share it, are charged for NVLink only.

#include <cstdint>
#include <vector>

#include "model/calibration.hpp"
#include "model/fabric.hpp"
#include "sim/network.hpp"

namespace isthmus::sim {

class KernelPorts {
 public:
  /// No limit: nothing is asked.
  KernelPorts() = default;
  /// Adds the ports of all GPUs to the network, unless ctas is 0 or channels are unlimited.
  KernelPorts(const Fabric& fabric, const Calibration& calibration, int ctas, Network& network);

  /// What a flow with these shares of links asks of ports; each of them once.
  std::vector<Usage> asked(const std::vector<Usage>& links) const;
  /// The rate that such a flow has when it is alone there.
  Int128 most(const std::vector<Usage>& links) const;

 private:
  std::int64_t rate_ = 0;
  std::vector<std::uint32_t> port_of_link_;
};

}  // namespace isthmus::sim

#pragma once
// Small blocks (model/topology/topology.hpp) for tests, built by hand: vertices and wires one by one, and the
// machines that NCCL's rules are known for. Rates are nominal, in GB/s per direction.
// Invariant: every wire stands with its way back; vertices are numbered per kind and host.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "model/topology/topology.hpp"

namespace isthmus {

class BlockBuilder {
 public:
  explicit BlockBuilder(std::string name, std::uint32_t hosts = 1);

  /// Vertices, as indices into Block::vertices. A switch without a host is shared.
  std::uint32_t gpu(std::uint32_t host = 0);
  std::uint32_t nic(double rate, std::uint32_t host = 0, std::optional<std::uint32_t> card = std::nullopt);
  std::uint32_t vertex(VertexKind kind, std::optional<std::uint32_t> host = 0);

  /// Both directions; the rate is that of all wires together.
  void wire(WireKind kind, std::uint32_t from, std::uint32_t to, double rate, std::uint32_t wires = 1,
            Evidence evidence = Evidence::vendor);
  void attribute(std::uint32_t vertex, const std::string& name, const std::string& value);

  Block block;

 private:
  std::map<std::pair<VertexKind, std::optional<std::uint32_t>>, std::uint32_t> count_{};
};

struct HgxSpec {
  double nvlink_wire = 25, pcie = 63, nic = 50;
  std::uint32_t gpus_per_nic = 1;
};

/// 8 GPUs on 4 NVSwitch chips (4, 5, 5, 4 wires), one PCIe switch per NIC and its GPUs, two sockets.
Block hgx_host(const HgxSpec& spec = {});
/// 8 GPUs of sm80 with 12 wires, 8 NICs; two of each below every PCIe switch of Gen4.
Block a100_host();
/// A virtual machine: 8 GPUs joined by NVLink and 8 NICs, all directly below one CPU.
Block flat_host();
/// Trays of 4 GPUs, 2 Graces and 4 NICs; NVLink joins the GPUs of all trays over 18 chips.
Block gb200_rack(std::uint32_t trays);

}  // namespace isthmus

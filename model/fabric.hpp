#pragma once
// The machine as a directed graph: GPUs, NVSwitch chips, PCIe switches, CPU sockets, NICs, leaf, spine and
// core switches (model/fabric_graph.hpp; Boost.Graph inside fabric*.cpp only). What the rest of Isthmus sees
// of it is a list of *links* — directed capacities — and routes between GPUs as sequences of links. Parallel
// wires between which the hardware spreads packets (a GPU's NVLinks over the switch chips, a leaf's up-links
// over the spines) form one link.
// Invariants: consecutive links of a route meet; a route inside an NVLink domain uses NVLink only, any other
// one leaves through the GPU's own NIC; equal inputs give equal routes (ties go to the lower vertex number).
// Constants: DGX H100 (vendor): 18 NVLinks x 25 GB/s per GPU over 4 switch chips (4, 5, 5, 4 links), 8 NICs x
// 400 Gbit/s, GPU and NIC under one PCIe Gen5 x16 switch (63 GB/s nominal); SuperPOD: units of 32 hosts, one
// leaf per rail and unit, 32 links up; spines so that host and spine side match. All presets: docs/fabric.md.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

struct FabricGraph;  // model/fabric_graph.hpp

enum class LinkClass : std::uint8_t { nvlink, pcie, nic, switch_uplink };
std::string_view to_string(LinkClass link_class);

/// One directed capacity. `nominal` is the data sheet's rate; what a transfer achieves of it is calibration.
struct Link {
  std::string name;  // "NIC out of GPU 3 on host 12"
  LinkClass link_class = LinkClass::nvlink;
  Bandwidth nominal;
};

/// What a scenario says about the fabric.
struct FabricSpec {
  std::string preset = "dgx-h100-superpod";   // see fabric_presets()
  int hosts = 1;                              // hosts of the preset (NVL72: compute trays of 4 GPUs)
  std::optional<Bandwidth> nic_bandwidth;     // overrides the preset, per direction
  std::optional<Bandwidth> nvlink_bandwidth;  // per GPU and direction
  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

struct FabricPreset {
  std::string_view name;
  std::string_view summary;  // "units of 32 DGX H100 hosts behind rail-aligned leaves"
};
std::vector<FabricPreset> fabric_presets();

class Fabric {
 public:
  /// Builds a preset. Raises InputError (key fabric.*) for an unknown preset, hosts outside 1 ... 65536, a
  /// rate <= 0.
  explicit Fabric(const FabricSpec& spec);
  ~Fabric();
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(Fabric&&) noexcept;

  std::size_t host_count() const;
  std::size_t gpu_count() const;
  std::size_t nic_count() const;
  std::size_t domain_count() const;
  std::size_t gpus_per_host() const;
  /// NVLink domains are the components that NVLink joins; a GPU without NVLink is a domain of its own.
  DomainId domain_of(GpuId gpu) const;
  HostId host_of(GpuId gpu) const;
  /// GPUs of a host in local order: host h holds GPUs h*g ... h*g + g - 1.
  GpuId gpu_at(HostId host, std::size_t local) const;

  const std::vector<Link>& links() const;
  /// A GPU's own ports, for bounds and collectives: NVLink (nullopt without NVLink) and NIC, out and in.
  std::optional<LinkId> nvlink_out(GpuId gpu) const;
  std::optional<LinkId> nvlink_in(GpuId gpu) const;
  LinkId nic_out(GpuId gpu) const;
  LinkId nic_in(GpuId gpu) const;

  /// The links that a transfer crosses, in order; empty for from == to. Shortest paths, NVLink preferred:
  /// found by the constructor per kind of host and per pair of pods, joined here. Safe from any thread.
  std::vector<LinkId> route(GpuId from, GpuId to) const;
  /// Switches of the scale-out network on the route: 0 inside an NVLink domain, 1 below one leaf, 3 over a
  /// spine, 5 over a core.
  int switch_hops(GpuId from, GpuId to) const;

  /// All vertices and edges, expanded on demand; for exporters and tests.
  FabricGraph graph() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isthmus

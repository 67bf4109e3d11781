#pragma once
// The machine as a directed graph: GPUs, NVSwitch chips, PCIe switches, CPU sockets, NICs, leaf, spine and
// core switches. What the rest of Isthmus sees of it is a list of *links* — directed capacities — and routes
// between GPUs as sequences of links. Wires between which the hardware spreads packets (a GPU's NVLinks over
// the switch chips, a leaf's up-links over the spines) form one link. Built from a topology
// (model/topology/topology.hpp), which presets, files and edits make (model/fabric_spec.hpp).
// Invariants: consecutive links of a route meet; a route inside an NVLink domain uses NVLink only, one
// between hosts leaves through the GPU's own NIC (with PXN: its host's NIC on the destination's rail); equal
// topologies give equal routes. Graph algorithms are Boost.Graph's, inside .cpp files only.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fabric_spec.hpp"
#include "model/topology/topology.hpp"
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

class Fabric {
 public:
  /// Requires a topology without topology_faults and without unknown rates.
  explicit Fabric(Topology topology);
  /// The topology of a specification; raises what build_topology raises.
  explicit Fabric(const FabricSpec& spec, const std::filesystem::path& directory = {});
  ~Fabric();
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(Fabric&&) noexcept;

  const Topology& topology() const;
  std::size_t host_count() const;
  std::size_t gpu_count() const;
  std::size_t domain_count() const;
  std::size_t gpus_on(HostId host) const;
  /// NVLink domains are what NVLink joins; a GPU without NVLink is a domain of its own.
  DomainId domain_of(GpuId gpu) const;
  HostId host_of(GpuId gpu) const;
  /// GPUs of a host in local order; hosts hold GPUs one after the other.
  GpuId gpu_at(HostId host, std::size_t local) const;

  const std::vector<Link>& links() const;
  /// A GPU's own ports, for bounds and collectives; nullopt without NVLink, or without a NIC.
  std::optional<LinkId> nvlink_out(GpuId gpu) const;
  std::optional<LinkId> nvlink_in(GpuId gpu) const;
  std::optional<LinkId> nic_out(GpuId gpu) const;
  std::optional<LinkId> nic_in(GpuId gpu) const;
  /// The switch that its NIC is plugged into, as an index of the topology's network; nullopt without one.
  std::optional<std::uint32_t> switch_of(GpuId gpu) const;

  /// The links by which traffic leaves (enters) a GPU's NVLink domain at this GPU: its NIC's, or what joins
  /// it to its host where other domains can be reached there. GPUs may share a NIC; empty where nothing
  /// leaves.
  std::vector<LinkId> exit_links(GpuId gpu, bool out) const;

  /// Whether any way leads from one to the other.
  bool reachable(GpuId from, GpuId to) const;
  /// The links that a transfer crosses, in order; empty for from == to. Found by the constructor per kind of
  /// block and of leaf, joined here. Safe from any thread. Raises InputError (key fabric) where no way leads.
  std::vector<LinkId> route(GpuId from, GpuId to) const;
  /// Switches of the scale-out network on the route: 0 inside a host or NVLink domain, 1 below one leaf, 3
  /// over a spine, 5 over a core. Raises as route does.
  int switch_hops(GpuId from, GpuId to) const;

  /// All vertices and edges, expanded on demand; for exporters and tests.
  FabricGraph graph() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isthmus

#pragma once
// Internal to model/fabric*.cpp: what a preset says, before it is multiplied out. A fabric is a row of
// *blocks* (the parts that NVLink ends at: an HGX host, an NVL72 rack), all alike but perhaps the last, above
// which stands one *network* of switches. Hence routes are found once per kind of block and once per pair of
// pods.
// Invariants: GPU i of a block is its vertex i; NIC i stands beside GPU i in link numbers and rails; each GPU
// owns PortLink::count links: link p of GPU i of a block is PortLink::count * i + p, counted from the block's
// first link.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fabric.hpp"
#include "model/fabric_graph.hpp"

namespace isthmus {

struct PortLink {
  enum Number : std::uint32_t { nvlink_out, nvlink_in, pcie_out, pcie_in, nic_out, nic_in, count };
};

struct PartVertex {
  VertexKind kind = VertexKind::gpu;
  std::optional<std::uint32_t> host;  // within the block; empty for what the hosts of the block share
  std::uint32_t index = 0;            // within that host, or within the block
};

/// Vertex and link numbers of its edges count from the block's first.
struct PartBlock {
  std::uint32_t hosts = 1;
  std::uint32_t gpus_per_host = 0;
  Bandwidth nvlink, pcie, nic;          // per GPU and direction
  std::string_view pcie_name = "PCIe";  // what joins a GPU to its host: "PCIe" or "C2C"
  std::vector<PartVertex> vertices;
  std::vector<FabricEdge> edges;
  std::vector<std::uint32_t> nic_vertices;  // by NIC number

  std::uint32_t gpus() const { return hosts * gpus_per_host; }
  std::uint32_t links() const { return gpus() * PortLink::count; }
};

/// Leaves, spines and cores. Consecutive hosts form a group (a unit, a rack) with leaves of its own, one per
/// rail. Where there are cores, 32 leaves form a pod with spines of its own; otherwise all leaves are one
/// pod. A leaf has `leaf_spine_wires` to each spine of its pod. Spine s of every pod has `spine_core_wires`
/// to each of the cores s * cores_per_spine ... (s + 1) * cores_per_spine - 1.
struct PartNetwork {
  std::string_view group_name = "unit";
  std::uint32_t hosts_per_group = 0, leaves_per_group = 1, leaves = 1;
  std::uint32_t pods = 1, leaves_per_pod = 1;
  std::uint32_t spines_per_pod = 0, leaf_spine_wires = 0;
  std::uint32_t cores_per_spine = 0, spine_core_wires = 0;
  Bandwidth wire;  // per direction

  std::uint32_t spines() const { return pods * spines_per_pod; }
  std::uint32_t cores() const { return spines_per_pod * cores_per_spine; }
  std::uint32_t leaf_of(std::uint32_t host, std::uint32_t rail) const {
    return host / hosts_per_group * leaves_per_group + rail % leaves_per_group;
  }
  std::uint32_t pod_of(std::uint32_t leaf) const { return leaf / leaves_per_pod; }
};

struct FabricParts {
  std::uint32_t hosts = 0;
  PartBlock block;                // every block but perhaps the last
  std::optional<PartBlock> last;  // a rack that is not full
  PartNetwork network;

  std::uint32_t blocks() const { return (hosts + block.hosts - 1) / block.hosts; }
  const PartBlock& block_at(std::uint32_t number) const {
    return last && number + 1 == blocks() ? *last : block;
  }
  std::uint32_t gpus() const { return hosts * block.gpus_per_host; }
  // Links of all GPUs, then up and down of each leaf, then up and down of each pod's spines.
  std::uint32_t leaf_link(std::uint32_t leaf) const { return gpus() * PortLink::count + 2 * leaf; }
  std::uint32_t pod_link(std::uint32_t pod) const { return leaf_link(network.leaves) + 2 * pod; }
};

/// Raises InputError as Fabric's constructor does.
FabricParts describe(const FabricSpec& spec);

/// Routes inside one type of block; link numbers count from the block's first.
struct BlockRoutes {
  using Links = std::vector<std::uint32_t>;
  std::vector<std::uint32_t> domain;  // per GPU
  std::uint32_t domains = 0;
  std::vector<std::uint32_t> nic;   // per GPU: its own NIC
  std::vector<Links> leave, enter;  // per GPU: through its NIC to the leaf, and from there
  std::vector<Links> inside;        // [from * gpus + to], empty between domains
};
BlockRoutes find_routes(const PartBlock& block);

/// Links between pods, [from * pods + to]; empty on the diagonal.
std::vector<std::vector<LinkId>> find_pod_routes(const FabricParts& parts);

std::vector<Link> make_links(const FabricParts& parts);
FabricGraph expand(const FabricParts& parts);

}  // namespace isthmus

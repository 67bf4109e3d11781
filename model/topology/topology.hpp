#pragma once
// A machine as plain values: what presets build, importers read, JSON holds and edits change, before Fabric
// (model/fabric.hpp) derives links and routes from it. A topology is a row of *blocks* - the parts that
// NVLink ends at: an HGX host, an NVL72 rack - of few types, and a network of switches above their NICs.
// Order: GPU n of the fabric is the n-th GPU vertex, block after block; hosts and NICs likewise; the GPUs of
// a block stand host by host.
// Invariants (judged by topology_faults): indices are in range; `from != to`; a wire's way back stands beside
// it as a wire of its own; `rate` is that of all `wires` of the record together, per direction, nominal;
// a rate of 0 means that the source does not say, and Fabric asks for it. Achieved rates are calibration.
// Constants: none here; model/topology/presets*.cpp carries them, docs/fabric.md their sources.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

enum class VertexKind : std::uint8_t { gpu, nvswitch, pcie_switch, cpu, nic, leaf, spine, core, gateway };
std::string_view to_string(VertexKind kind);

/// What a number rests on. vendor: its documentation; published: a named third party; derived: arithmetic on
/// those; nccl: what NCCL plans with; inferred: our judgement; file: the imported file; user: the scenario.
enum class Evidence : std::uint8_t { vendor, published, derived, nccl, inferred, file, user };
std::string_view to_string(Evidence evidence);

/// Kinds of wires inside a block. c2c joins a GPU and its Grace; socket joins two CPUs.
enum class WireKind : std::uint8_t { nvlink, c2c, pcie, socket };
std::string_view to_string(WireKind kind);

struct BlockVertex {
  VertexKind kind = VertexKind::gpu;
  std::optional<std::uint32_t> host;  // within the block; empty for what the hosts of the block share
  std::uint32_t index = 0;            // among its kind on that host, or among the shared ones
  std::string label{};                // its name in the file it comes from ("mlx5_3"); empty in presets
  std::map<std::string, std::string> attributes{};  // what such a file says of it, by NCCL's attribute names
  friend bool operator==(const BlockVertex&, const BlockVertex&) = default;
};

struct BlockWire {
  std::uint32_t from = 0, to = 0;  // index into Block::vertices
  WireKind kind = WireKind::nvlink;
  std::uint32_t wires = 1;
  Bandwidth rate;
  Evidence evidence = Evidence::vendor;
  friend bool operator==(const BlockWire&, const BlockWire&) = default;
};

/// Settings of a GPU, in the order of the GPU vertices.
struct BlockGpu {
  std::uint32_t vertex = 0;
  std::uint32_t partition = 0;       // NVLink is used between GPUs of the same partition only
  bool gpudirect = true;             // NIC traffic goes past host memory
  std::optional<std::uint32_t> nic;  // number of the NIC it is told to use; empty: the nearest
  friend bool operator==(const BlockGpu&, const BlockGpu&) = default;
};

/// Settings of a network port, in the order of the NIC vertices. Ports of one card act as one NIC, as NCCL
/// merges them.
struct BlockNic {
  std::uint32_t vertex = 0;
  std::uint32_t rail = 0;
  std::uint32_t card = 0;  // ports with equal numbers on one host share a card
  Bandwidth rate;          // of the port, per direction
  Evidence evidence = Evidence::vendor;
  friend bool operator==(const BlockNic&, const BlockNic&) = default;
};

struct Block {
  std::string name;  // "DGX H100 host"
  std::uint32_t hosts = 1;
  bool nvlink_known = true;  // false: the source does not say how NVLink joins the GPUs
  std::vector<BlockVertex> vertices{};
  std::vector<BlockWire> wires{};
  std::vector<BlockGpu> gpus{};
  std::vector<BlockNic> nics{};
  friend bool operator==(const Block&, const Block&) = default;
};

/// A switch of the network. Tiers count upwards: leaf, spine, core, gateway (the far end of the stated link
/// between two parts of a fabric).
struct NetworkSwitch {
  VertexKind tier = VertexKind::leaf;
  std::string name;  // "leaf 3 of unit 1"
  friend bool operator==(const NetworkSwitch&, const NetworkSwitch&) = default;
};

/// Parallel cables between switches of different tiers; used in both directions.
struct NetworkCable {
  std::uint32_t low = 0, high = 0;  // index into Network::switches; `high` is of the higher tier
  std::uint32_t wires = 1;
  Bandwidth wire;  // of each, per direction
  Evidence evidence = Evidence::vendor;
  friend bool operator==(const NetworkCable&, const NetworkCable&) = default;
};

struct Network {
  std::vector<NetworkSwitch> switches{};
  std::vector<NetworkCable> cables{};
  friend bool operator==(const Network&, const Network&) = default;
};

/// How traffic finds its way: what software decides on such a machine.
struct Routing {
  bool pxn = false;        // leave through the NIC of the host's GPU on the destination's rail (NCCL's PXN)
  bool hashed = false;     // each pair keeps to one wire of every bundle (Ethernet), else all wires share
  std::uint64_t seed = 0;  // of the hash
  friend bool operator==(const Routing&, const Routing&) = default;
};

inline constexpr std::uint32_t no_switch = 0xFFFFFFFF;

struct Topology {
  std::string name;
  bool gpus_known = true;               // false: the source lists no GPUs at all (InfiniBand only)
  std::vector<Block> types{};           // kinds of blocks
  std::vector<std::uint32_t> blocks{};  // the type of each block, in order
  Network network{};
  std::vector<std::uint32_t> switch_of_nic{};  // per NIC of the fabric; no_switch: its cable is not plugged
  Routing routing{};
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Something in plain words that a user should look at: "GPU 2 has no NVLink, its host's other GPUs do".
struct Finding {
  std::string code;  // stable, for filters: "gpu-without-nvlink"
  std::string text;
  friend bool operator==(const Finding&, const Finding&) = default;
};

struct ImportedTopology {
  Topology topology;
  std::vector<Finding> findings;  // what the file leaves open or what looks wrong in it
};

}  // namespace isthmus

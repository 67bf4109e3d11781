#pragma once
// What a scenario says about the fabric, and the topology that follows from it: a preset or an imported host,
// multiplied behind a network, or several such parts joined by a stated link; then edits, in order.
// Presets are DGX and HGX hosts (H100, H200, B200, B300) and NVL72 racks (GB200, GB300); their numbers and
// sources stand in docs/fabric.md.
// Invariant: equal specifications (and files) give equal topologies; everything that a specification asks for
// and the machine does not have is an InputError with the key under `fabric`.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology.hpp"
#include "model/units.hpp"

namespace isthmus {

/// One change to the finished topology. Empty lists mean all; numbers that the machine lacks are refused.
struct FabricEdit {
  enum class Action : std::uint8_t { remove, degrade, disable, swap, cut };
  // remove, degrade: nic, nvlink, nvswitch, uplink, pcie (degrade only); remove: leaf, spine;
  // disable: gpudirect, pxn, mnnvl; swap: nics; cut: domain.
  enum class Subject : std::uint8_t {
    nic,
    nvlink,
    nvswitch,
    uplink,
    pcie,
    leaf,
    spine,
    gpudirect,
    pxn,
    mnnvl,
    nics,
    domain
  };
  Action action = Action::remove;
  Subject subject = Subject::nic;
  std::vector<int> hosts{};        // of the fabric
  std::vector<int> gpus{};         // local numbers, also of the NICs beside them (a rail); swap: exactly two;
  std::vector<int> switches{};     // NVSwitch chips of a block, leaves or spines of the fabric
  std::optional<int> wires{};      // so many wires of each, instead of all
  std::optional<double> factor{};  // degrade: to this share of the rate, above 0 and below 1
  std::optional<Bandwidth> bandwidth{};  // or to this rate per direction (nic, pcie)
  std::optional<int> size{};             // cut: GPUs of each partition
  friend bool operator==(const FabricEdit&, const FabricEdit&) = default;
};

/// superpod: leaves, spines and cores as the preset's vendor cables them; one_switch: a single non-blocking
/// switch; rails: one switch per rail and nothing between the rails.
enum class NetworkKind : std::uint8_t { superpod, one_switch, rails };

struct FabricSpec {
  std::string preset = "dgx-h100-superpod";     // see fabric_presets()
  int hosts = 1;                                // hosts of the preset (NVL72: compute trays of 4 GPUs)
  std::optional<Bandwidth> nic_bandwidth{};     // overrides the preset or fills in for a file; per direction
  std::optional<Bandwidth> nvlink_bandwidth{};  // per GPU and direction
  std::optional<Bandwidth> pcie_bandwidth{};    // GPU to its host, per direction
  std::string import_file{};             // key `import`: a host from a topology file in place of the preset's
  std::optional<NetworkKind> network{};  // unset: the preset's; one switch for a file
  double oversubscription = 1;           // bandwidth down over bandwidth up at the leaves, from 1 on
  std::optional<int> gpus_per_rack{};    // NVL72: GPUs in use of each rack
  Routing routing{};
  std::vector<FabricEdit> edits{};
  std::vector<FabricSpec> parts{};            // in place of preset and hosts; their hosts are numbered on
  std::optional<Bandwidth> join_bandwidth{};  // of the link between the parts, per direction
  friend bool operator==(const FabricSpec&, const FabricSpec&) = default;
};

struct FabricPreset {
  std::string_view name;
  std::string_view summary;  // "units of 32 DGX H100 hosts behind rail-aligned leaves"
};
std::vector<FabricPreset> fabric_presets();

/// `directory`: where relative names of imported files begin. Raises InputError (key fabric.*) for an unknown
/// preset, hosts outside 1 ... 65536, a rate outside 1 MB/s ... 10 TB/s, oversubscription without leaves
/// below spines, edits of what is not there, and for what the readers of topology files refuse.
Topology build_topology(const FabricSpec& spec, const std::filesystem::path& directory = {});

}  // namespace isthmus

#pragma once
// Internal to model/topology/nccl_xml*.cpp: an NCCL system XML as a list of items, one per vertex, in the
// order of the file, before NVLink is matched and vertices get their order.
// Invariants: a parent stands before its children; a CPU has none; every other item has at least one, and
// only a NIC that the file repeats under several CPUs has more. A `pci` with one `gpu`, or one `nic` of one
// `net`, is one item with the attributes of both; a `pci` with several (a split GPU, a card of two ports)
// is an item of its own, so that what they share counts once. Attributes go by element and name:
// "pci.busid", "gpu.sm".

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/importers.hpp"

namespace isthmus {

/// Findings that differ only in what they are about become one, which names some and counts the rest.
class NcclFindings {
 public:
  /// "GPU 0, GPU 1 and 6 more: " and `text`.
  void add(std::string_view code, const std::string& place, std::string_view text);
  std::vector<Finding> take() const;

 private:
  struct Group {
    std::string code, text;
    std::vector<std::string> places;  // the first ones
    std::set<std::string> all;
  };
  std::vector<Group> groups_;
  std::map<std::pair<std::string, std::string>, std::size_t> index_;  // by code and text
};

struct NvlinkRecord {
  std::string target, target_class;
  std::uint32_t count = 0;
};

struct C2cRecord {
  std::int64_t megabytes = 0;  // per second and link
  std::uint32_t count = 0;
};

struct NcclItem {
  VertexKind kind = VertexKind::pcie_switch;
  std::uint32_t host = 0;
  std::vector<std::uint32_t> parents{};
  std::string label{};
  std::map<std::string, std::string> attributes{};
  Bandwidth rate{};  // of the wire to each parent
  Evidence evidence = Evidence::file;
  std::optional<std::uint64_t> id{};  // of its busid
  std::optional<std::int64_t> dev{}, mlopart{}, port{}, sm{};
  std::uint64_t guid = 0;
  bool gdr = true, xgmi = false;
  Bandwidth nic_rate{};
  Evidence nic_evidence = Evidence::file;
  std::vector<NvlinkRecord> nvlinks{};
  std::optional<C2cRecord> c2c{};
  std::vector<std::string> peers{};  // targets of its pcilink elements
};

struct NcclHost {
  std::size_t elements = 1, cpus = 0;       // the system element counts for each
  bool has_gpus = false, has_nets = false;  // elements; otherwise classes decide
};

struct NcclSystem {
  std::string name;
  std::vector<NcclHost> hosts;
  std::vector<NcclItem> items;
  NcclFindings findings;
};

/// "GPU 0", "mlx5_3", "0000:a1:00.0"; with several hosts "mlx5_3 of host 2".
std::string place_of(const NcclSystem& system, const NcclItem& item);

/// All hexadecimal digits in a row, as NCCL numbers them; nullopt for what is no busid.
std::optional<std::uint64_t> busid_number(std::string_view busid);
/// NCCL's word for an NVSwitch that it cannot see.
bool is_hidden_switch(std::string_view busid);

NcclSystem read_nccl_items(std::string_view text, const std::string& file);

/// Puts the items into the order of vertices: host by host, first GPUs by dev, then NICs by dev, then the
/// rest as the file has it. Where dev is missing or equal, the busid decides.
void sort_items(NcclSystem& system);

// The items are the block's vertices from here on, in the same order.

/// Adds NVLink wires, and vertices for the NVSwitches behind all others.
void add_nvlinks(NcclSystem& system, Block& block);

/// Adds findings on the whole, and sets BlockGpu::gpudirect.
void inspect(NcclSystem& system, Block& block);

}  // namespace isthmus

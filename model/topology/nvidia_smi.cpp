// `nvidia-smi topo -m` as a block. NVLink: GPUs that NV<k> cells join form an island. No GPU has more than
// 18 NVLinks to other GPUs directly, so an island in which some GPU's cells add up to more hangs on NVSwitch,
// and k is then the number of links of a GPU in all, not per pair. PCIe: PIX is one switch, PXB a switch
// above such switches, everything else meets at a CPU. CPUs are NUMA affinities.

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "model/topology/importers.hpp"
#include "model/topology/nvidia_smi_matrix.hpp"
#include "model/topology/nvidia_smi_places.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t most_direct_links = 18;

class SmiBlock {
 public:
  SmiBlock(const SmiMatrix& matrix, Findings& findings)
      : matrix_(matrix), findings_(findings), vertex_of_(matrix.devices.size()) {}

  Block build() {
    block_.name = "host of nvidia-smi topo -m";
    add_devices(true);
    for (std::size_t i = 0; i < matrix_.devices.size(); ++i)
      if (matrix_.devices[i].gpu) block_.gpus.push_back({vertex_of_[i], 0, true, std::nullopt});
    add_nvlink();
    add_tree();
    return std::move(block_);
  }

 private:
  void add_devices(bool gpus);
  void add_nvlink();
  void add_island(const std::vector<std::size_t>& island);
  void add_switched(const std::vector<std::size_t>& island);
  void add_direct(const std::vector<std::size_t>& island);
  void report_islands(const std::vector<std::vector<std::size_t>>& islands);
  void add_tree();
  void add_pcie_parts(const SmiPlaces& places, const std::vector<std::uint32_t>& cpus);
  void add_nics();
  void report_far_gpus(const std::vector<std::size_t>& nics);
  void wire(std::uint32_t from, std::uint32_t to, WireKind kind, std::uint32_t wires = 1) {
    join(block_, {from, to, kind, wires, Bandwidth{}, Evidence::file});
  }
  std::vector<std::string> names_of(const std::vector<std::size_t>& devices) const {
    std::vector<std::string> names;
    for (const std::size_t device : devices) names.push_back(matrix_.devices[device].name);
    return names;
  }

  const SmiMatrix& matrix_;
  Findings& findings_;
  Block block_;
  std::vector<std::uint32_t> vertex_of_;  // of each device
};

void SmiBlock::add_devices(bool gpus) {
  for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
    const MatrixDevice& device = matrix_.devices[i];
    if (device.gpu == gpus)
      vertex_of_[i] = add_vertex(block_, gpus ? VertexKind::gpu : VertexKind::nic, 0, device.label);
  }
}

void SmiBlock::add_nvlink() {
  const std::vector<std::vector<std::size_t>> islands = nvlink_islands(matrix_);
  for (const std::vector<std::size_t>& island : islands)
    if (island.size() > 1) add_island(island);
  report_islands(islands);
}

void SmiBlock::add_island(const std::vector<std::size_t>& island) {
  for (const std::size_t gpu : island) {
    std::uint32_t links = 0;
    for (const std::size_t peer : island) links += matrix_.at(gpu, peer).links;
    if (links > most_direct_links) return add_switched(island);
  }
  add_direct(island);
}

void SmiBlock::add_switched(const std::vector<std::size_t>& island) {
  const std::uint32_t chips = add_vertex(block_, VertexKind::nvswitch, 0, "chips not visible");
  std::vector<std::uint32_t> links(matrix_.devices.size());
  for (const std::size_t gpu : island)
    for (const std::size_t peer : island) links[gpu] = std::max(links[gpu], matrix_.at(gpu, peer).links);
  std::uint32_t most = 0;
  for (const std::size_t gpu : island) {
    most = std::max(most, links[gpu]);
    wire(vertex_of_[gpu], chips, WireKind::nvlink, links[gpu]);
  }
  std::size_t uneven = 0;
  for (const std::size_t gpu : island) {
    if (links[gpu] < most) {
      findings_.add("gpu-short-of-nvlinks",
                    fmt::format("{} shows NV{} at best, other GPUs of its island NV{}",
                                matrix_.devices[gpu].name, links[gpu], most));
    }
    for (const std::size_t peer : island)
      uneven += peer != gpu && matrix_.at(gpu, peer).links != std::min(links[gpu], links[peer]) ? 1U : 0U;
  }
  if (uneven > 0) {
    findings_.add("nvlink-uneven",
                  fmt::format("{} pairs of GPUs on one switch fabric show fewer NVLinks than "
                              "both of them have: read as if all reached each other",
                              uneven / 2));
  }
  findings_.add("nvswitch-not-visible",
                fmt::format("{} GPUs on NVSwitch: how many chips there are and how a GPU's links spread over "
                            "them is not in the file; one vertex stands for all",
                            island.size()));
}

void SmiBlock::add_direct(const std::vector<std::size_t>& island) {
  for (const std::size_t gpu : island)
    for (const std::size_t peer : island)
      if (gpu < peer && matrix_.at(gpu, peer).links > 0)
        wire(vertex_of_[gpu], vertex_of_[peer], WireKind::nvlink, matrix_.at(gpu, peer).links);
  findings_.add(
      "nvlink-read-as-direct",
      fmt::format("{} are read as joined by NVLink directly, pair by pair: no GPU shows more than {} "
                  "links; a few GPUs of a machine with NVSwitch would look the same",
                  listed(names_of(island)), most_direct_links));
}

void SmiBlock::report_islands(const std::vector<std::vector<std::size_t>>& islands) {
  std::vector<std::size_t> alone;
  std::string sizes;
  std::size_t joined = 0;
  for (const std::vector<std::size_t>& island : islands) {
    if (island.size() == 1) alone.push_back(island.front());
    if (island.size() == 1) continue;
    sizes += fmt::format("{}{}", joined == 0 ? "" : " + ", island.size());
    ++joined;
  }
  if (joined == 0) {
    if (alone.size() > 1) findings_.add("no-nvlink", "no GPU is joined to another by NVLink");
    return;
  }
  const std::string others = alone.size() == 1 ? "1" : fmt::format("{} x 1", alone.size());
  for (const std::size_t gpu : alone) {
    findings_.add(
        "gpu-without-nvlink",
        fmt::format("{} has no NVLink, other GPUs of the host have: read as {} + {}, {} reaching the "
                    "others over PCIe only; if that is a fault of the machine, plan without it",
                    matrix_.devices[gpu].name, sizes, others, matrix_.devices[gpu].name));
  }
  if (joined > 1)
    findings_.add("nvlink-islands", fmt::format("NVLink joins the GPUs in islands of {}", sizes));
}

void SmiBlock::add_tree() {
  const SmiPlaces places = find_places(matrix_, findings_);
  std::vector<std::uint32_t> cpus;
  for (const SmiCpu& cpu : places.cpus) {
    cpus.push_back(add_vertex(block_, VertexKind::cpu, 0, cpu.label));
    if (!cpu.numa_id.empty()) block_.vertices.back().attributes["numaid"] = cpu.numa_id;
  }
  add_devices(false);
  add_nics();
  add_pcie_parts(places, cpus);
  for (std::size_t a = 0; a < cpus.size(); ++a)
    for (std::size_t b = a + 1; b < cpus.size(); ++b) wire(cpus[a], cpus[b], WireKind::socket);
}

/// A part of one switch hangs on its CPU by that switch. Of several, all (but the last of two) keep a switch
/// of their own below a common one: the way from one to another passes two switches at least, as PXB says.
void SmiBlock::add_pcie_parts(const SmiPlaces& places, const std::vector<std::uint32_t>& cpus) {
  for (const SmiPart& part : places.parts) {
    const std::uint32_t cpu = cpus[part.cpu];
    const std::size_t groups = part.groups.size();
    if (groups == 1 && part.groups[0].size() == 1) {
      wire(vertex_of_[part.groups[0][0]], cpu, WireKind::pcie);
      continue;
    }
    const std::uint32_t top = add_vertex(block_, VertexKind::pcie_switch, 0, "");
    wire(top, cpu, WireKind::pcie);
    for (std::size_t i = 0; i < groups; ++i) {
      std::uint32_t above = top;
      if (groups > 2 || (groups == 2 && i == 0)) {
        above = add_vertex(block_, VertexKind::pcie_switch, 0, "");
        wire(above, top, WireKind::pcie);
      }
      for (const std::size_t device : part.groups[i]) wire(vertex_of_[device], above, WireKind::pcie);
    }
  }
}

void SmiBlock::add_nics() {
  std::vector<std::size_t> nics;
  std::vector<std::optional<std::uint32_t>> nearest;
  for (std::size_t i = 0; i < matrix_.devices.size(); ++i) {
    if (matrix_.devices[i].gpu) continue;
    nics.push_back(i);
    std::optional<std::uint32_t> best;
    Closeness closest = Closeness::phb;  // nearer than the CPU
    for (std::size_t gpu = 0; gpu < matrix_.devices.size(); ++gpu) {
      if (!matrix_.devices[gpu].gpu || matrix_.at(i, gpu).closeness >= closest) continue;
      closest = matrix_.at(i, gpu).closeness;
      best = vertex_of_[gpu];
    }
    nearest.push_back(best);
  }
  report_far_gpus(nics);
  const std::vector<std::uint32_t> rails = rails_of(nearest);
  for (std::uint32_t i = 0; i < nics.size(); ++i)
    block_.nics.push_back({vertex_of_[nics[i]], rails[i], i, Bandwidth{}, Evidence::file});
  if (nics.empty()) findings_.add("no-nics", "the file shows no NICs");
}

void SmiBlock::report_far_gpus(const std::vector<std::size_t>& nics) {
  std::vector<std::string> far;
  std::size_t near = 0;
  for (std::size_t gpu = 0; gpu < matrix_.devices.size(); ++gpu) {
    if (!matrix_.devices[gpu].gpu) continue;
    const bool has_one = std::any_of(nics.begin(), nics.end(), [&](std::size_t nic) {
      return matrix_.at(gpu, nic).closeness < Closeness::phb;
    });
    near += has_one ? 1U : 0U;
    if (!has_one) far.push_back(matrix_.devices[gpu].name);
  }
  if (near == 0 || far.empty()) return;
  findings_.add("gpu-without-near-nic",
                fmt::format("{} have no NIC under their PCIe switch, {} other GPUs have", listed(far), near));
}

}  // namespace

ImportedTopology read_nvidia_smi(std::string_view text, const std::string& file) {
  Findings findings;
  const SmiMatrix matrix = read_smi_matrix(text, file, findings);
  Block block = SmiBlock(matrix, findings).build();
  findings.add("rates-not-in-file",
               "no rate is in such a file: a scenario gives them as fabric.nvlink_bandwidth (per GPU), "
               "fabric.nic_bandwidth and fabric.pcie_bandwidth");
  findings.add("nic-ports-not-in-file",
               "which NICs are ports of one card, and whether GPUDirect works, is not in the file: read as a "
               "card per NIC, with GPUDirect; rails count the NICs in the order of their nearest GPUs");
  Topology topology = topology_of(std::move(block), findings);
  return {std::move(topology), findings.take()};
}

}  // namespace isthmus

// Findings on the whole of a system XML: what is missing, odd, or will surprise whoever runs NCCL with it.

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {
namespace {

constexpr std::size_t named_places = 3;
constexpr std::size_t nccl_elements = 256;  // of one host; more, and NCCL refuses the file
constexpr std::size_t board_gpus = 8;       // of every HGX board whose switch chips show

/// NICs below an item of the tree.
struct Below {
  std::set<std::uint32_t> cards{};  // at most two: more make no difference
  std::uint32_t first_nic = 0;      // vertex
  bool gdr = false;                 // of any
};

class Inspection {
 public:
  Inspection(NcclSystem& system, Block& block)
      : system_(system), block_(block), below_(block.vertices.size()) {}

  void inspect() {
    for (const NcclItem& item : system_.items) {
      present_.insert({item.host, item.kind});
      if (item.kind == VertexKind::nic && item.gdr) gdr_hosts_.insert(item.host);
    }
    for (std::uint32_t h = 0; h < system_.hosts.size(); ++h) inspect_host(h);
    inspect_bridges();
    inspect_nvlink();
    inspect_chips();
    for (const BlockNic& nic : block_.nics) add_card(nic);
    inspect_nearest();
    inspect_devices();
  }

 private:
  void find(std::string_view code, std::uint32_t item, std::string_view text) {
    system_.findings.add(code, place_of(system_, system_.items[item]), text);
  }

  void inspect_host(std::uint32_t number) {
    const NcclHost& host = system_.hosts[number];
    const std::string name = fmt::format("host {}", number);
    if (host.elements > nccl_elements)
      system_.findings.add(
          "nccl-refuses-size", name,
          fmt::format("more than {} elements: NCCL itself refuses such a file", nccl_elements));
    const auto has = [&](VertexKind kind) { return present_.contains({number, kind}); };
    if (!has(VertexKind::gpu)) system_.findings.add("no-gpus", name, "the file tells of no GPU");
    if (!has(VertexKind::nic)) system_.findings.add("no-nics", name, "the file tells of no NIC");
    if (has(VertexKind::gpu) && !host.has_gpus) {
      block_.nvlink_known = false;
      system_.findings.add("pci-only", name,
                           "the file lists PCI devices only; how NVLink joins the GPUs is not known");
    }
  }

  std::uint64_t device(const NcclItem& item) const {
    std::uint64_t number = 0;
    for (const char* name : {"pci.vendor", "pci.device", "pci.subsystem_vendor", "pci.subsystem_device"}) {
      const auto found = item.attributes.find(name);
      const auto part = found == item.attributes.end() ? std::nullopt : hexadecimal_number(found->second);
      number = number << 16U | (part.value_or(0) & 0xFFFFU);
    }
    return number & ~std::uint64_t{0xFFF};
  }

  /// Broadcom switches of two levels that NCCL takes for one: generation 5, then 4.
  bool flattens(const NcclItem& above, const NcclItem& item) const {
    constexpr std::uint64_t generation_5 = 0x1000c03010000000, generation_4 = 0x1000c0101000a000;
    constexpr std::uint64_t next = 0x1000;
    return (device(above) == generation_5 && device(item) == generation_5 + next) ||
           (device(above) == generation_4 && device(item) == generation_4 + next);
  }

  void inspect_bridges() {
    std::set<std::uint32_t> flat, slow;
    for (const NcclItem& item : system_.items) {
      if (item.parents.empty()) continue;
      const std::uint32_t parent = item.parents.front();
      const NcclItem& above = system_.items[parent];
      if (above.kind != VertexKind::pcie_switch) continue;
      if (item.kind == VertexKind::pcie_switch && flattens(above, item)) flat.insert(parent);
      const bool is_virtual = above.rate == gigabytes_per_second(0.25);  // reported as such
      if (!is_virtual && item.id != above.id && item.rate.value > above.rate.value) slow.insert(parent);
    }
    for (const std::uint32_t i : flat)
      find("nccl-flattens", i, "a switch of two levels, which NCCL plans with as one; here both stand");
    for (const std::uint32_t i : slow)
      find("slow-bridge", i,
           "slower towards the CPU than what hangs below; traffic between those does not pass it");
  }

  std::vector<std::uint32_t> links_of_gpus() const {
    std::vector<std::uint32_t> links(block_.vertices.size());
    for (const BlockWire& wire : block_.wires)
      if (wire.kind == WireKind::nvlink) links[wire.from] += wire.wires;
    return links;
  }

  void inspect_nvlink() {
    const std::vector<std::uint32_t> links = links_of_gpus();
    std::uint32_t most = 0;
    for (const BlockGpu& gpu : block_.gpus) most = std::max(most, links[gpu.vertex]);
    if (!block_.nvlink_known) return;
    for (const BlockGpu& gpu : block_.gpus) {
      const std::uint32_t own = links[gpu.vertex];
      if (own == 0 && most > 0)
        find("gpu-without-nvlink", gpu.vertex, "no NVLink, although other GPUs have it");
      else if (own < most)
        find("nvlink-degraded", gpu.vertex, fmt::format("fewer NVLinks than others, which have {}", most));
    }
  }

  void inspect_chips() {
    std::size_t chips = 0;
    for (std::size_t v = system_.items.size(); v < block_.vertices.size(); ++v)
      chips += is_hidden_switch(block_.vertices[v].attributes.at("nvlink.target")) ? 0U : 1U;
    const std::size_t gpus = block_.gpus.size();
    if (chips < 2 || block_.hosts > 1 || gpus >= board_gpus) return;
    system_.findings.add(
        "partial-host", fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s"),
        fmt::format("they stand on a switch fabric sized for {}; the file may hold a part of a host",
                    board_gpus));
  }

  void add_card(const BlockNic& nic) {
    std::set<std::uint32_t> path;
    for (std::uint32_t parent : system_.items[nic.vertex].parents) {
      path.insert(parent);
      while (!system_.items[parent].parents.empty()) {
        parent = system_.items[parent].parents.front();
        path.insert(parent);
      }
    }
    for (const std::uint32_t above : path) {
      Below& below = below_[above];
      if (below.cards.empty()) below.first_nic = nic.vertex;
      if (below.cards.size() < 2) below.cards.insert(nic.card);
      below.gdr |= system_.items[nic.vertex].gdr;
    }
  }

  /// The lowest item above a GPU that has a NIC below it; the NICs there are the nearest.
  std::optional<std::uint32_t> meeting_point(std::uint32_t gpu) const {
    std::uint32_t at = gpu;
    while (!system_.items[at].parents.empty()) {
      at = system_.items[at].parents.front();
      if (!below_[at].cards.empty()) return at;
    }
    return std::nullopt;
  }

  void inspect_nearest() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> meetings;  // GPUs by where they meet their NICs
    for (BlockGpu& gpu : block_.gpus) {
      const std::optional<std::uint32_t> at = meeting_point(gpu.vertex);
      const bool gdr = system_.items[gpu.vertex].gdr;
      if (!gdr) find("gpudirect-off", gpu.vertex, "GPUDirect is off: network traffic passes host memory");
      if (at)
        meetings[*at].push_back(gpu.vertex);
      else if (present_.contains({system_.items[gpu.vertex].host, VertexKind::nic}))
        find("nic-far", gpu.vertex, "no NIC below its CPU; network traffic crosses CPUs");
      const bool near_gdr = at ? below_[*at].gdr : gdr_hosts_.contains(system_.items[gpu.vertex].host);
      if (gdr && !near_gdr && present_.contains({system_.items[gpu.vertex].host, VertexKind::nic})) {
        gpu.gpudirect = false;
        find("gpudirect-off-nic", gpu.vertex,
             "no near NIC has GPUDirect: network traffic passes host memory");
      }
    }
    for (const auto& [at, gpus] : meetings) judge_meeting(at, gpus);
    judge_order(meetings);
  }

  void judge_meeting(std::uint32_t at, const std::vector<std::uint32_t>& gpus) {
    const bool one_card = below_[at].cards.size() == 1;
    if (gpus.size() < 2) return;
    for (const std::uint32_t gpu : gpus) {
      if (one_card)
        find("nic-shared", gpu,
             fmt::format("the nearest NIC of each is {}: they share it",
                         system_.items[below_[at].first_nic].label));
      else if (system_.items[at].kind == VertexKind::cpu)
        find("nic-ambiguous", gpu,
             "several NICs below one CPU are equally near; NCCL pairs them by number, which may be wrong");
    }
  }

  void judge_order(const std::map<std::uint32_t, std::vector<std::uint32_t>>& meetings) {
    std::map<std::uint32_t, std::uint32_t> nic_of;  // GPUs with a NIC of their own
    for (const auto& [at, gpus] : meetings)
      if (gpus.size() == 1 && below_[at].cards.size() == 1) nic_of[gpus.front()] = below_[at].first_nic;
    std::uint32_t last = 0, host = 0;
    for (const auto& [gpu, nic] : nic_of) {
      const bool same_host = system_.items[gpu].host == host;
      if (same_host && nic < last)
        find("nic-order", gpu,
             "its own NIC has a lower number than that of the GPU before; rails follow the NICs");
      last = nic;
      host = system_.items[gpu].host;
    }
  }

  void inspect_devices() {
    std::set<std::pair<std::uint32_t, std::int64_t>> devices;
    const auto has_rank = [](const NcclItem& item) { return item.attributes.contains("gpu.rank"); };
    const bool ranks = std::ranges::any_of(system_.items, has_rank);
    for (const BlockGpu& gpu : block_.gpus) {
      const NcclItem& item = system_.items[gpu.vertex];
      if (ranks && !has_rank(item))
        find("gpu-without-rank", gpu.vertex, "not in the communicator of this file, but here");
      const bool half = item.mlopart.value_or(-1) >= 0 || system_.items[item.parents.front()].id == item.id;
      if (half) find("split-gpu", gpu.vertex, "half of a split GPU, a GPU of its own here");
      if (!half && item.dev && !devices.insert({item.host, *item.dev}).second)
        find("dev-twice", gpu.vertex, "has the dev of another GPU of its host");
    }
    for (const BlockNic& nic : block_.nics)
      if (nic.rate.value == 0) find("nic-speed-missing", nic.vertex, "no speed in the file");
  }

  NcclSystem& system_;
  Block& block_;
  std::vector<Below> below_;
  std::set<std::uint32_t> gdr_hosts_;                       // with a NIC that has GPUDirect
  std::set<std::pair<std::uint32_t, VertexKind>> present_;  // kinds by host
};

}  // namespace

void NcclFindings::add(std::string_view code, const std::string& place, std::string_view text) {
  const auto [index, is_new] = index_.try_emplace({std::string(code), std::string(text)}, groups_.size());
  if (is_new) groups_.push_back({std::string(code), std::string(text), {}, {}});
  Group& group = groups_[index->second];
  if (!group.all.insert(place).second) return;
  if (group.places.size() < named_places) group.places.push_back(place);
}

std::vector<Finding> NcclFindings::take() const {
  std::vector<Finding> findings;
  for (const Group& group : groups_) {
    std::string text = fmt::format("{}", fmt::join(group.places, ", "));
    if (group.all.size() > group.places.size())
      text += fmt::format(" and {} more", group.all.size() - group.places.size());
    findings.push_back({group.code, text + ": " + group.text});
  }
  return findings;
}

std::string place_of(const NcclSystem& system, const NcclItem& item) {
  std::string name = printable(item.label);
  if (item.kind == VertexKind::gpu && item.dev) name = fmt::format("GPU {} ({})", *item.dev, name);
  if (item.kind == VertexKind::cpu) name = fmt::format("CPU {}", name);
  if (system.hosts.size() > 1) name += fmt::format(" of host {}", item.host);
  return name;
}

std::optional<std::uint64_t> busid_number(std::string_view busid) {
  std::string digits;
  for (const char c : busid)
    if (c != ':' && c != '.') digits += c;
  if (digits.find_first_of("xX") != std::string::npos) return std::nullopt;
  return hexadecimal_number(digits);
}

bool is_hidden_switch(std::string_view busid) { return busid.starts_with("fffffff:"); }

void inspect(NcclSystem& system, Block& block) { Inspection(system, block).inspect(); }

}  // namespace isthmus

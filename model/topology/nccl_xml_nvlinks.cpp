// NVLink records matched with each other: what is a wire, what is an NVSwitch, what leads nowhere.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/topology/nccl_rates.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {
namespace {

constexpr std::string_view switch_class = "0x068000", cpu_class = "0x068001";
// After every busid: invisible switches form one vertex, the last.
constexpr std::pair<bool, std::uint64_t> hidden{true, 0};

bool is_gpu_class(std::string_view text) { return text.starts_with("0x03") || text.starts_with("0x12"); }

class Nvlinks {
 public:
  Nvlinks(NcclSystem& system, Block& block) : system_(system), block_(block) {
    for (std::uint32_t i = 0; i < system.items.size(); ++i) {
      const NcclItem& item = system.items[i];
      if (item.kind != VertexKind::gpu || !item.id) continue;
      std::vector<std::uint32_t>& halves = gpus_[{item.host, *item.id}];
      if (halves.empty()) hosts_of_[*item.id].push_back(item.host);
      halves.push_back(i);
    }
  }

  void add() {
    for (std::uint32_t i = 0; i < system_.items.size(); ++i)
      for (const NvlinkRecord& record : system_.items[i].nvlinks) take(i, record);
    add_between_gpus();
    add_to_cpus();
    add_to_switches();
  }

 private:
  void take(std::uint32_t gpu, const NvlinkRecord& record) {
    const NcclItem& item = system_.items[gpu];
    const std::uint64_t id = busid_number(record.target).value_or(0);
    if (is_hidden_switch(record.target)) {
      to_switches_[{hidden, gpu}] += record.count;
      names_.emplace(hidden, record.target);
    } else if (id == item.id) {
      keep_unused(gpu, record);
      block_.nvlink_known = false;
      find("nvlink-to-itself", gpu, "names itself as the other end of its NVLink: the partner is not known");
    } else if (const std::optional<std::uint32_t> other = gpu_at(item, id)) {
      between_gpus_[{gpu, *other}] += record.count;
    } else if (record.target_class.starts_with(cpu_class)) {
      to_cpus_[gpu] += record.count;
      block_.vertices[gpu].attributes.emplace("nvlink.cpu", record.target);
    } else if (is_gpu_class(record.target_class)) {
      keep_unused(gpu, record);
      find("nvlink-to-unlisted", gpu, "NVLink to a GPU that the file does not list");
    } else {
      if (!record.target_class.empty() && !record.target_class.starts_with(switch_class))
        find("nvlink-target-unknown", gpu, "NVLink to an unknown kind of device, taken as an NVSwitch");
      to_switches_[{{false, id}, gpu}] += record.count;
      names_.emplace(std::pair(false, id), record.target);
    }
  }

  void find(std::string_view code, std::uint32_t gpu, std::string_view text) {
    system_.findings.add(code, place_of(system_, system_.items[gpu]), text);
  }

  /// On the own host first: hosts of a clique may use the same addresses.
  std::optional<std::uint32_t> gpu_at(const NcclItem& from, std::uint64_t id) const {
    auto found = gpus_.find({from.host, id});
    if (found == gpus_.end()) {
      const auto hosts = hosts_of_.find(id);
      if (hosts == hosts_of_.end() || hosts->second.size() != 1) return std::nullopt;
      found = gpus_.find({hosts->second.front(), id});
    }
    const auto half = [&](std::uint32_t gpu) { return system_.items[gpu].mlopart == from.mlopart; };
    const auto same = std::ranges::find_if(found->second, half);
    return same == found->second.end() ? found->second.front() : *same;
  }

  /// So that an export says what the file said.
  void keep_unused(std::uint32_t gpu, const NvlinkRecord& record) {
    std::string& kept = block_.vertices[gpu].attributes["nvlink.unused"];
    kept +=
        fmt::format("{}{}*{}*{}", kept.empty() ? "" : " ", record.target, record.count, record.target_class);
  }

  Bandwidth rate(std::uint32_t gpu, std::uint32_t count) {
    const NcclItem& item = system_.items[gpu];
    if (item.xgmi) {
      find("xgmi-rate-unknown", gpu, "joined by xgmi, for which the file has no bandwidth");
      return {};
    }
    const std::optional<Bandwidth> each = item.sm ? nvlink_rate(*item.sm) : std::nullopt;
    if (!each) find("nvlink-rate-unknown", gpu, "its sm tells no generation of NVLink");
    return each ? *each * count : Bandwidth{};
  }

  void add_wire(std::uint32_t from, std::uint32_t to, std::uint32_t count, Bandwidth rate) {
    block_.wires.push_back({from, to, WireKind::nvlink, count, rate, Evidence::derived});
  }

  void add_between_gpus() {
    const auto records = between_gpus_;
    for (const auto& [ends, count] : records) {
      const auto [from, to] = ends;
      const auto back = between_gpus_.emplace(std::pair(to, from), count).first;
      if (!records.contains({to, from}))
        find("nvlink-one-sided", from,
             "NVLink to a GPU that does not list it; NCCL would use one direction only");
      else if (back->second != count)
        find("nvlink-counts-differ", from, "counts its NVLinks to a GPU unlike that one");
    }
    for (const auto& [ends, count] : between_gpus_)
      add_wire(ends.first, ends.second, count, rate(ends.first, count));
  }

  void add_to_cpus() {
    for (const auto& [gpu, count] : to_cpus_) {
      std::uint32_t cpu = gpu;
      while (!system_.items[cpu].parents.empty()) cpu = system_.items[cpu].parents.front();
      add_wire(gpu, cpu, count, rate(gpu, count));
      add_wire(cpu, gpu, count, rate(gpu, count));
    }
  }

  void add_to_switches() {
    const bool one_host = system_.hosts.size() == 1;
    std::map<std::pair<bool, std::uint64_t>, std::uint32_t> vertices;
    for (const auto& [ends, count] : to_switches_) {
      const auto& [name, gpu] = ends;
      const auto next = static_cast<std::uint32_t>(block_.vertices.size());
      const auto [place, is_new] = vertices.emplace(name, next);
      if (is_new) {
        BlockVertex vertex{VertexKind::nvswitch, std::nullopt,
                           static_cast<std::uint32_t>(vertices.size() - 1)};
        if (one_host) vertex.host = 0;
        vertex.label = name == hidden ? "chips not visible" : names_.at(name);
        vertex.attributes["nvlink.target"] = names_.at(name);
        block_.vertices.push_back(std::move(vertex));
      }
      add_wire(gpu, place->second, count, rate(gpu, count));
      add_wire(place->second, gpu, count, rate(gpu, count));
    }
    if (vertices.contains(hidden))
      system_.findings.add("nvswitch-hidden", "NVSwitch",
                           "the chips are not visible; one vertex stands for all of them");
  }

  NcclSystem& system_;
  Block& block_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<std::uint32_t>> gpus_;  // by host and address
  std::map<std::uint64_t, std::vector<std::uint32_t>> hosts_of_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> between_gpus_;
  std::map<std::uint32_t, std::uint32_t> to_cpus_;
  std::map<std::pair<std::pair<bool, std::uint64_t>, std::uint32_t>, std::uint32_t> to_switches_;
  std::map<std::pair<bool, std::uint64_t>, std::string> names_;
};

}  // namespace

void add_nvlinks(NcclSystem& system, Block& block) { Nvlinks(system, block).add(); }

}  // namespace isthmus

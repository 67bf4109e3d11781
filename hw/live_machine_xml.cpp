// A live machine in the form of NCCL's system XML, and as the topology that its reader makes of that.

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "hw/live_machine.hpp"
#include "model/topology/importers.hpp"

namespace isthmus::hw {
namespace {

std::string attribute_text(const std::map<std::string, std::string>& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) text += fmt::format(" {}=\"{}\"", name, value);
  return text;
}

/// Words of 32 bits with commas between them, which is all that NCCL reads.
bool is_mask(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF,") == std::string::npos &&
         text.find(",,") == std::string::npos && text.front() != ',' && text.back() != ',' &&
         (text.find(',') != std::string::npos || text.size() <= 8);
}

class MachineXml {
 public:
  explicit MachineXml(const LiveMachine& machine) : machine_(machine) {
    for (const auto& [busid, function] : machine.pci) {
      const bool on_cpu = function.above.empty() || !machine.pci.contains(function.above);
      if (on_cpu)
        roots_[function.numa].push_back(busid);
      else
        below_[function.above].push_back(busid);
    }
    for (std::size_t i = 0; i < machine.gpus.size(); ++i) gpus_[machine.gpus[i].busid] = i;
    for (std::size_t i = 0; i < machine.nics.size(); ++i) {
      const LiveNic& nic = machine.nics[i];
      if (nic.busid.empty())
        loose_[nic.numa].push_back(i);
      else
        nics_[nic.busid].push_back(i);
    }
  }

  std::string write() {
    text_ = "<system version=\"1\">\n";
    std::vector<NumaNode> nodes = machine_.nodes;
    std::set<std::int64_t> known;
    for (const NumaNode& node : nodes) known.insert(node.number);
    const auto require = [&](std::int64_t number) {
      if (known.insert(number).second) nodes.push_back({number, "", ""});
    };
    for (const auto& [number, devices] : roots_) require(number);
    for (const auto& [number, devices] : loose_) require(number);
    for (const NumaNode& node : nodes) write_cpu(node);
    return text_ + "</system>\n";
  }

 private:
  void write_cpu(const NumaNode& node) {
    std::map<std::string, std::string> attributes = machine_.cpu;
    attributes["numaid"] = std::to_string(node.number);
    if (is_mask(node.affinity)) attributes["affinity"] = node.affinity;
    text_ += fmt::format("  <cpu{}>\n", attribute_text(attributes));
    for (const std::string& busid : roots_[node.number]) write_pci(busid, 2);
    write_nics(loose_[node.number], 2);
    text_ += "  </cpu>\n";
  }

  void write_pci(const std::string& busid, std::size_t depth) {
    const std::string indent(2 * depth, ' ');
    text_ += fmt::format("{}<pci busid=\"{}\"{}>\n", indent, busid,
                         attribute_text(machine_.pci.at(busid).attributes));
    if (const auto gpu = gpus_.find(busid); gpu != gpus_.end()) write_gpu(gpu->second, depth + 1);
    if (const auto nics = nics_.find(busid); nics != nics_.end()) write_nics(nics->second, depth + 1);
    for (const std::string& child : below_[busid]) write_pci(child, depth + 1);
    text_ += indent + "</pci>\n";
  }

  void write_gpu(std::size_t dev, std::size_t depth) {
    const LiveGpu& gpu = machine_.gpus[dev];
    const std::string indent(2 * depth, ' ');
    const std::string sm = gpu.sm ? fmt::format(" sm=\"{}\"", *gpu.sm) : "";
    text_ += fmt::format("{}<gpu dev=\"{}\"{} gdr=\"1\">\n", indent, dev, sm);
    for (const NvmlLink& link : gpu.nvlinks) {
      text_ += fmt::format("{}  <nvlink target=\"{}\" count=\"{}\" tclass=\"{}\"/>\n", indent, link.target,
                           link.count, link.to_chip ? "0x068000" : "0x030200");
    }
    text_ += indent + "</gpu>\n";
  }

  void write_nics(const std::vector<std::size_t>& nics, std::size_t depth) {
    if (nics.empty()) return;
    const std::string indent(2 * depth, ' ');
    text_ += indent + "<nic>\n";
    for (const std::size_t dev : nics) {
      const LiveNic& nic = machine_.nics[dev];
      const std::string guid = nic.guid.empty() ? "" : fmt::format(" guid=\"{}\"", nic.guid);
      text_ += fmt::format("{}  <net name=\"{}\" dev=\"{}\" speed=\"{}\" port=\"{}\"{} gdr=\"{}\"/>\n",
                           indent, nic.name, dev, nic.megabits, nic.port, guid, nic.gpudirect ? 1 : 0);
    }
    text_ += indent + "</nic>\n";
  }

  const LiveMachine& machine_;
  std::map<std::int64_t, std::vector<std::string>> roots_;  // busids, by node
  std::map<std::string, std::vector<std::string>> below_;   // busids, by that of the switch
  std::map<std::int64_t, std::vector<std::size_t>> loose_;  // NICs that are no PCI devices, by node
  std::map<std::string, std::vector<std::size_t>> nics_;    // by busid
  std::map<std::string, std::size_t> gpus_;
  std::string text_;
};

}  // namespace

std::string to_nccl_xml(const LiveMachine& machine) { return MachineXml(machine).write(); }

ImportedTopology topology_of(const LiveMachine& machine) {
  ImportedTopology imported = read_nccl_xml(to_nccl_xml(machine), "this machine");
  Topology& topology = imported.topology;
  topology.name = machine.name;
  topology.types.front().name = machine.name;
  // A file may be silent on GPUs; a machine that was looked at has none.
  topology.gpus_known = true;
  std::erase_if(imported.findings, [](const Finding& finding) { return finding.code == "no-gpus"; });
  std::vector<Finding> findings = machine.findings;
  if (machine.gpus.empty()) findings.push_back({"no-gpus", "this machine has none that can be used"});
  if (!machine.nvml.empty()) {
    if (!machine.gpus.empty()) topology.types.front().nvlink_known = false;
    findings.push_back({"no-nvml", "NVIDIA's driver was not asked: " + machine.nvml});
  }
  findings.insert(findings.end(), std::make_move_iterator(imported.findings.begin()),
                  std::make_move_iterator(imported.findings.end()));
  imported.findings = std::move(findings);
  return imported;
}

}  // namespace isthmus::hw

#include "report/machine.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/topology.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

std::uint32_t nvlinks_of(const hw::LiveGpu& gpu) {
  std::uint32_t links = 0;
  for (const hw::NvmlLink& link : gpu.nvlinks) links += link.count;
  return links;
}

std::int64_t numa_of(const hw::LiveMachine& machine, const hw::LiveNic& nic) {
  return nic.busid.empty() ? nic.numa : machine.pci.at(nic.busid).numa;
}

Json number_or_null(std::int64_t number, std::int64_t least) {
  return number < least ? Json(nullptr) : Json(number);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json machine_json(const hw::LiveMachine& machine) {
  Json nodes = Json::array(), gpus = Json::array(), nics = Json::array();
  for (const hw::NumaNode& node : machine.nodes)
    nodes.push_back(
        {{"node", number_or_null(node.number, 0)}, {"processors", text_or_null(node.processors)}});
  for (const hw::LiveGpu& gpu : machine.gpus) {
    const bool known = machine.nvml.empty();
    gpus.push_back({{"busid", gpu.busid},
                    {"name", text_or_null(gpu.name)},
                    {"node", number_or_null(machine.pci.at(gpu.busid).numa, 0)},
                    {"nvlinks", known ? Json(nvlinks_of(gpu)) : Json(nullptr)}});
  }
  for (const hw::LiveNic& nic : machine.nics) {
    nics.push_back({{"name", nic.name},
                    {"busid", text_or_null(nic.busid)},
                    {"node", number_or_null(numa_of(machine, nic), 0)},
                    {"rdma", nic.rdma},
                    {"megabits_per_second", number_or_null(nic.megabits, 1)}});
  }
  return {{"processor", text_or_null(machine.processor)},
          {"processors", number_or_null(machine.processors, 1)},
          {"nodes", std::move(nodes)},
          {"gpus", std::move(gpus)},
          {"nics", std::move(nics)}};
}

std::string node_text(std::int64_t node) {
  return node < 0 ? "NUMA node not known" : fmt::format("NUMA node {}", node);
}

/// The first with the name of the list before it.
std::string list_text(std::string_view name, const std::vector<std::string>& lines) {
  if (lines.empty()) return fmt::format("{:<18}none\n", name);
  std::string text;
  for (const std::string& line : lines) text += fmt::format("{:<18}{}\n", text.empty() ? name : "", line);
  return text;
}

std::string machine_text(const hw::LiveMachine& machine) {
  std::vector<std::string> nodes, gpus, nics;
  for (const hw::NumaNode& node : machine.nodes) {
    nodes.push_back(fmt::format("{}: processors {}", node_text(node.number),
                                node.processors.empty() ? "not known" : node.processors));
  }
  for (const hw::LiveGpu& gpu : machine.gpus) {
    const std::string links =
        machine.nvml.empty() ? fmt::format("{} NVLinks", nvlinks_of(gpu)) : "NVLinks not known";
    gpus.push_back(fmt::format("{} {}, {}, {}", gpu.busid, gpu.name.empty() ? "GPU" : gpu.name,
                               node_text(machine.pci.at(gpu.busid).numa), links));
  }
  for (const hw::LiveNic& nic : machine.nics) {
    const std::string rate = nic.megabits > 0
                                 ? fmt::format("{:.4g} Gb/s", static_cast<double>(nic.megabits) * 1e-3)
                                 : "rate not known";
    nics.push_back(fmt::format("{} {}, {}, {}, {}", nic.name, nic.busid.empty() ? "(not on PCI)" : nic.busid,
                               node_text(numa_of(machine, nic)), nic.rdma ? "RDMA" : "sockets", rate));
  }
  const std::string name = machine.processor.empty() ? "of a type not known" : machine.processor;
  return fmt::format("{:<18}{} ({})\n", "processors", machine.processors, name) +
         list_text("NUMA nodes", nodes) + list_text("GPUs", gpus) + list_text("NICs", nics);
}

}  // namespace

std::string machine_document(const hw::LiveMachine& machine, bool json) {
  const std::string document = topology_document(hw::topology_of(machine), json);
  if (!json) return machine_text(machine) + document;
  Json whole = Json::parse(document);
  whole["machine"] = machine_json(machine);
  return whole.dump(2) + "\n";
}

}  // namespace isthmus::report

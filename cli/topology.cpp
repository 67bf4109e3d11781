// isthmus topology show, convert, diff.

#include <charconv>
#include <system_error>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "hw/live_machine.hpp"
#include "model/fabric_spec.hpp"
#include "model/json_file.hpp"
#include "model/scenario.hpp"
#include "model/text.hpp"
#include "model/topology/difference.hpp"
#include "model/topology/graphviz.hpp"
#include "model/topology/importers.hpp"
#include "model/topology/nccl_graph.hpp"
#include "model/topology/nccl_xml_writer.hpp"
#include "model/topology/topology_json.hpp"
#include "report/machine.hpp"
#include "report/topology.hpp"

namespace isthmus::cli {
namespace {

/// PRESET or PRESET:HOSTS; nullopt when the name is no preset's.
std::optional<FabricSpec> as_preset(const std::string& source) {
  const std::size_t colon = source.find(':');
  FabricSpec spec;
  spec.preset = source.substr(0, colon);
  bool known = false;
  for (const FabricPreset& preset : fabric_presets()) known = known || preset.name == spec.preset;
  if (!known) return std::nullopt;
  if (colon == std::string::npos) return spec;
  const char* const end = source.data() + source.size();
  const auto parsed = std::from_chars(source.data() + colon + 1, end, spec.hosts);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    throw InputError({"", 0, spec.preset}, fmt::format("'{}' hosts", printable(source.substr(colon + 1))),
                     "PRESET:HOSTS with a whole number, such as " + spec.preset + ":16");
  }
  return spec;
}

[[noreturn]] void refuse_missing(const std::string& source) {
  std::vector<std::string_view> names;
  const std::vector<FabricPreset> presets = fabric_presets();
  for (const FabricPreset& preset : presets) names.push_back(preset.name);
  const std::string name = source.substr(0, source.find(':'));
  throw InputError({"topology", 0, ""},
                   fmt::format("'{}', which is no file and no preset", printable(source)),
                   fmt::format("a topology file, a scenario, or PRESET[:HOSTS] of {}",
                               fmt::join(closest_first(name, names), ", ")));
}

bool is_scenario(const std::filesystem::path& file) {
  return file.extension() == ".yaml" || file.extension() == ".yml";
}

void require_file(const std::string& source) {
  std::error_code ignored;
  if (!std::filesystem::exists(source, ignored)) refuse_missing(source);
}

ImportedTopology load_source(const std::string& source) {
  if (const auto preset = as_preset(source)) return {build_topology(*preset), {}};
  require_file(source);
  if (!is_scenario(source)) return import_topology(source);
  const Scenario scenario = read_scenario(source);
  return {build_topology(scenario.fabric, scenario.file.parent_path()), {}};
}

/// NCCL's graph files describe no machine; they are shown as what they are.
std::optional<NcclGraphFile> load_graph(const std::string& source) {
  if (as_preset(source) || is_scenario(source)) return std::nullopt;
  require_file(source);
  const std::string text = read_text(source, max_topology_bytes);
  if (recognise_topology(text) != TopologyFormat::nccl_graph) return std::nullopt;
  return read_nccl_graph(text, source);
}

void require_one_machine(const TopologyOptions& options) {
  if (options.probe && !options.source.empty())
    throw InputError({"--probe", 0, ""}, fmt::format("'{}' beside it", printable(options.source)),
                     "a topology, or --probe");
  if (!options.probe && options.source.empty())
    throw InputError({"topology", 0, ""}, "none", "a topology file, a scenario, PRESET[:HOSTS], or --probe");
  if (!options.probe && options.root != "/")
    throw InputError({"--root", 0, ""}, "no --probe beside it", "--probe --root FOLDER");
}

/// NVML can only speak of the machine that it runs on.
hw::LiveMachine probe(const TopologyOptions& options) {
  if (options.root == "/") return hw::read_machine("/", hw::ask_nvml());
  std::error_code ignored;
  if (!std::filesystem::is_directory(std::filesystem::path(options.root) / "sys", ignored))
    throw InputError({"--root", 0, ""}, fmt::format("'{}', which has no folder sys", printable(options.root)),
                     "a folder with a machine's sys and proc");
  return hw::read_machine(options.root, {"this is another machine's folder", {}});
}

ImportedTopology load(const TopologyOptions& options) {
  return options.probe ? hw::topology_of(probe(options)) : load_source(options.source);
}

}  // namespace

int show_topology(const TopologyOptions& options) {
  require_one_machine(options);
  if (options.probe) {
    print(report::machine_document(probe(options), options.json));
  } else if (const auto graph = load_graph(options.source)) {
    print(report::nccl_graph_document(options.source, *graph, options.json));
  } else {
    print(report::topology_document(load_source(options.source), options.json));
  }
  return 0;
}

int convert_topology(const TopologyOptions& options) {
  require_one_machine(options);
  const ImportedTopology imported = load(options);
  std::string text;
  if (options.format == "json") {
    text = to_json(imported.topology);
  } else if (options.format == "xml") {
    text = to_nccl_xml(imported.topology);
  } else if (options.format == "dot") {
    text = to_graphviz(imported.topology);
  } else {
    throw InputError({"--to", 0, ""}, fmt::format("'{}'", printable(options.format)), "json, xml, dot");
  }
  write_output(options.output, text);
  for (const Finding& finding : imported.findings)
    fmt::print(stderr, "isthmus: {}: {}\n", finding.code, finding.text);
  return 0;
}

int diff_topologies(const TopologyOptions& options) {
  const ImportedTopology first = load_source(options.source), second = load_source(options.other);
  const std::vector<Finding> differences = topology_difference(first.topology, second.topology);
  print(report::difference_document(options.source, options.other, differences, options.json));
  return differences.empty() ? 0 : 1;
}

}  // namespace isthmus::cli

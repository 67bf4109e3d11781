// Topologies in Isthmus's own JSON; what was accepted is written and read again, summed up, judged, drawn.

#include <fmt/format.h>

#include "model/topology/difference.hpp"
#include "model/topology/findings.hpp"
#include "model/topology/graphviz.hpp"
#include "model/topology/summary.hpp"
#include "model/topology/topology_faults.hpp"
#include "model/topology/topology_json.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  // Runs let a short text ask for a large machine; above these only the reader is of interest.
  constexpr std::size_t most_blocks = 2'000, most_nics = 20'000;
  fuzz::only_input_errors([&] {
    const Topology topology = topology_from_json(fuzz::text_of(data, size), "topology.json");
    ISTHMUS_ASSERT(topology_faults(topology).empty(), "{} blocks", topology.blocks.size());
    if (topology.blocks.size() > most_blocks || topology.switch_of_nic.size() > most_nics) return;
    const std::string text = to_json(topology);
    const Topology again = topology_from_json(text, "written.json");
    ISTHMUS_ASSERT(again == topology, "{}", text);
    ISTHMUS_ASSERT(topology_difference(topology, again).empty(), "{}", text);
    const TopologySummary summary = summarise(topology);
    ISTHMUS_ASSERT(summary.host_cables + summary.unplugged_nics == summary.nics, "{}", text);
    for (const Finding& finding : topology_findings(topology))
      ISTHMUS_ASSERT(!finding.code.empty() && !finding.text.empty(), "{}", text);
    ISTHMUS_ASSERT(to_graphviz(topology).ends_with("}\n"), "{}", text);
  });
  return 0;
}

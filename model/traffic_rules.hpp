#pragma once
// A traffic scenario on its fabric: which streams flow over which links, what no such scenario may ask for,
// and its healthy twin. A stream is what one pair sends, or a whole ring of an all-reduce: a ring's hops run
// at one rate, that of the slowest, so it loads each link as often as its hops cross it.
// Rings of all-reduce: inside one domain one ring; over several, one ring per NIC of a host, that enters and
// leaves the host through the first GPU of that NIC and visits all others in between. Each of R rings of n
// GPUs carries 2 (n - 1) / n x bytes / R over every hop.
// Invariant: a scenario without traffic_faults has streams, and so has its twin.

#include <optional>
#include <string>
#include <vector>

#include "model/fabric.hpp"
#include "model/input_fault.hpp"
#include "model/scenario.hpp"

namespace isthmus {

struct TrafficStream {
  std::string name;           // "GPU 0 to GPU 8", "ring 3"
  std::vector<LinkId> links;  // of all hops in order; a link stands as often as it is crossed
  Bytes bytes;                // over every link of one hop
  std::uint32_t hops = 1;     // of a ring
  bool network = false;       // some hop crosses the scale-out network
};

/// The GPUs that the pattern names, each once, in the order of first mention.
std::vector<GpuId> traffic_gpus(const TrafficSpec& spec);

/// Requires GPUs of the fabric; raises InputError (key fabric) where no way leads.
std::vector<TrafficStream> traffic_streams(const Fabric& fabric, const TrafficSpec& spec);

/// Everything wrong with a traffic scenario, its fabric and its twin included.
std::vector<InputFault> traffic_faults(const Scenario& scenario);

/// The scenario with its baseline's values (without edits where none are given) and no baseline of its own;
/// nothing where that would be the same scenario. Raises InputError at traffic.baseline.
std::optional<Scenario> healthy_twin(const Scenario& scenario);

/// Raises the refusal of a command that needs a refit, if this is a traffic scenario.
void require_refit(const Scenario& scenario);

}  // namespace isthmus

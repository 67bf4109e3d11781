#pragma once
// What each operation asks of the machine: a delay, then one or two flows, one after the other. This is the
// cost model; sim/simulation.hpp states its formulas. Resources of the fluid network:
//   links of the fabric   nominal x efficiency, bytes per second
//   host thread of a rank  one second of work per second, in picoseconds of work
//   memory of a GPU        read + write together, bytes per second
//   a communicator's cap   collective_bandwidth, shared by its collectives with the same root
//   kernels of a GPU       where the transport's CTAs are limited: sim/kernel_ports.hpp
// A link that cannot bind is left out: its capacity is at least that of all the links before it (or after it)
// on the routes of this plan together. Leaving it out changes no rate.

#include <array>
#include <cstdint>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "sim/interference.hpp"
#include "sim/kernel_ports.hpp"
#include "sim/network.hpp"
#include "sim/routes.hpp"
#include "sim/schedule.hpp"
#include "sim/term.hpp"

namespace isthmus::sim {

struct Demand {
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  enum class Use : std::uint8_t { route, host, memory };  // the operation's route; those of its source rank
  struct Phase {
    std::int64_t amount = 0;
    std::uint32_t flow_class = none;
    std::uint32_t flows : 30 = 1;  // as many that run alike
    Use use : 2 = Use::route;
  };
  Duration delay;                 // from ready to the first phase, without enqueueing
  std::array<Phase, 2> phases{};  // in order; unused ones have no class
};

constexpr std::size_t phase_count = std::tuple_size_v<decltype(Demand::phases)>;

struct Flows {
  Network network;
  std::vector<Demand> demands;  // per operation
  std::vector<Work> work;
  Schedule schedule{};                          // of disturbances
  std::vector<std::uint32_t> route_of_class{};  // with a schedule; Routes::local of other classes
};

Flows build_flows(const Refit& refit, const Operations& operations, const Routes& routes,
                  const Calibration& calibration, const Interference& interference = {});

}  // namespace isthmus::sim

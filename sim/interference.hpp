#pragma once
// The disturbances of a refit (model/disturbance.hpp) on its fabric, whatever the calibration: what is left
// of links and GPUs from which instant on, which ways lead around what is down, and where the background
// runs. sim/schedule.hpp makes capacities and flows of it.
// Invariants: periods ascend; each of them says what is left of everything that any fault names, in units of
// 1 / whole; what it leaves out is whole.

#include <cstdint>
#include <utility>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "sim/routes.hpp"

namespace isthmus::sim {

struct Interference {
  static constexpr std::int64_t whole = 1'000'000'000;

  struct Period {
    Instant begins;
    std::vector<std::pair<LinkId, std::int64_t>> links;  // ascending
    std::vector<std::pair<GpuId, std::int64_t>> gpus;    // their memory and the host threads of their ranks
    std::vector<std::pair<std::uint32_t, std::uint32_t>> detours{};  // route and what replaces it
  };
  struct Load {  // endless flows on a link, or in the memory of a GPU
    bool on_memory = false;
    std::uint32_t where = 0;  // link or GPU
    std::int64_t share = 0;   // of its capacity
    std::int64_t rate = 0;    // or this, where it is not 0
    std::uint32_t flows = 1;
    std::uint32_t load = 0;  // which of the disturbances' background it belongs to
  };

  std::vector<Period> periods{};
  std::vector<Load> loads{};
  std::vector<std::pair<GpuId, std::int64_t>>
      kernels{};  // what is left of a GPU's SMs, where loads take some
  FailureRule rule{};
  int ctas = 0;  // of the transport on each GPU; 0: no limit

  bool none() const { return periods.empty() && loads.empty() && kernels.empty() && ctas == 0; }
};

/// `routes` gets the detours.
Interference interference(const Refit& refit, const Operations& operations, const Disturbances& disturbances,
                          Routes& routes);

/// What is left of a capacity: rounded down, but never to 0 unless the share is 0.
std::int64_t left_of(std::int64_t capacity, std::int64_t share);

}  // namespace isthmus::sim

#pragma once
// What a space (model/sweep_space.hpp) holds, enumerated: layouts that are valid, candidates (a valid layout
// with a policy and the settings that this policy heeds) with their lower bounds, and why the other layouts
// were left out. A layout is a model, two sides and a placement.
// Invariants: a layout is either valid or counted under exactly one reason, in this order: budget, the
// training side's first fault, the generation side's, the placement's; faults are those of `isthmus
// validate`. Order: as the product of the lists, models outermost. Equal spaces give equal candidates.
// Where pp does not divide the layers, all stages but the first and the last have ceil(layers / pp) of them
// and those two share the rest, the first with one more where it is odd.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/host_order.hpp"
#include "model/sweep_space.hpp"

namespace isthmus::report {

struct SweepLayout {
  std::uint32_t model = 0, train = 0, generate = 0;  // indices
  std::uint32_t placement = 0;                       // of SweepSpace::placements
  std::uint32_t order = 0;                           // of SweepCandidates::orders
  std::optional<int> layers_first, layers_last;      // of the training side
  Bytes train_memory, generate_memory;               // of the fullest GPU, without reserves
};

struct SweepCandidate {
  std::uint32_t layout = 0;
  std::uint32_t policy = 0, bulk = 0, streams = 0, calibration = 0;  // indices
  Duration bound;  // no plan of the policy is predicted to be faster
};

struct SweepExclusion {
  std::string reason;   // the scenario's key at fault; budget, train.dp, memory.train, ...
  std::string example;  // of the first layout
  std::int64_t layouts = 0;
};

struct SweepCandidates {
  std::vector<TrainSpec> trains;
  std::vector<GenerateSpec> generates;
  std::vector<HostOrder> orders;
  std::vector<std::string> policies;
  std::vector<Calibration> calibrations;
  std::vector<SweepLayout> layouts;
  std::vector<SweepCandidate> list;
  std::vector<SweepExclusion> exclusions;  // by first appearance
  std::string fingerprint;                 // of all that results depend on

  std::int64_t excluded() const;
};

/// Sees every layout that was left out, as a scenario, with the reason; for tests.
using ExcludedLayout = std::function<void(const Scenario& scenario, const std::string& reason)>;

/// `policies`: known names. Raises InputError for calibrations and models that cannot be read.
SweepCandidates sweep_candidates(const SweepSpace& space, const std::vector<std::string>& policies,
                                 const ExcludedLayout& excluded = {});

/// The candidate as a scenario, which stands beside the space's file. Its name says what it is.
Scenario sweep_scenario(const SweepSpace& space, const SweepCandidates& candidates,
                        const SweepCandidate& candidate);

}  // namespace isthmus::report

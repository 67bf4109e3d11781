#pragma once
// Why a refit takes as long as it does under one policy, and what would change that. Three parts:
//   path       the critical path, neighbours of one kind together: when, how many operations, what they move
//   costs      per constant of the calibration, the time less that with the constant at its ideal (efficiency
//              1, time 0, rate unlimited), and the busiest resources
//   changes    one thing other than it is: settings, fabric, placement, policy; the time then
// Invariant: every figure is a simulation's. A change is what `--set` (or --policy) says, so
// `isthmus simulate` with the same arguments predicts the same time.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/scenario.hpp"
#include "planner/operations.hpp"
#include "planner/timeline.hpp"
#include "report/comparison.hpp"

namespace isthmus::report {

struct PathSegment {
  Instant begin, end;
  std::string what;  // "sends over the network, bulk"
  std::size_t operations = 0;
  Bytes bytes;
  std::string mostly;  // the host that most of them go to
};

struct ConstantCost {
  std::string key;
  double seconds = 0;  // of the whole, without it
};

struct ResourceUse {
  std::string resource;
  double busy_seconds = 0;
};

/// What a change concerns. A fault takes something away.
enum class ChangeKind : std::uint8_t { setting, fabric, fault, placement, layout, policy };

struct ChangeRow {
  std::string what;                // in words
  std::vector<Override> settings;  // beside those given
  std::string policy;
  std::string refused;  // the reason, where there is no prediction
  double seconds = 0;
  ChangeKind kind = ChangeKind::setting;
};

struct Explanation {
  std::string scenario, policy, calibration;
  double seconds = 0, lower_bound_seconds = 0;
  std::string lower_bound_binding, binding_resource;
  std::vector<PathSegment> path;
  std::vector<sim::Term> terms;
  std::vector<ConstantCost> constants;  // most expensive first; those that cost nothing are left out
  double wire_only_seconds = 0;
  std::vector<ResourceUse> resources;  // busiest first, a few
  std::vector<ChangeRow> changes;      // fastest first, refused ones last
};

/// The scenario with further settings.
using ReadScenario = std::function<Scenario(const std::vector<Override>& settings)>;

/// `policy` must be known; empty: the fastest. Raises InputError for what is no refit, and (key --policy)
/// for a policy that refuses it.
Explanation explain(const ReadScenario& read, const std::string& policy, std::size_t threads);

/// The critical path, neighbours of one kind together: the longest of `most` > 0 lengths, in the order of
/// time.
std::vector<PathSegment> critical_segments(const Refit& refit, const Operations& operations,
                                           const Timeline& timeline, std::size_t most = 8);

/// The single changes that are tried on a scenario; `fabric` is its own.
std::vector<ChangeRow> single_changes(const Scenario& scenario, const Fabric& fabric,
                                      const std::string& policy);

/// Other layouts of the generation side: engines of half and of twice the GPUs.
std::vector<ChangeRow> layout_changes(const Scenario& scenario, const std::string& policy);
/// Plan, proof and time of a change; or why there is none.
void predict_change(const ReadScenario& read, ChangeRow& row);

std::string explanation_document(const Explanation& explanation, bool json);

}  // namespace isthmus::report

#pragma once
// One scenario, every policy: plan, proof, simulation, beside the lower bound and what was published. The
// numbers that tables, JSON and gates show come from this value, and only from it. seconds = bulk + misc +
// other; software_seconds = seconds - the same plan under `wire-only`; efficiency = lower bound / seconds.
// Wall-clock figures (*_wall_seconds) are of this process and differ from run to run.

#include <optional>
#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/bound.hpp"
#include "planner/certificate.hpp"
#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "report/source_variant.hpp"
#include "sim/activity.hpp"
#include "sim/simulation.hpp"
#include "sim/term.hpp"

namespace isthmus::report {

struct LinkUse {
  sim::Activity activity;
  std::vector<sim::Work> work;  // resources other than links
};

/// What travels under a policy that quantises first, and the bound of that: efficiency is by it.
struct QuantisedRow {
  Bytes payload;
  LowerBound bound;
};

struct PolicyRow {
  std::string policy;
  std::string refused;                // the reason; empty when the policy made a plan
  std::vector<Violation> violations;  // of a plan that could not be proven; it is not simulated then
  bool proven = false;
  double seconds = 0, bulk_seconds = 0, misc_seconds = 0, other_seconds = 0, software_seconds = 0;
  double efficiency = 0;
  Bytes network_bytes, nvlink_bytes, peak_staging_bytes;
  bool full_tensor_materialised = false;
  std::string binding_resource;
  double plan_wall_seconds = 0, check_wall_seconds = 0, simulate_wall_seconds = 0;
  std::uint64_t digest = 0;        // of the predicted timeline
  std::vector<double> stages{};    // seconds under further calibrations, in their order
  std::vector<sim::Term> terms{};  // of the makespan; they add up to it
  std::optional<LinkUse> links{};  // where asked for

  std::string stopped{};  // what failed for good under the scenario's faults; empty: all arrived

  std::optional<QuantisedRow> quantised{};  // of the variant beside what the scenario itself sends

  bool predicted() const { return refused.empty() && proven && stopped.empty(); }
};

struct Comparison {
  std::string scenario;
  std::string calibration;
  InventoryTotals totals;
  Bytes payload;
  LowerBound bound;
  std::vector<Published> published;
  std::vector<PolicyRow> policies;
  PrecisionTotals wire{};
  std::vector<Link> links{};              // of the fabric, where their use was asked for
  Quantised quantised = Quantised::none;  // where the scenario itself quantises
  Bytes live_bytes{};                     // the most that one target rank holds once its weights are loaded

  /// The fastest predicted policy; nullptr when none could be predicted.
  const PolicyRow* fastest() const;
};

/// Plan, proof and simulation by one policy, also under further calibrations; without terms for
/// Detail::totals; with what links carry over time in `link_steps` steps, unless that is 0 (needs
/// Detail::terms).
PolicyRow run_policy(const Refit& refit, const Policy& policy, const Calibration& calibration,
                     const LowerBound& bound, const std::vector<Calibration>& stages, sim::Detail detail,
                     std::size_t link_steps = 0);

/// Plan, proof and the seconds alone, for what asks no more.
PolicyRow time_policy(const Refit& refit, const Policy& policy, const Calibration& calibration);

/// Runs the named policies (planner/policy.hpp; all must be known) in parallel; rows keep the order of
/// names. `variant`: what `balanced-quantized` plans where the refit itself is not quantised at its source.
Comparison compare(const Refit& refit, const std::vector<Published>& published,
                   const Calibration& calibration, const std::vector<std::string>& names,
                   std::size_t link_steps = 0, const SourceVariant* variant = nullptr);

/// The table a person reads, with a headline and the bound. Ends with a newline.
std::string to_table(const Comparison& comparison);
/// How many steps the series of --links have.
inline constexpr std::size_t default_link_steps = 100;
/// The JSON of docs/json.md, indented by two. Ends with a newline.
std::string to_json(const Comparison& comparison);

}  // namespace isthmus::report

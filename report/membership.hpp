#pragma once
// A change of membership between two refits, done in three ways, as timelines. T(p) is the first refit of the
// new membership by policy p, planned, proven and simulated; C the catch-up (planner/catch_up.hpp), by the
// source and policy that end it first; the rest are constants (model/membership_costs.hpp):
//   recreate     destroy + create + C + T(p) + first_refit_after_create
//   shrink/grow  [shrink] + [grow] + C + T(p) + first_refit_after_{shrink, grow}, the longer of what is done
//   spares       the same, and takeover in place of [shrink] + [grow] where that is longer, with spare
//                replicas in place of those that are lost, which T(p) serves too
// The refit starts when it may (`next_refit`) and all before it has ended; C is 0 where nothing moves, and
// where nobody leaves or joins T(p) is all. Lost: the integral of wanted - serving GPUs up to the end of the
// slowest way, wanted = generation GPUs before or after, whichever is more. Nobody serves while communicators
// change or a refit runs; in C nobody who takes part in it.

#include <string>
#include <vector>

#include "model/calibration.hpp"
#include "model/membership.hpp"
#include "model/membership_costs.hpp"
#include "planner/catch_up.hpp"

namespace isthmus::report {

enum class Way : std::uint8_t { recreate, shrink_grow, spares };
std::string_view to_string(Way way);

/// A plan of a catch-up or of a refit, by one policy.
struct PlannedMove {
  std::string policy;
  std::string refused;  // why there is none, or that it is not proven
  double seconds = 0;
};

/// What is known of catching up in one way.
struct CatchUpRow {
  CatchUpFrom from = CatchUpFrom::own_side;
  std::string refused;
  Bytes moved, kept, needed;
  std::size_t tensors = 0;              // boxes; 0: nothing moves
  std::vector<PlannedMove> plans;       // as the policies were named
  int needing_gpus = 0, busy_gpus = 0;  // of generation: lack something; lack nothing, but send

  /// The fastest; nullptr: none.
  const PlannedMove* fastest() const;
};

struct MembershipPhase {
  std::string what;
  double begin = 0, end = 0;
  int serving = 0;  // generation GPUs
};

struct WayRow {
  Way way = Way::recreate;
  std::string policy;   // of the refit
  std::string refused;  // why it cannot be done
  std::vector<MembershipPhase> phases{};
  double seconds = 0, low = 0, high = 0;  // until the first refit has ended; within the constants' intervals
  double refit_seconds = 0;               // of later refits
  double lost_gpu_seconds = 0;
};

struct MembershipQuestion {
  MembershipChange change{};
  std::vector<std::string> policies{};
  double next_refit = 0;  // not before that, in seconds after the change
};

struct MembershipReport {
  std::string scenario, calibration;
  MembershipQuestion question{};
  int train_before = 0, train_after = 0, generate_before = 0, generate_after = 0;  // GPUs
  std::vector<int> idle{}, spares{};                                               // hosts
  Bytes full_bytes;  // that a full refit brings to the new membership
  std::vector<CatchUpRow> catch_ups{};
  std::vector<WayRow> ways{};

  /// The catch-up that ends first; nullptr where none can be done.
  const CatchUpRow* chosen() const;
  const WayRow* fastest() const;  // nullptr: none can be done
};

/// Requires a change without faults (model/membership.hpp).
MembershipReport judge_membership(const Scenario& scenario, const Refit& before,
                                  const Calibration& calibration, const MembershipCosts& costs,
                                  const MembershipQuestion& question);

std::string to_text(const MembershipReport& report);
/// The JSON of docs/json.md.
std::string to_json(const MembershipReport& report);

}  // namespace isthmus::report

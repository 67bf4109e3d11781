#pragma once
// What a refit takes from decoding and decoding from it, by simulation with the plan of one policy:
//   alone     the refit where generators stand still
//   beside    the refit where they decode: their demand on NVLink ports, NICs and memory is background load
//             (docs/faults.md) on each generation GPU, the transport has its CTAs (sim/kernel_ports.hpp)
//   decoding  the speed that decoding keeps meanwhile: of each engine the least of all its GPUs' shares
//             (moved / wanted) of these loads and of
//                 (SMs - CTAs) / (SMs x share of them that decoding wants)
//             but 1 at most; of all engines the average.
// So a port that decoding wants half of costs it nothing while the refit leaves half: the fluid limit.
// Both have the scenario's own background and faults.

#include <optional>
#include <string>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "model/step.hpp"
#include "planner/operations.hpp"
#include "planner/policy.hpp"

namespace isthmus::report {

struct RefitCost {
  Duration alone;
  Duration loading;  // of it: loads on the critical path
  Duration beside;
  std::int64_t decoding = 1'000'000'000;  // in units of 10^-9
  std::string binding_alone, binding_beside;
};

/// A proven plan, ready to be run under loads. The refit and the calibration must outlive it.
class RefitCosts {
 public:
  /// `engine_ranks`: consecutive generation ranks that decode in step.
  RefitCosts(const Refit& refit, const Calibration& calibration, std::size_t engine_ranks,
             const Policy& policy);

  /// Why there is nothing to run: the policy's reason, or that its plan is not proven.
  const std::string& refused() const { return refused_; }
  /// `beside` is as `alone` unless asked for. Raises InputError (key faults) where the scenario's faults
  /// stop the refit.
  RefitCost run(const DecodeSpec& decode, int ctas, bool beside) const;

 private:
  std::int64_t kept_by_ports(const Disturbances& disturbances, int ctas, RefitCost& cost) const;

  const Refit& refit_;
  const Calibration& calibration_;
  std::size_t engine_ranks_;
  std::optional<Operations> operations_;
  std::string refused_;
};

}  // namespace isthmus::report

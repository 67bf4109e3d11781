#pragma once
// What goes wrong on a machine, or runs on it beside the refit: background loads, faults at given times, and
// what becomes of steps that fail. Values as a scenario states them (docs/faults.md); sim/schedule.hpp turns
// them into capacities over time.
// A background load is `flows` endless flows on each port that it names, which together ask for at most its
// rate or its share of the port's capacity; an sm load takes its share of what the kernels of a GPU move.
// A fault leaves `share` of the capacity of what it names, from `at` on, until `until`; 0: failed. Of faults
// on one thing at one time the worst holds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

class Fabric;
struct InputFault;
struct Scenario;

struct BackgroundLoad {
  enum class On : std::uint8_t { nic, nvlink, memory, sm };
  enum class Direction : std::uint8_t { both, out, in };
  enum class Side : std::uint8_t { all, train, generate };
  On on = On::nic;
  Side side = Side::all;
  std::vector<int> hosts{}, gpus{};       // of the fabric; local numbers; empty: all
  Direction direction = Direction::both;  // nic and nvlink
  std::optional<double> share{};          // of the capacity, 0 to 1; sm: below 1
  std::optional<Bandwidth> rate{};        // or so much on each port (not sm)
  int flows = 1;                          // that share fairly with those of the refit (not sm)
  friend bool operator==(const BackgroundLoad&, const BackgroundLoad&) = default;
};

/// "nic:3.1" (beside GPU 1 on host 3), "gpu:3.1", "host:3", "leaf:5", "link:NIC out of GPU 1 on host 3".
struct FaultSubject {
  enum class Kind : std::uint8_t { nic, gpu, host, leaf, link };
  Kind kind = Kind::nic;
  std::uint32_t number = 0;  // of the host, or of the leaf
  std::uint32_t gpu = 0;     // on that host
  std::string link{};
  friend bool operator==(const FaultSubject&, const FaultSubject&) = default;
};
inline constexpr std::string_view fault_subject_form =
    "nic:HOST.GPU, gpu:HOST.GPU, host:HOST, leaf:NUMBER, or link:NAME";
std::optional<FaultSubject> parse_fault_subject(std::string_view text);
std::string to_string(const FaultSubject& subject);

struct MachineFault {
  Duration at;
  FaultSubject what{};
  double share = 0;
  std::optional<Duration> until{};  // unset: for good
  friend bool operator==(const MachineFault&, const MachineFault&) = default;
};
inline constexpr double least_fault_share = 0.001;  // but for 0

/// stop: a failed step never completes. retry: it starts again after the timeout, and after each further one,
/// once what it needs is back. reroute: the same, on a way around what failed where there is one.
enum class FailedSteps : std::uint8_t { stop, retry, reroute };
std::string_view to_string(FailedSteps policy);
std::optional<FailedSteps> parse_failed_steps(std::string_view name);

struct FailureRule {
  FailedSteps policy = FailedSteps::stop;
  Duration timeout{picoseconds_per_second};  // from the failure of a step until it is noticed
  friend bool operator==(const FailureRule&, const FailureRule&) = default;
};

struct Disturbances {
  std::vector<BackgroundLoad> background{};
  std::vector<MachineFault> faults{};
  FailureRule failed_steps{};

  bool none() const { return background.empty() && faults.empty(); }
  friend bool operator==(const Disturbances&, const Disturbances&) = default;
};

/// What a fault takes with it: directed links, and the memory and the host threads of GPUs.
struct Affected {
  std::vector<LinkId> links{};  // ascending
  std::vector<GpuId> gpus{};
};
/// Requires a subject that the fabric has.
Affected affected(const Fabric& fabric, const FaultSubject& subject);

/// Subjects and numbers that the fabric lacks; sides that the scenario does not have.
std::vector<InputFault> disturbance_faults(const Scenario& scenario, const Fabric& fabric);

}  // namespace isthmus

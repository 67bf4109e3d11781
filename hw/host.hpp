#pragma once
// The host backend: memory and threads of one process. Every rank has its arena; a pool of threads executes
// what the execution rule has made ready, so that plans of many ranks run on few cores. Messages that are not
// in one piece on a side are packed and unpacked, as a network would have it; puts and copies go directly.
// Operations that are ready together may start in any order, drawn from a seed: a plan that is right by luck
// alone is found out by some seeds.
// Invariant: run() ends. Where nothing is in flight and something is left, the plan stands still, which is
// said at once; where an operation in flight takes longer than the deadline, all threads are stopped.

#include <cstdint>
#include <optional>

#include "hw/executor.hpp"

namespace isthmus::hw {

/// What goes wrong on purpose, so that tests can see it found.
struct PlantedFaults {
  std::optional<std::uint32_t> stuck_operation;    // never ends by itself
  std::optional<std::uint32_t> corrupt_operation;  // flips a bit of the last byte that it moves
};

struct HostSettings {
  std::size_t threads = 0;  // 0: one for each core, at most 16, at most one for each rank
  PlantedFaults faults{};
};

class HostExecutor : public Executor {
 public:
  explicit HostExecutor(HostSettings settings = {}) : settings_(settings) {}
  /// Raises InputError when the arenas do not fit into this machine's memory.
  Measurement run(const Program& program, const RunOptions& options) override;

 private:
  HostSettings settings_;
};

}  // namespace isthmus::hw

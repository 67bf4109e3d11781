#pragma once
// One interface, several backends: an executor runs a program (hw/program.hpp) by the execution rule of
// planner/plan.hpp, measures when each operation was ready and when it ended, and looks at every byte.
// Each run: sources hold their code (hw/code.hpp), targets its complement, staging a constant; the operations
// run; every byte of every target shard is compared. Run r uses pass r of the code, modulo the passes that
// injectivity takes, and further runs are added until each pass had its turn: warm-ups first, then the timed
// repetitions, then what is left. So `byte_exact` is a statement about every element, not a probability.
// Time zero of a timeline is when all ranks may start; filling and comparing are not part of it.
// What fails leaves as SystemError (call, code, rank, step) once everything that runs has been stopped: no
// wait is longer than the deadline, and nothing hangs.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/program.hpp"
#include "planner/timeline.hpp"

namespace isthmus::hw {

struct RunOptions {
  std::uint32_t warm_up = 0;
  std::uint32_t repetitions = 1;                   // that are timed; at least 1
  Duration deadline{30 * picoseconds_per_second};  // of every single wait
  bool verify = true;                              // false: bytes are not looked at, and no run is added
  bool graph = false;                // on GPUs: all launches as one CUDA graph, launched once a run
  std::size_t most_mismatches = 20;  // further ones are counted, not listed
  std::uint64_t seed =
      0;  // of the order in which operations start that are ready together, where the backend
          // has a choice; 0: in the order in which they became ready
};

/// Bytes of one target element that are not what they should be.
struct Mismatch {
  TensorId tensor;
  std::vector<std::int64_t> element;  // global indices
  Rank rank;
  std::uint32_t pass = 0;
  std::uint64_t expected = 0, found = 0;  // words, as hw/code.hpp has them
  std::string message;  // what (tensor, element, step, rank) - what was found - what should be there
};

struct Measurement {
  std::string backend, device;
  std::uint32_t gpus = 0;       // that ranks were folded onto; 0 elsewhere
  std::size_t launches = 0;     // on them (hw/gpu_schedule.hpp)
  bool graph = false;           // they were one CUDA graph
  std::string graph_refused;    // why they were not, where that was asked for
  std::vector<Duration> times;  // makespan of each timed repetition
  Timeline timeline;            // of the fastest one; link_bytes is empty
  Bytes moved;                  // bytes of all transfers of one run, those within a rank left out
  Bytes memory;                 // of all arenas
  Bytes verified;               // bytes of target shards that were compared, in one run
  std::uint32_t passes = 0, passes_needed = 0;  // of the code: seen, and needed for injectivity
  std::size_t mismatch_count = 0;               // elements, in all runs
  std::vector<Mismatch> mismatches;

  bool byte_exact() const { return passes_needed > 0 && passes >= passes_needed && mismatch_count == 0; }
  Duration fastest() const;
  Duration median() const;
};

/// Which runs an executor makes, and which of them count (see above); r counts from 0.
std::uint32_t run_count(const RunOptions& options, std::uint32_t passes_needed);
bool is_timed(const RunOptions& options, std::uint32_t r);
void add_repetition(Measurement& measurement, Timeline timeline);

class Executor {
 public:
  virtual ~Executor() = default;
  virtual Measurement run(const Program& program, const RunOptions& options) = 0;
  /// Whether this process tells of the result: of several that measure together, one does.
  virtual bool reports() const { return true; }

 protected:
  Executor() = default;
  Executor(const Executor&) = default;
  Executor& operator=(const Executor&) = default;
};

/// What failed outside the program, and where; thrown as SystemError(to_string(fault)).
struct SystemFault {
  std::string call;                     // "ncclSend", "cudaMemcpyAsync", "wait"
  std::string code;                     // what the call said, or "not complete after 30 s"
  std::string step{};                   // Program::describe; empty where it is none's
  std::optional<std::uint32_t> rank{};  // none: of all ranks together
};
/// "call: code (rank 3; step 1 of tensor w)"
std::string to_string(const SystemFault& fault);

/// A way to execute, by the name that --backend takes.
struct Backend {
  std::string_view name, summary;
  std::unique_ptr<Executor> (*make)();  // nullptr: this program was built without it
};
std::vector<Backend> backends();
/// Raises InputError for a name that is none, or of a backend that this program was built without.
std::unique_ptr<Executor> make_executor(std::string_view name);

}  // namespace isthmus::hw

#pragma once
// The processes of an Open MPI job, from MPI_Init to MPI_Finalize, and the only place that waits for them.
// Nothing hangs. Messages are nonblocking and polled. A wait without any completion for the deadline, a call
// that fails, and SIGTERM (which launchers send when another process has died) all leave as SystemError with
// step and rank of what was waited for. A thread looks after the calls that block by nature: where the
// process has not come back from MPI for the deadline and `grace` more (half a second after SIGTERM), it
// names what was in hand and ends the process with exit status 3. After a failure MPI_Finalize, which would
// wait for the dead, is left out: the launcher sees the exit status and ends the job.
// SIGTERM is blocked in all threads from before MPI_Init on, and looked for wherever this waits.

#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hw/executor.hpp"

namespace isthmus::hw {

class MpiWorld {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds grace{3};

  /// Joins the job; alone where there is none.
  explicit MpiWorld(std::chrono::nanoseconds deadline);
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  std::uint32_t process() const { return process_; }
  std::uint32_t size() const { return size_; }
  std::chrono::nanoseconds deadline() const { return deadline_; }
  /// Of the waits from now on.
  void set_deadline(std::chrono::nanoseconds deadline);
  /// Host names of the processes, each once, in order.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// By process: which of those.
  const std::vector<std::uint32_t>& host_of() const { return host_of_; }
  /// The largest tag of a message.
  std::int64_t most_tag() const { return most_tag_; }

  /// Every process's bytes, by process, once all have come here; with none, a barrier. `who` names a process
  /// that is missing: its ranks, and a step that it takes part in.
  using Who = std::function<SystemFault(std::uint32_t)>;
  std::vector<std::vector<std::byte>> exchange(const std::vector<std::byte>& bytes, const Who& who);

  /// What the process works for, an operation, and how to name it; for the case that MPI does not let it go.
  void doing(std::uint32_t operation) { doing_ = operation; }
  void set_scene(std::function<std::string(std::uint32_t)> describe);
  /// Around calls into MPI: between the two the process has to be back within the deadline.
  void beat();
  void rest();
  /// The process is alive, and still waits since `since`: raises SystemError, naming what `fault` makes,
  /// when that is over the deadline, or when the launcher wants an end.
  void still_waiting(Clock::time_point since, const std::function<SystemFault()>& fault);
  /// Raises SystemError unless the code is MPI_SUCCESS.
  void require(int code, const char* call, const std::function<SystemFault()>& fault);

 private:
  void look_after();
  [[noreturn]] void give_up();
  void join();
  [[noreturn]] void fail(const SystemFault& fault);
  std::vector<std::vector<std::byte>> round(const std::vector<std::byte>& bytes,
                                            const std::vector<std::uint64_t>& sizes, const Who& who);

  std::chrono::nanoseconds deadline_;
  std::atomic<std::int64_t> ends_ = 0;  // of the patience of look_after(), on Clock, in nanoseconds
  std::atomic<bool> over_ = false;
  std::atomic<bool> told_ = false;  // to end, by SIGTERM
  std::atomic<std::uint32_t> doing_ = 0;
  std::mutex scene_mutex_;
  std::function<std::string(std::uint32_t)> scene_;
  std::thread guardian_;
  bool failed_ = false;
  std::uint32_t process_ = 0, size_ = 1;
  std::int64_t most_tag_ = 0;
  std::vector<std::string> hosts_;
  std::vector<std::uint32_t> host_of_;
};

}  // namespace isthmus::hw

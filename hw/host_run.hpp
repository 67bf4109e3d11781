#pragma once
// One run of a program on the host: threads take what is ready, move its bytes, and say that it is complete.
// One mutex guards the rule and the timeline; bytes move outside of it. Whoever ends an operation publishes
// its bytes by that mutex to whoever starts a later one.
// Invariant: run() returns the timeline, or raises SystemError after all threads have ended.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <random>
#include <vector>

#include "hw/host.hpp"
#include "hw/host_memory.hpp"
#include "planner/queues.hpp"

namespace isthmus::hw {

/// What all runs of a program share.
struct HostProgram {
  const Program& program;
  QueuePlan queues;
  std::vector<std::vector<Transfer>> transfers;  // by operation
  Bytes between_ranks;                           // bytes of the transfers that leave their rank
};
HostProgram prepare_host(const Program& program);

class HostRun {
 public:
  HostRun(const HostProgram& host, HostMemory& memory, const RunOptions& options,
          const HostSettings& settings);
  Timeline run();

 private:
  using Clock = std::chrono::steady_clock;
  struct InFlight {
    std::uint32_t operation = Span::no_cause;
    Clock::time_point since;
  };

  Instant now() const;
  void work(std::size_t thread);
  /// Takes an operation that is ready; waits for one. False when there will be none.
  bool take(std::size_t thread, std::uint32_t& operation);
  void finish(std::size_t thread, std::uint32_t operation);
  void add_ready(const std::vector<std::uint32_t>& found, std::uint32_t cause);
  void execute(std::uint32_t operation, std::vector<std::byte>& message);
  void move(const Transfer& transfer, bool as_message, std::vector<std::byte>& message);
  void corrupt(const Transfer& transfer);
  void wait_for_failure();
  /// Waits until all is done, something failed, or an operation takes too long.
  void watch();
  void fail(const char* call, const std::string& code, std::uint32_t operation);

  const HostProgram& host_;
  HostMemory& memory_;
  const RunOptions& options_;
  const HostSettings& settings_;
  Clock::time_point start_;

  std::mutex mutex_;               // guards all below
  std::condition_variable more_;   // something is ready, or nothing ever will be
  std::condition_variable ended_;  // all is complete, or something failed
  Queues queues_;
  std::deque<std::uint32_t> ready_;
  std::vector<InFlight> in_flight_;  // by thread
  std::vector<bool> complete_;       // by operation
  std::mt19937_64 random_;
  Timeline timeline_;
  std::exception_ptr failure_;
};

/// How many threads a program runs on.
std::size_t thread_count(const HostSettings& settings, std::size_t ranks);

}  // namespace isthmus::hw

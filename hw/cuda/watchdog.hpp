#pragma once
// Nothing hangs: a thread that must hear of progress at least once per deadline. If it does not, it calls
// the stop function (which makes kernels and communicators give up) in a thread of its own, so that the
// blocked call returns and the caller can throw. If that does not help either within the grace period, there
// is no safe way on in this process: it says so on standard error and ends the program with exit status 3.
// Invariant: from construction to destruction some deadline runs; it must outlive whatever may block.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace isthmus::hw {

class Watchdog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds grace{20};

  explicit Watchdog(std::chrono::nanoseconds deadline);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// The work goes on; `what` is what begins now. The deadline starts anew.
  void progress(std::string what);
  void progress();
  /// Another deadline, from now on.
  void set_deadline(std::chrono::nanoseconds deadline);
  /// What ends a blocked call; an empty one before what it touches is destroyed, which waits for a stop that
  /// is under way.
  void set_stop(std::function<void()> stop);
  bool expired() const { return expired_.load(); }
  /// "no progress for 30 s: exchange 12 ..."
  std::string verdict() const;

 private:
  void watch();
  void give_up();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::chrono::nanoseconds deadline_;
  Clock::time_point until_;
  std::string what_;
  bool done_ = false;
  std::atomic<bool> expired_{false};
  std::mutex stop_mutex_;  // held while stop_ runs
  std::function<void()> stop_;
  std::thread stopper_;
  std::thread thread_;  // last: it sees all the others
};

}  // namespace isthmus::hw

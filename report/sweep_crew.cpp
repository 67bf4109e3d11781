#include "report/sweep_crew.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace isthmus::report {

ThreadCrew::ThreadCrew(std::size_t threads) : threads_(std::max<std::size_t>(1, threads)) {}

void ThreadCrew::run(SweepDesk& desk) {
  std::mutex mutex;
  std::exception_ptr raised;
  std::atomic<bool> stop = false;
  const auto work = [&] {
    try {
      while (!stop) {
        const std::optional<std::uint32_t> job = desk.take();
        if (!job) return;
        desk.work(*job);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!raised) raised = std::current_exception();
      stop = true;
    }
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < threads_; ++i) others.emplace_back(work);
  work();
  for (std::thread& each : others) each.join();
  if (raised) std::rethrow_exception(raised);
}

std::size_t all_cores() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace isthmus::report

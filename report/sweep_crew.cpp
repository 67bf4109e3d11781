#include "report/sweep_crew.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace isthmus::report {
namespace {

class NumberDesk : public SweepDesk {
 public:
  NumberDesk(std::size_t count, const std::function<void(std::size_t)>& work) : count_(count), work_(work) {}

  std::optional<std::uint32_t> take() override {
    const std::size_t number = next_++;
    return number < count_ ? std::optional(static_cast<std::uint32_t>(number)) : std::nullopt;
  }
  void work(std::uint32_t job) override { work_(job); }

 private:
  std::size_t count_;
  const std::function<void(std::size_t)>& work_;
  std::atomic<std::size_t> next_ = 0;
};

}  // namespace

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

void run_jobs(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& work) {
  NumberDesk desk(count, work);
  ThreadCrew(threads).run(desk);
}

std::size_t all_cores() { return std::max(1U, std::thread::hardware_concurrency()); }

}  // namespace isthmus::report

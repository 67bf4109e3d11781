#include "hw/cuda/watchdog.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

namespace isthmus::hw {

Watchdog::Watchdog(std::chrono::nanoseconds deadline) : deadline_(deadline), until_(Clock::now() + deadline) {
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (stopper_.joinable()) stopper_.join();
}

void Watchdog::progress(std::string what) {
  const std::lock_guard lock(mutex_);
  what_ = std::move(what);
  if (!expired_) until_ = Clock::now() + deadline_;
}

void Watchdog::progress() {
  const std::lock_guard lock(mutex_);
  if (!expired_) until_ = Clock::now() + deadline_;
}

void Watchdog::set_deadline(std::chrono::nanoseconds deadline) {
  {
    const std::lock_guard lock(mutex_);
    deadline_ = deadline;
    if (!expired_) until_ = Clock::now() + deadline_;
  }
  changed_.notify_all();
}

void Watchdog::set_stop(std::function<void()> stop) {
  const std::lock_guard lock(stop_mutex_);
  stop_ = std::move(stop);
}

std::string Watchdog::verdict() const {
  const std::lock_guard lock(mutex_);
  return fmt::format("no progress for {:.3g} s: {}", std::chrono::duration<double>(deadline_).count(),
                     what_.empty() ? "set-up" : what_);
}

void Watchdog::watch() {
  std::unique_lock lock(mutex_);
  while (!done_ && Clock::now() < until_) changed_.wait_until(lock, until_);
  if (done_) return;
  expired_ = true;
  stopper_ = std::thread([this] {
    const std::lock_guard held(stop_mutex_);
    if (stop_) stop_();
  });
  if (changed_.wait_for(lock, grace, [this] { return done_; })) return;
  lock.unlock();
  give_up();
}

void Watchdog::give_up() {
  fmt::print(stderr, "isthmus: {}; it cannot be stopped\n", verdict());
  std::fflush(stderr);
  std::_Exit(3);
}

}  // namespace isthmus::hw

#pragma once
// NCCL communicators over all GPUs of this process: `sets` of them, one for each lane stream. NCCL's kernels
// wait for their peers on other GPUs while they hold their multiprocessors, so all sets together get at most
// the CTAs that a GPU can hold at once; otherwise sets could wait for each other in a ring.
// Communicators block (a group of a non-blocking one is launched by a thread of its own, which the times
// would show); calls that do not return are ended by abort(), from the watchdog's thread. Both modes are
// handled: ncclInProgress is asked again until it is settled.
// Connections are made on first use; connect() makes them, so that no measurement pays for it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <nccl.h>

#include "hw/cuda/handles.hpp"

namespace isthmus::hw {

class Communicators {
 public:
  Communicators() = default;
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  void open(std::uint32_t gpus, std::uint32_t sets);
  /// Whether these do for so many sets over so many GPUs.
  bool serves(std::uint32_t gpus, std::uint32_t sets) const {
    return !aborted_ && gpus_ == gpus && sets_ >= sets && !list_.empty();
  }
  /// A message of one byte from every GPU to every other, over every set; returns how long that took.
  std::chrono::nanoseconds connect();

  ncclComm_t get(std::uint32_t set, std::uint32_t gpu) const { return list_[set * gpus_ + gpu]; }
  /// Returns once no communicator of the set has work in progress on the host. Raises SystemError on failure.
  void settle(std::uint32_t set) const;
  /// Destroys them; nothing may be in flight. After abort() there is nothing left to do.
  void close();
  /// From any thread: everything that waits on a communicator gives up.
  void abort();

 private:
  void connect(std::uint32_t set, const std::vector<DeviceArray<std::byte>>& bytes,
               const std::vector<Stream>& streams) const;

  std::uint32_t gpus_ = 0, sets_ = 0;
  std::vector<ncclComm_t> list_;  // by set, by GPU
  std::mutex mutex_;              // of list_, while it grows
  std::atomic<bool> aborted_{false};
};

/// "NCCL 2.28.3"
std::string nccl_version();

}  // namespace isthmus::hw

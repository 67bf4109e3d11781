#pragma once
// One program on the GPUs of this process: arenas, streams, events and communicators, from set-up to
// give-back. A round is: prepare (fill sources, poison the rest), execute (all launches, timed), judge.
// Invariants: nothing is in flight between the three; every wait is under the watchdog, which outlives all
// that may block; after a failure kernels and communicators are aborted before anything is given back.
// After capture() a run is one launch of a CUDA graph that holds all launches, with their order across
// GPUs: the host's thread has no part in it. All GPUs begin once each has recorded its start; the end of
// each launch is an event that the graph records. Such events keep their last run's time until they are
// recorded anew, so nothing is asked before the whole graph has ended, and the deadline is that of the run.
// A communicator is not gone before the graphs that use it are, so the graph is given back first.

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/cuda/communicators.hpp"
#include "hw/cuda/handles.hpp"
#include "hw/cuda/kernels.hpp"
#include "hw/cuda/watchdog.hpp"
#include "hw/executor.hpp"
#include "hw/gpu_schedule.hpp"
#include "hw/judge.hpp"
#include "model/error.hpp"

namespace isthmus::hw {

/// CUDA or NCCL does not take the launches into a graph; the message is theirs.
class CaptureRefused : public SystemError {
 public:
  using SystemError::SystemError;
};

class GpuSession {
 public:
  /// Opens the communicators where they do not serve yet; after a failure they are aborted.
  GpuSession(const Program& program, const GpuSchedule& schedule, std::chrono::nanoseconds deadline,
             Communicators& communicators);
  ~GpuSession();
  GpuSession(const GpuSession&) = delete;
  GpuSession& operator=(const GpuSession&) = delete;

  /// From here on a run is the launch of a graph. Raises CaptureRefused: then only destruction is left.
  void capture();
  void prepare(std::uint32_t pass);
  /// When each launch was complete on all GPUs, counted from the start.
  std::vector<Instant> execute();
  /// Adds what is wrong in the target shards to the measurement.
  void judge(std::uint32_t pass, std::size_t most_mismatches, Measurement& measurement);
  /// Gives everything back while the watchdog looks on.
  void close();

 private:
  struct ShardPlace {
    Rank rank;
    const Shard* shard = nullptr;
    std::byte* memory = nullptr;
  };
  struct Gpu {
    int index = 0;
    int multiprocessors = 1;
    DeviceArray<std::byte> arena;
    DeviceArray<DeviceMove> moves;
    std::vector<std::uint32_t> tiles;  // by launch
    DeviceArray<DeviceShard> shards;   // room for the longer of both lists
    DeviceArray<DeviceVerdict> verdict;
    std::vector<ShardPlace> sources, targets;
    std::vector<Stream> streams;
    std::vector<Event> done;   // by launch: what others wait for
    std::vector<Event> marks;  // by launch: when it ended, where a graph records that
    Event start;
  };

  void set_up();
  void open(Gpu& gpu);
  void share_memory() const;
  void list_shards();
  void upload_moves(Gpu& gpu);
  void upload_shards(Gpu& gpu, const std::vector<ShardPlace>& places, std::uint32_t pass, bool target);
  void wait_for_all(const std::string& what);
  void wait_for(const Gpu& gpu, cudaEvent_t event);
  void begin_capture(std::vector<Event>& forks);
  void end_capture(std::vector<Event>& joins);
  std::vector<Instant> execute_graph();
  Instant end_of(std::size_t launch) const;
  void issue(std::size_t launch);
  void issue_waits(std::size_t launch, const Gpu& gpu) const;
  void issue_exchange(const Launch& launch);
  std::string describe(std::size_t launch) const;
  MoveBlocks block_budget(const Gpu& gpu, std::size_t launch) const;
  [[noreturn]] void fail(const std::string& message) const;

  const Program& program_;
  const GpuSchedule& schedule_;
  const Codes codes_;
  Watchdog watchdog_;
  SharedWord abort_;
  std::vector<Gpu> gpus_;
  Communicators& communicators_;
  std::vector<std::uint32_t> operation_of_launch_;
  GraphExec graph_;
  bool capturing_ = false;
  bool clean_ = false;
};

}  // namespace isthmus::hw

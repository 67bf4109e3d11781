// GpuSession: launches issued one by one or as a graph, and waits for them.

#include <algorithm>
#include <thread>

#include <fmt/format.h>

#include "hw/cuda/check.hpp"
#include "hw/cuda/session.hpp"

namespace isthmus::hw {
namespace {

Instant after_start(double milliseconds) {
  return {static_cast<std::int64_t>(std::max(0.0, milliseconds) * 1e9)};
}

/// For what uses it now; a later launch of the graph records it anew.
void mark_in_graph(cudaEvent_t event, cudaStream_t stream) {
  check(cudaEventRecordWithFlags(event, stream, cudaEventRecordExternal), "cudaEventRecordWithFlags");
}

void let_wait(cudaStream_t stream, cudaEvent_t event) {
  check(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
}

void record_on(cudaEvent_t event, cudaStream_t stream) {
  check(cudaEventRecord(event, stream), "cudaEventRecord");
}

}  // namespace

/// Threads of NCCL, and the watchdog's, may call what a capture forbids to this one.
void GpuSession::capture() {
  watchdog_.progress(fmt::format("capture of {} launches", schedule_.launches.size()));
  for (Gpu& gpu : gpus_)
    for (std::size_t l = 0; l < schedule_.launches.size(); ++l) gpu.marks.push_back(make_event(gpu.index));
  std::vector<Event> forks, joins;
  cudaStream_t const origin = gpus_[0].streams[0].get();
  cudaGraph_t captured = nullptr;
  use_gpu(0);
  try {
    for (const Gpu& gpu : gpus_) forks.push_back(make_event(gpu.index));
    for (const Gpu& gpu : gpus_)
      for (std::size_t s = 0; s < gpu.streams.size(); ++s) joins.push_back(make_event(gpu.index));
    use_gpu(0);
    check(cudaStreamBeginCapture(origin, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    capturing_ = true;
    begin_capture(forks);
    for (std::size_t l = 0; l < schedule_.launches.size(); ++l) issue(l);
    end_capture(joins);
    use_gpu(0);
    capturing_ = false;
    check(cudaStreamEndCapture(origin, &captured), "cudaStreamEndCapture");
    const Graph graph(captured);
    graph_ = make_executable(graph);
    check(cudaGraphUpload(graph_.get(), origin), "cudaGraphUpload");
  } catch (const SystemError& error) {
    if (capturing_ && cudaStreamEndCapture(origin, &captured) == cudaSuccess) Graph(captured).reset();
    capturing_ = false;
    static_cast<void>(cudaGetLastError());
    if (watchdog_.expired()) fail(watchdog_.verdict());
    throw CaptureRefused(error.what());
  }
  wait_for_all("upload of a graph");
}

/// Every stream comes after the start of every GPU.
void GpuSession::begin_capture(std::vector<Event>& forks) {
  use_gpu(0);
  record_on(forks[0].get(), gpus_[0].streams[0].get());
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    cudaStream_t const first = gpu.streams[0].get();
    if (gpu.index != 0) let_wait(first, forks[0].get());
    mark_in_graph(gpu.start.get(), first);
  }
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    record_on(forks[static_cast<std::size_t>(gpu.index)].get(), gpu.streams[0].get());
  }
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    for (const Stream& stream : gpu.streams)
      for (const Event& fork : forks) let_wait(stream.get(), fork.get());
  }
}

/// What a capture forked has to come back to where it began.
void GpuSession::end_capture(std::vector<Event>& joins) {
  cudaStream_t const origin = gpus_[0].streams[0].get();
  std::size_t next = 0;
  for (const Gpu& gpu : gpus_) {
    for (const Stream& stream : gpu.streams) {
      const Event& join = joins[next++];
      if (stream.get() == origin) continue;
      use_gpu(gpu.index);
      record_on(join.get(), stream.get());
      use_gpu(0);
      let_wait(origin, join.get());
    }
  }
}

std::vector<Instant> GpuSession::execute_graph() {
  watchdog_.progress(fmt::format("graph of {} launches", schedule_.launches.size()));
  use_gpu(0);
  check(cudaGraphLaunch(graph_.get(), gpus_[0].streams[0].get()), "cudaGraphLaunch");
  wait_for_all(fmt::format("graph of {} launches", schedule_.launches.size()));
  std::vector<Instant> ends;
  for (std::size_t l = 0; l < schedule_.launches.size(); ++l) ends.push_back(end_of(l));
  return ends;
}

/// On all GPUs; it has to be over.
Instant GpuSession::end_of(std::size_t launch) const {
  Instant end;
  for (const Gpu& gpu : gpus_) {
    const Event& event = graph_ ? gpu.marks[launch] : gpu.done[launch];
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, gpu.start.get(), event.get()), "cudaEventElapsedTime");
    end = std::max(end, after_start(static_cast<double>(milliseconds)));
  }
  return end;
}

std::vector<Instant> GpuSession::execute() {
  if (graph_) return execute_graph();
  watchdog_.progress("start of a run");
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    record_on(gpu.start.get(), gpu.streams[0].get());
  }
  try {
    for (std::size_t l = 0; l < schedule_.launches.size(); ++l) issue(l);
  } catch (const SystemError& error) {
    if (watchdog_.expired()) fail(watchdog_.verdict());
    throw;
  }
  std::vector<Instant> ends(schedule_.launches.size());
  for (std::size_t l = 0; l < ends.size(); ++l) {
    watchdog_.progress(describe(l));
    for (const Gpu& gpu : gpus_) {
      wait_for(gpu, gpu.start.get());  // of another stream than the launch
      wait_for(gpu, gpu.done[l].get());
    }
    ends[l] = end_of(l);
  }
  wait_for_all("end of a run");
  return ends;
}

void GpuSession::issue(std::size_t launch) {
  const Launch& what = schedule_.launches[launch];
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    issue_waits(launch, gpu);
    if (what.kind != LaunchKind::moves) continue;
    const auto g = static_cast<std::size_t>(gpu.index);
    const std::uint32_t begin = schedule_.moves_begin[g][launch];
    launch_moves(gpu.moves.get() + begin, schedule_.moves_begin[g][launch + 1] - begin, gpu.tiles[launch],
                 block_budget(gpu, launch), abort_.get(), gpu.streams[what.stream].get());
  }
  if (what.kind == LaunchKind::exchange) issue_exchange(what);
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    cudaStream_t const stream = gpu.streams[what.stream].get();
    if (capturing_) mark_in_graph(gpu.marks[launch].get(), stream);  // before what waits: ends are in order
    record_on(gpu.done[launch].get(), stream);
  }
  watchdog_.progress();
}

void GpuSession::issue_waits(std::size_t launch, const Gpu& gpu) const {
  const Launch& what = schedule_.launches[launch];
  for (const std::uint32_t earlier : schedule_.waits_of(what)) {
    const bool same_stream = schedule_.launches[earlier].stream == what.stream;
    for (const Gpu& other : gpus_) {
      if (same_stream && other.index == gpu.index) continue;
      let_wait(gpu.streams[what.stream].get(), other.done[earlier].get());
    }
  }
}

void GpuSession::issue_exchange(const Launch& launch) {
  const std::uint32_t set = launch.stream / GpuSchedule::streams_per_lane;
  check(ncclGroupStart(), "ncclGroupStart");
  for (const Message& message : schedule_.messages_of(launch)) {
    const Gpu &from = gpus_[message.from], &to = gpus_[message.to];
    const auto bytes = static_cast<std::size_t>(message.bytes);
    check(ncclSend(from.arena.get() + message.source, bytes, ncclUint8, to.index,
                   communicators_.get(set, message.from), from.streams[launch.stream].get()),
          "ncclSend");
    check(ncclRecv(to.arena.get() + message.target, bytes, ncclUint8, from.index,
                   communicators_.get(set, message.to), to.streams[launch.stream].get()),
          "ncclRecv");
  }
  check(ncclGroupEnd(), "ncclGroupEnd");
  communicators_.settle(set);
}

/// What goes over a link needs a block per multiprocessor (measured on H200: 132 blocks of 512 threads reach
/// the rate of the NVLinks, 32 do not). Copies within a GPU fill it, but let NCCL's kernels in.
MoveBlocks GpuSession::block_budget(const Gpu& gpu, std::size_t launch) const {
  const auto g = static_cast<std::uint32_t>(gpu.index);
  const auto multiprocessors = static_cast<std::uint32_t>(gpu.multiprocessors);
  for (const GpuMove& move : schedule_.moves_of(g, launch)) {
    if (move.target_gpu != g) return {multiprocessors, true};
  }
  return {multiprocessors * 2, false};
}

void GpuSession::wait_for(const Gpu& gpu, cudaEvent_t event) {
  use_gpu(gpu.index);
  for (std::uint32_t spins = 0;; ++spins) {
    const cudaError_t state = cudaEventQuery(event);
    if (watchdog_.expired()) fail(watchdog_.verdict());
    if (state == cudaSuccess) return;
    if (state != cudaErrorNotReady) check(state, "cudaEventQuery");
    if (spins > 1000) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void GpuSession::wait_for_all(const std::string& what) {
  watchdog_.progress(what);
  for (const Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    for (const Stream& stream : gpu.streams) {
      while (true) {
        const cudaError_t state = cudaStreamQuery(stream.get());
        if (watchdog_.expired()) fail(watchdog_.verdict());
        if (state == cudaSuccess) break;
        if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  }
  watchdog_.progress();
}

}  // namespace isthmus::hw

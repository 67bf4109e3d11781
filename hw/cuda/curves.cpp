#include "hw/cuda/curves.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hw/cuda/check.hpp"
#include "hw/cuda/communicators.hpp"
#include "hw/cuda/gpus.hpp"
#include "hw/cuda/handles.hpp"
#include "hw/cuda/kernels.hpp"
#include "hw/cuda/watchdog.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kib = 1 << 10, mib = 1 << 20, gib = 1 << 30;
constexpr std::chrono::seconds bench_deadline{60};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

class CurveBench {
 public:
  explicit CurveBench(CurveVisitor visit) : watchdog_(bench_deadline), visit_(std::move(visit)) {
    gpus_.resize(std::min(visible_gpus(), 2U));
    abort_ = shared_word();
    watchdog_.set_stop([this] {
      *static_cast<volatile std::uint32_t*>(abort_.get()) = 1;
      communicators_.abort();
    });
    for (std::size_t g = 0; g < gpus_.size(); ++g) open(gpus_[g], static_cast<int>(g));
  }

  ~CurveBench() {
    if (!clean_) {
      *static_cast<volatile std::uint32_t*>(abort_.get()) = 1;
      communicators_.abort();
    }
    watchdog_.set_stop({});
  }
  CurveBench(const CurveBench&) = delete;
  CurveBench& operator=(const CurveBench&) = delete;

  CurveDevice run() {
    launches();
    copies();
    if (gpus_.size() > 1) {
      share();
      first_use();
      exchanges();
      peer_copies();
      puts();
      communicators_.close();
    }
    clean_ = true;
    const auto count = static_cast<std::uint32_t>(gpus_.size());
    return {describe_gpus(count), count};
  }

 private:
  struct BenchGpu {
    int index = 0;
    std::uint32_t multiprocessors = 1;
    std::int64_t half = 0;  // bytes to read from; as many to write to follow
    DeviceArray<std::byte> memory;
    DeviceArray<DeviceMove> moves;
    Stream stream;
    Event start, end;

    std::byte* source() const { return memory.get(); }
    std::byte* target() const { return memory.get() + half; }
  };
  static constexpr std::size_t most_pieces = 4096;

  void open(BenchGpu& gpu, int index) {
    watchdog_.progress(fmt::format("set-up of GPU {}", index));
    gpu.index = index;
    use_gpu(index);
    load_kernels();
    int multiprocessors = 0;
    check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, index),
          "cudaDeviceGetAttribute");
    gpu.multiprocessors = static_cast<std::uint32_t>(multiprocessors);
    std::size_t available = 0, total = 0;
    check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
    gpu.half = std::min<std::int64_t>(8 * gib, static_cast<std::int64_t>(available) / 4 / mib * mib);
    gpu.memory = device_array<std::byte>(index, static_cast<std::size_t>(2 * gpu.half));
    gpu.moves = device_array<DeviceMove>(index, most_pieces);
    gpu.stream = make_stream(index);
    check(cudaMemset(gpu.memory.get(), 1, static_cast<std::size_t>(2 * gpu.half)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    gpu.start = make_event(index);
    gpu.end = make_event(index);
  }

  void share() const {
    if (!open_peer(0, 1) || !open_peer(1, 0))
      throw SystemError("cudaDeviceCanAccessPeer: GPUs 0 and 1 cannot write into each other's memory");
  }

  void wait(const BenchGpu& gpu) {
    use_gpu(gpu.index);
    while (true) {
      const cudaError_t state = cudaEventQuery(gpu.end.get());
      if (watchdog_.expired()) throw SystemError(watchdog_.verdict());
      if (state == cudaSuccess) return;
      if (state != cudaErrorNotReady) check(state, "cudaEventQuery");
      std::this_thread::yield();
    }
  }

  struct Sample {
    double gpu = 0, host = 0;
  };

  template <class Issue>
  Sample sample(Issue& issue) {
    for (const BenchGpu& gpu : gpus_) {
      use_gpu(gpu.index);
      check(cudaEventRecord(gpu.start.get(), gpu.stream.get()), "cudaEventRecord");
    }
    const Clock::time_point begin = Clock::now();
    issue();
    Sample result;
    result.host = seconds_since(begin);
    for (const BenchGpu& gpu : gpus_) {
      use_gpu(gpu.index);
      check(cudaEventRecord(gpu.end.get(), gpu.stream.get()), "cudaEventRecord");
    }
    for (const BenchGpu& gpu : gpus_) {
      wait(gpu);
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, gpu.start.get(), gpu.end.get()), "cudaEventElapsedTime");
      result.gpu = std::max(result.gpu, static_cast<double>(milliseconds) * 1e-3);
    }
    return result;
  }

  /// Measures what issue() puts on the streams; large work is repeated less.
  template <class Issue>
  void point(CurvePoint what, Issue issue) {
    watchdog_.progress(fmt::format("{}: {} x {} bytes", what.path, what.operations, what.bytes.value));
    const bool large = what.bytes.value * what.operations > gib;
    const int warm_ups = large ? 1 : 3, runs = large ? 5 : 21;
    for (int i = 0; i < warm_ups; ++i) sample(issue);
    std::vector<double> gpu, host;
    for (int i = 0; i < runs; ++i) {
      const Sample one = sample(issue);
      gpu.push_back(one.gpu);
      host.push_back(one.host);
    }
    std::sort(gpu.begin(), gpu.end());
    std::sort(host.begin(), host.end());
    what.seconds = gpu[gpu.size() / 2];
    what.fastest = gpu.front();
    what.slowest = gpu.back();
    what.host_seconds = host[host.size() / 2];
    visit_(what);
  }

  /// Pieces of which every second row of the source is taken (row 0: in one piece), dense on the other side.
  void kernel_point(const std::string& path, std::uint32_t pieces, std::int64_t bytes, std::int64_t row,
                    std::uint32_t blocks, const BenchGpu& to) {
    const BenchGpu& from = gpus_[0];
    const std::int64_t run = row == 0 ? bytes : row, rows = bytes / run;
    const std::int64_t extent = row == 0 ? bytes : 2 * bytes;
    if (extent > from.half || rows == 0) return;
    std::vector<DeviceMove> moves;
    for (std::uint32_t p = 0; p < pieces; ++p) {
      Move move;
      move.run = run;
      move.loops[2] = {rows, row == 0 ? run : 2 * run, run};
      move.source = p % (from.half / extent) * extent;
      move.target = p % (to.half / (rows * run)) * rows * run;
      moves.push_back(device_move(move, from.source(), to.target()));
    }
    const std::uint32_t tiles = number_tiles(moves.data(), moves.size());
    use_gpu(from.index);
    check(
        cudaMemcpy(from.moves.get(), moves.data(), moves.size() * sizeof(DeviceMove), cudaMemcpyHostToDevice),
        "cudaMemcpy of moves");
    point({path, pieces, {rows * run}, {row}, blocks}, [&] {
      use_gpu(from.index);
      launch_moves(from.moves.get(), pieces, tiles, {blocks, to.index != from.index}, abort_.get(),
                   from.stream.get());
    });
  }

  void launches() {
    kernel_point("launch", 1, 16, 0, 1, gpus_[0]);
    point({"no-work", 1, {}, {}, 0}, [] {});
  }

  void copies() {
    const BenchGpu& gpu = gpus_[0];
    for (const std::int64_t bytes : {64 * kib, mib, 16 * mib, 256 * mib, 4 * gib}) {
      if (bytes > gpu.half) continue;
      point({"copy", 1, {bytes}, {}, 0}, [&] {
        use_gpu(gpu.index);
        check(cudaMemcpyAsync(gpu.target(), gpu.source(), static_cast<std::size_t>(bytes),
                              cudaMemcpyDeviceToDevice, gpu.stream.get()),
              "cudaMemcpyAsync");
      });
    }
    const std::uint32_t blocks = gpu.multiprocessors * 2;
    for (const std::int64_t row :
         {std::int64_t{0}, std::int64_t{64}, std::int64_t{256}, kib, 4 * kib, 14 * kib})
      kernel_point("strided-copy", 1024, mib, row, blocks, gpu);
    for (const std::int64_t odd : {2, 4, 8}) kernel_point("strided-copy", 1024, mib, kib + odd, blocks, gpu);
    kernel_point("strided-copy", 4096, 64 * kib, 256, blocks, gpu);
  }

  void first_use() {
    watchdog_.progress("communicators");
    const Clock::time_point begin = Clock::now();
    communicators_.open(2, 1);
    once("nccl-open", seconds_since(begin));
    once("nccl-first-message", std::chrono::duration<double>(communicators_.connect()).count());
  }

  void once(const std::string& path, double seconds) {
    CurvePoint point;
    point.path = path;
    point.seconds = point.fastest = point.slowest = point.host_seconds = seconds;
    visit_(point);
  }

  void exchange(std::uint32_t operations, std::int64_t bytes, bool both_ways) {
    check(ncclGroupStart(), "ncclGroupStart");
    for (std::uint32_t i = 0; i < operations; ++i) {
      for (int from = 0; from < (both_ways ? 2 : 1); ++from) {
        const BenchGpu &sender = gpus_[static_cast<std::size_t>(from)],
                       &receiver = gpus_[static_cast<std::size_t>(1 - from)];
        const std::int64_t offset = i % (sender.half / bytes) * bytes;
        check(ncclSend(sender.source() + offset, static_cast<std::size_t>(bytes), ncclUint8, 1 - from,
                       communicators_.get(0, static_cast<std::uint32_t>(from)), sender.stream.get()),
              "ncclSend");
        check(ncclRecv(receiver.target() + offset, static_cast<std::size_t>(bytes), ncclUint8, from,
                       communicators_.get(0, static_cast<std::uint32_t>(1 - from)), receiver.stream.get()),
              "ncclRecv");
      }
    }
    check(ncclGroupEnd(), "ncclGroupEnd");
    communicators_.settle(0);
  }

  void exchanges() {
    for (const bool both_ways : {false, true}) {
      for (const std::uint32_t operations : {1U, 8U, 64U, 512U}) {
        for (const std::int64_t bytes : {4 * kib, 64 * kib, mib, 4 * mib, 16 * mib, 256 * mib, 4 * gib}) {
          if (bytes > gpus_[0].half || bytes * operations > 17 * gib) continue;
          point({both_ways ? "nccl-both-ways" : "nccl", operations, {bytes}, {}, 0},
                [&] { exchange(operations, bytes, both_ways); });
        }
      }
    }
  }

  void peer_copies() {
    for (const std::int64_t bytes : {mib, 16 * mib, 256 * mib, 4 * gib}) {
      if (bytes > gpus_[0].half) continue;
      point({"peer-copy", 1, {bytes}, {}, 0}, [&] {
        use_gpu(0);
        check(cudaMemcpyPeerAsync(gpus_[1].target(), 1, gpus_[0].source(), 0, static_cast<std::size_t>(bytes),
                                  gpus_[0].stream.get()),
              "cudaMemcpyPeerAsync");
      });
    }
  }

  void puts() {
    const std::uint32_t all = gpus_[0].multiprocessors;
    for (const std::int64_t row : {std::int64_t{0}, std::int64_t{256}, kib, 14 * kib})
      kernel_point("put", 4096, mib, row, all, gpus_[1]);
    for (const std::uint32_t blocks : {16U, 32U, 64U, 2 * all})
      kernel_point("put", 4096, mib, 256, blocks, gpus_[1]);
    for (const std::int64_t bytes : {4 * kib, 64 * kib, mib, 16 * mib, 256 * mib})
      kernel_point("put", 1, bytes, 0, all, gpus_[1]);
  }

  Watchdog watchdog_;
  CurveVisitor visit_;
  SharedWord abort_;
  std::vector<BenchGpu> gpus_;
  Communicators communicators_;
  bool clean_ = false;
};

}  // namespace

CurveDevice measure_gpu_curves(const CurveVisitor& visit) { return CurveBench(visit).run(); }

}  // namespace isthmus::hw

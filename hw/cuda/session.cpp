#include "hw/cuda/session.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "hw/cuda/check.hpp"
#include "hw/cuda/gpus.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// CUDA contexts and NCCL's set-up take seconds, whatever deadline was asked for.
constexpr std::chrono::seconds set_up_deadline{120};

/// In the order of a stream: a copy from ordinary memory has left it when the call returns, but may not yet
/// have arrived.
template <class Value>
void upload(Value* target, const std::vector<Value>& values, cudaStream_t stream) {
  if (values.empty()) return;
  check(cudaMemcpyAsync(target, values.data(), values.size() * sizeof(Value), cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync to the device");
}

}  // namespace

GpuSession::GpuSession(const Program& program, const GpuSchedule& schedule, std::chrono::nanoseconds deadline,
                       Communicators& communicators)
    : program_(program),
      schedule_(schedule),
      codes_(program),
      watchdog_(set_up_deadline),
      communicators_(communicators),
      operation_of_launch_(operations_of_launches(schedule)) {
  try {
    set_up();
  } catch (...) {
    watchdog_.set_stop({});
    throw;
  }
  watchdog_.set_deadline(deadline);
}

GpuSession::~GpuSession() {
  graph_.reset();  // an abort of communicators waits for the graphs that use them
  if (!clean_) {
    watchdog_.progress("abort of kernels and communicators");
    if (abort_) *static_cast<volatile std::uint32_t*>(abort_.get()) = 1;
    communicators_.abort();
  }
  watchdog_.set_stop({});
}

void GpuSession::set_up() {
  abort_ = shared_word();
  watchdog_.set_stop([this] {
    *static_cast<volatile std::uint32_t*>(abort_.get()) = 1;
    communicators_.abort();
  });
  gpus_.resize(schedule_.folding.gpus);
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    watchdog_.progress(fmt::format("set-up of GPU {}", g));
    gpus_[g].index = static_cast<int>(g);
    open(gpus_[g]);
  }
  share_memory();
  list_shards();
  for (Gpu& gpu : gpus_) {
    upload_moves(gpu);
    const std::size_t shards = std::max(gpu.sources.size(), gpu.targets.size());
    gpu.shards = device_array<DeviceShard>(gpu.index, shards);
    gpu.verdict = device_array<DeviceVerdict>(gpu.index, 1);
  }
  if (!schedule_.messages.empty() && !communicators_.serves(schedule_.folding.gpus, schedule_.lane_streams)) {
    watchdog_.progress("set-up of NCCL communicators");
    communicators_.open(schedule_.folding.gpus, schedule_.lane_streams);
    watchdog_.progress("first messages of NCCL communicators");
    communicators_.connect();
  }
  wait_for_all("set-up");
}

void GpuSession::open(Gpu& gpu) {
  use_gpu(gpu.index);
  check(cudaDeviceGetAttribute(&gpu.multiprocessors, cudaDevAttrMultiProcessorCount, gpu.index),
        "cudaDeviceGetAttribute");
  load_kernels();
  const std::int64_t bytes = schedule_.arena_bytes[static_cast<std::size_t>(gpu.index)];
  gpu.arena = device_array<std::byte>(gpu.index, static_cast<std::size_t>(bytes));
  for (std::uint32_t s = 0; s < schedule_.streams(); ++s) {
    const bool exchanges = s % GpuSchedule::streams_per_lane == GpuSchedule::exchange_stream;
    gpu.streams.push_back(make_stream(gpu.index, exchanges));
  }
  for (std::size_t l = 0; l < schedule_.launches.size(); ++l) gpu.done.push_back(make_event(gpu.index));
  gpu.start = make_event(gpu.index);
}

/// Kernels write straight into peers; NCCL would do without, so only puts insist on it.
void GpuSession::share_memory() const {
  for (const Gpu& gpu : gpus_) {
    for (const Gpu& peer : gpus_) {
      if (peer.index == gpu.index || open_peer(gpu.index, peer.index)) continue;
      const auto& moves = schedule_.moves[static_cast<std::size_t>(gpu.index)];
      const auto to_peer = [&peer](const GpuMove& m) { return static_cast<int>(m.target_gpu) == peer.index; };
      if (std::any_of(moves.begin(), moves.end(), to_peer)) {
        fail(fmt::format("GPU {} cannot write into the memory of GPU {}, as puts need", gpu.index,
                         peer.index));
      }
    }
  }
}

void GpuSession::list_shards() {
  const Folding& folding = schedule_.folding;
  for (std::size_t r = 0; r < program_.ranks(); ++r) {
    const Rank rank{static_cast<std::uint32_t>(r)};
    Gpu& gpu = gpus_[folding.gpu[r]];
    std::byte* const arena = gpu.arena.get() + folding.base[r];
    for (const Shard& shard : program_.sources(rank))
      gpu.sources.push_back({rank, &shard, arena + shard.offset.value});
    for (const Shard& shard : program_.targets(rank))
      gpu.targets.push_back({rank, &shard, arena + shard.offset.value});
  }
}

void GpuSession::upload_moves(Gpu& gpu) {
  const auto g = static_cast<std::uint32_t>(gpu.index);
  std::vector<DeviceMove> moves;
  moves.reserve(schedule_.moves[g].size());
  for (const GpuMove& move : schedule_.moves[g])
    moves.push_back(device_move(move.move, gpu.arena.get(), gpus_[move.target_gpu].arena.get()));
  const std::vector<std::uint32_t>& begin = schedule_.moves_begin[g];
  for (std::size_t l = 0; l + 1 < begin.size(); ++l)
    gpu.tiles.push_back(number_tiles(moves.data() + begin[l], begin[l + 1] - begin[l]));
  gpu.moves = device_array<DeviceMove>(gpu.index, moves.size());
  use_gpu(gpu.index);
  upload(gpu.moves.get(), moves, gpu.streams[0].get());
}

void GpuSession::upload_shards(Gpu& gpu, const std::vector<ShardPlace>& places, std::uint32_t pass,
                               bool target) {
  std::vector<DeviceShard> shards;
  shards.reserve(places.size());
  for (const ShardPlace& place : places) {
    const ShardCode code = target ? codes_.target(*place.shard, pass) : codes_.source(*place.shard, pass);
    shards.push_back({code, place.memory});
  }
  upload(gpu.shards.get(), shards, gpu.streams[0].get());
}

void GpuSession::prepare(std::uint32_t pass) {
  for (const bool target : {false, true}) {
    for (Gpu& gpu : gpus_) {
      use_gpu(gpu.index);
      cudaStream_t const stream = gpu.streams[0].get();
      const auto g = static_cast<std::size_t>(gpu.index);
      if (!target) {
        // Before the shards, which then overwrite what is theirs.
        check(cudaMemsetAsync(gpu.arena.get(), staging_poison,
                              static_cast<std::size_t>(schedule_.arena_bytes[g]), stream),
              "cudaMemsetAsync");
      }
      const std::vector<ShardPlace>& places = target ? gpu.targets : gpu.sources;
      upload_shards(gpu, places, pass, target);
      launch_fill(gpu.shards.get(), static_cast<std::uint32_t>(places.size()),
                  target ? ShardValue::complement : ShardValue::code,
                  static_cast<std::uint32_t>(gpu.multiprocessors) * 8, stream);
    }
    wait_for_all(target ? "poisoning of targets" : "filling of sources");
  }
}

void GpuSession::judge(std::uint32_t pass, std::size_t most_mismatches, Measurement& measurement) {
  for (Gpu& gpu : gpus_) {
    use_gpu(gpu.index);
    upload_shards(gpu, gpu.targets, pass, true);
    check(cudaMemsetAsync(gpu.verdict.get(), 0, sizeof(DeviceVerdict), gpu.streams[0].get()),
          "cudaMemsetAsync");
    launch_compare(gpu.shards.get(), static_cast<std::uint32_t>(gpu.targets.size()), gpu.verdict.get(),
                   static_cast<std::uint32_t>(gpu.multiprocessors) * 8, gpu.streams[0].get());
  }
  wait_for_all("comparison of targets");
  for (const Gpu& gpu : gpus_) {
    DeviceVerdict verdict;
    use_gpu(gpu.index);
    check(cudaMemcpy(&verdict, gpu.verdict.get(), sizeof verdict, cudaMemcpyDeviceToHost), "cudaMemcpy");
    measurement.mismatch_count += verdict.mismatches;
    const auto listed = std::min<std::size_t>(verdict.listed, DeviceVerdict::most_listed);
    for (std::size_t i = 0; i < listed && measurement.mismatches.size() < most_mismatches; ++i) {
      const DeviceVerdict::Entry& entry = verdict.entries[i];
      const ShardPlace& place = gpu.targets[entry.shard];
      measurement.mismatches.push_back(
          codes_.mismatch(*place.shard, place.rank, pass, entry.position, entry.found));
    }
  }
}

void GpuSession::close() {
  wait_for_all("give-back");
  clean_ = true;
}

std::string GpuSession::describe(std::size_t launch) const {
  const Launch& what = schedule_.launches[launch];
  std::string text = fmt::format("launch {} of {} ({}, stream {})", launch, schedule_.launches.size(),
                                 what.kind == LaunchKind::moves ? "copies" : "exchange", what.stream);
  return text + ", " + program_.describe(operation_of_launch_[launch]);
}

void GpuSession::fail(const std::string& message) const {
  throw SystemError(to_string(SystemFault{"nccl backend", message}));
}

}  // namespace isthmus::hw

#include "hw/cuda/communicators.hpp"

#include <cstddef>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "hw/cuda/check.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// NCCL rounds the channels of send/recv up to a power of two, 32 at most here.
int most_ctas(std::uint32_t sets) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0),
        "cudaDeviceGetAttribute");
  int ctas = 32;
  while (ctas > 1 && ctas * static_cast<int>(sets) > multiprocessors) ctas /= 2;
  return ctas;
}

/// Whether the host's part of what was asked of a communicator is done.
bool settled(ncclComm_t communicator) {
  ncclResult_t state = ncclSuccess;
  check(ncclCommGetAsyncError(communicator, &state), "ncclCommGetAsyncError");
  check(state, "NCCL communicator");
  return state != ncclInProgress;
}

}  // namespace

Communicators::~Communicators() {
  if (aborted_) return;
  for (const ncclComm_t communicator : list_) static_cast<void>(ncclCommDestroy(communicator));
}

void Communicators::close() {
  const std::lock_guard lock(mutex_);
  if (aborted_) return;
  for (const ncclComm_t communicator : std::exchange(list_, {}))
    check(ncclCommDestroy(communicator), "ncclCommDestroy");
}

void Communicators::open(std::uint32_t gpus, std::uint32_t sets) {
  gpus_ = gpus;
  sets_ = sets;
  const int ctas = most_ctas(sets);
  for (std::uint32_t set = 0; set < sets; ++set) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 1;
    config.maxCTAs = ctas;
    std::vector<ncclComm_t> opened(gpus, nullptr);
    ncclUniqueId id;
    check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    check(ncclGroupStart(), "ncclGroupStart");
    for (std::uint32_t g = 0; g < gpus; ++g) {
      use_gpu(static_cast<int>(g));
      check(ncclCommInitRankConfig(&opened[g], static_cast<int>(gpus), id, static_cast<int>(g), &config),
            "ncclCommInitRankConfig");
    }
    check(ncclGroupEnd(), "ncclGroupEnd of ncclCommInitRankConfig");
    const std::lock_guard lock(mutex_);
    list_.insert(list_.end(), opened.begin(), opened.end());
  }
  for (std::uint32_t set = 0; set < sets; ++set) settle(set);
}

void Communicators::settle(std::uint32_t set) const {
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    while (!settled(get(set, g))) {
      if (aborted_) throw SystemError("NCCL communicators were aborted");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }
}

std::chrono::nanoseconds Communicators::connect() {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<DeviceArray<std::byte>> bytes;
  std::vector<Stream> streams;
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    bytes.push_back(device_array<std::byte>(static_cast<int>(g), std::size_t{2} * gpus_));
    streams.push_back(make_stream(static_cast<int>(g)));
  }
  for (std::uint32_t set = 0; set < sets_; ++set) connect(set, bytes, streams);
  return std::chrono::steady_clock::now() - begin;
}

void Communicators::connect(std::uint32_t set, const std::vector<DeviceArray<std::byte>>& bytes,
                            const std::vector<Stream>& streams) const {
  check(ncclGroupStart(), "ncclGroupStart");
  for (std::uint32_t from = 0; from < gpus_; ++from) {
    for (std::uint32_t to = 0; to < gpus_; ++to) {
      if (from == to) continue;
      check(
          ncclSend(&bytes[from][to], 1, ncclUint8, static_cast<int>(to), get(set, from), streams[from].get()),
          "ncclSend");
      check(ncclRecv(&bytes[to][gpus_ + from], 1, ncclUint8, static_cast<int>(from), get(set, to),
                     streams[to].get()),
            "ncclRecv");
    }
  }
  check(ncclGroupEnd(), "ncclGroupEnd");
  settle(set);
  for (std::uint32_t g = 0; g < gpus_; ++g) {
    use_gpu(static_cast<int>(g));
    while (true) {
      const cudaError_t state = cudaStreamQuery(streams[g].get());
      if (state == cudaSuccess) break;
      if (state != cudaErrorNotReady) check(state, "cudaStreamQuery");
      if (aborted_) throw SystemError("NCCL communicators were aborted");
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

void Communicators::abort() {
  const std::lock_guard lock(mutex_);
  if (aborted_.exchange(true)) return;
  std::vector<std::thread> threads;
  for (const ncclComm_t communicator : list_) {
    threads.emplace_back([communicator] { static_cast<void>(ncclCommAbort(communicator)); });
  }
  for (std::thread& thread : threads) thread.join();
}

std::string nccl_version() {
  int version = 0;
  check(ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("NCCL {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace isthmus::hw

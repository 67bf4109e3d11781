// NCCL's functions over the engine.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include "tests/fake_cuda/engine.hpp"

namespace {

using isthmus::test::fake_engine;
using isthmus::test::FakeEngine;

using Held = std::lock_guard<std::mutex>;

struct FakeCall {
  bool sends = false;
  std::byte* memory = nullptr;
  std::size_t bytes = 0;
  int peer = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
};

thread_local bool in_group = false;
thread_local std::vector<FakeCall> calls;

struct FakeCopy {
  std::byte *source = nullptr, *target = nullptr;
  std::size_t bytes = 0;
};

/// Sends and receives of a group, paired in their order; empty `ok`: they do not pair up.
bool pair_up(const std::vector<FakeCall>& group, std::vector<FakeCopy>& copies) {
  using Wire = std::tuple<std::uint64_t, int, int>;  // communicators, from, to
  std::map<Wire, std::deque<FakeCall>> sent;
  for (const FakeCall& call : group)
    if (call.sends) sent[{call.communicator->set, call.communicator->rank, call.peer}].push_back(call);
  for (const FakeCall& call : group) {
    if (call.sends) continue;
    std::deque<FakeCall>& wire = sent[{call.communicator->set, call.peer, call.communicator->rank}];
    if (wire.empty() || wire.front().bytes != call.bytes) return false;
    copies.push_back({wire.front().memory, call.memory, call.bytes});
    wire.pop_front();
  }
  return std::all_of(sent.begin(), sent.end(), [](const auto& wire) { return wire.second.empty(); });
}

ncclResult_t add_call(const FakeCall& call) {
  const Held held(fake_engine().lock);
  if (!in_group || call.stream->device != call.communicator->device || call.communicator->aborted)
    return ncclInvalidUsage;
  calls.push_back(call);
  return ncclSuccess;
}

/// As NCCL: not before the last graph that uses it is gone.
ncclResult_t let_go(ncclComm_t communicator) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (true) {
    {
      const Held held(fake_engine().lock);
      fake_engine().go_on();
      if (!fake_engine().needs(communicator)) break;
    }
    if (std::chrono::steady_clock::now() > until) return ncclInternalError;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const Held held(fake_engine().lock);
  --fake_engine().counts.handles;
  std::unique_ptr<ncclComm>(communicator).reset();
  return ncclSuccess;
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t) { return "made-up failure"; }
const char* ncclGetLastError(ncclComm_t) { return "made up"; }
ncclResult_t ncclGetVersion(int* version) {
  *version = 22803;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Held held(fake_engine().lock);
  static std::uint64_t next = 0;
  ++next;
  std::memcpy(id->internal, &next, sizeof next);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  int device = 0;
  cudaGetDevice(&device);
  const Held held(fake_engine().lock);
  std::uint64_t set = 0;
  std::memcpy(&set, id.internal, sizeof set);
  *communicator = std::make_unique<ncclComm>(ncclComm{device, rank, ranks, set}).release();
  ++fake_engine().counts.handles;
  return ncclSuccess;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t* state) {
  *state = ncclSuccess;
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t communicator) { return let_go(communicator); }
ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  {
    const Held held(fake_engine().lock);
    communicator->aborted = true;
  }
  return let_go(communicator);
}

ncclResult_t ncclGroupStart() {
  in_group = true;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  in_group = false;
  const std::vector<FakeCall> group = std::exchange(calls, {});
  if (group.empty()) return ncclSuccess;
  if (engine.refuses("ncclGroupEnd")) return ncclInvalidUsage;
  std::vector<FakeCopy> copies;
  if (!pair_up(group, copies)) return ncclInvalidUsage;
  std::vector<std::pair<cudaStream_t, ncclComm_t>> places;
  for (const FakeCall& call : group) {
    const std::pair place(call.stream, call.communicator);
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  if (group.front().stream->capture == no_node) ++engine.counts.groups;
  const auto run = [copies] {
    for (const FakeCopy& copy : copies) std::memcpy(copy.target, copy.source, copy.bytes);
  };
  return engine.append_meeting(places, run) == cudaSuccess ? ncclSuccess : ncclInvalidUsage;
}
ncclResult_t ncclSend(const void* source, std::size_t count, ncclDataType_t, int peer,
                      ncclComm_t communicator, cudaStream_t stream) {
  auto* const memory = static_cast<std::byte*>(const_cast<void*>(source));
  return add_call({true, memory, count, peer, communicator, stream});
}
ncclResult_t ncclRecv(void* target, std::size_t count, ncclDataType_t, int peer, ncclComm_t communicator,
                      cudaStream_t stream) {
  return add_call({false, static_cast<std::byte*>(target), count, peer, communicator, stream});
}

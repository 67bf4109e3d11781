#pragma once
// CUDA's handles as values that give themselves back. Making one checks the call (hw/cuda/check.hpp); giving
// it back does not throw, a failed process has said why already.
// Invariant: a handle is used and given back with the GPU current on which it was made.

#include <cstddef>
#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

namespace isthmus::hw {

/// Makes a GPU the current one of this thread.
void use_gpu(int gpu);

struct DeviceFree {
  int gpu = 0;
  void operator()(void* memory) const;
};
/// Memory of a GPU. `Value` is only the type that it is seen as.
template <class Value>
using DeviceArray = std::unique_ptr<Value[], DeviceFree>;

void* allocate_on(int gpu, std::size_t bytes);
template <class Value>
DeviceArray<Value> device_array(int gpu, std::size_t count) {
  return {static_cast<Value*>(allocate_on(gpu, (count == 0 ? 1 : count) * sizeof(Value))), DeviceFree{gpu}};
}

struct HostFree {
  void operator()(std::uint32_t* word) const;
};
/// A word of the host that every GPU can read while kernels run; 0 at first.
using SharedWord = std::unique_ptr<std::uint32_t, HostFree>;
SharedWord shared_word();

struct StreamDestroy {
  int gpu = 0;
  void operator()(cudaStream_t stream) const;
};
using Stream = std::unique_ptr<CUstream_st, StreamDestroy>;
/// A stream that does not wait for the default stream.
/// `first`: blocks of its kernels start before those of other streams.
Stream make_stream(int gpu, bool first = false);

struct EventDestroy {
  int gpu = 0;
  void operator()(cudaEvent_t event) const;
};
using Event = std::unique_ptr<CUevent_st, EventDestroy>;
Event make_event(int gpu);

struct GraphDestroy {
  void operator()(cudaGraph_t graph) const;
};
using Graph = std::unique_ptr<CUgraph_st, GraphDestroy>;
/// What can be launched of one. Giving it back does not wait: one that runs ends first.
struct GraphExecDestroy {
  void operator()(cudaGraphExec_t graph) const;
};
using GraphExec = std::unique_ptr<CUgraphExec_st, GraphExecDestroy>;
GraphExec make_executable(const Graph& graph);

}  // namespace isthmus::hw

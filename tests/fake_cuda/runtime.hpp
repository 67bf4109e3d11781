#pragma once
// GPUs made of host memory behind CUDA's and NCCL's own functions, so that hw/cuda runs as it is where
// there is no GPU. All work is a network of nodes: a node runs when those before it have; of those that can
// run, chance picks one whenever the host asks how far things are, so an order that nothing enforces shows
// up in some seed. Streams, events, captures and graphs only say what comes before what. A clock ticks with
// every node. A group of NCCL's is a node on each communicator's GPU; they run together once all can. A
// graph that holds such nodes holds the communicator: as with NCCL, it is not destroyed or aborted before
// the graph is gone. Kernels are launched with launch(); tests/fake_cuda/kernels.cpp has those of
// hw/cuda/kernels.hpp. Invariant: calls are serialised; every handle is counted, so that a test sees what
// was not given back.

#include <cstdint>
#include <functional>
#include <string>

#include <cuda_runtime_api.h>

namespace isthmus::test {

struct FakeGpus {
  std::uint32_t gpus = 2;
  std::uint64_t seed = 0;
  // What goes wrong. The call with this name fails in a capture; "" for none.
  std::string refused_in_capture{};
  bool lose_messages = false;  // groups of sends and receives never end, once capture or set-up is over
};
/// Before the first call of a test; nothing may be left of the one before.
void reset_fake_gpus(const FakeGpus& gpus);

struct FakeGpuCounts {
  std::size_t handles = 0;  // streams, events, graphs, communicators, memory: not given back
  std::size_t kernels = 0;  // launched by the host one by one
  std::size_t groups = 0;   // of NCCL, likewise
  std::size_t graph_launches = 0;
  std::size_t captures = 0;  // that ended well
};
FakeGpuCounts fake_gpu_counts();
/// From now on groups never end.
void lose_fake_messages();

/// A kernel on a stream of the current GPU, or in its capture.
cudaError_t launch_fake_kernel(cudaStream_t stream, std::function<void()> work);

}  // namespace isthmus::test

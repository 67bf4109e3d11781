#include "hw/cuda/handles.hpp"

#include <fmt/format.h>

#include "hw/cuda/check.hpp"
#include "model/error.hpp"

namespace isthmus::hw {

void use_gpu(int gpu) { check(cudaSetDevice(gpu), "cudaSetDevice"); }

void DeviceFree::operator()(void* memory) const {
  if (cudaSetDevice(gpu) == cudaSuccess) static_cast<void>(cudaFree(memory));
}

void* allocate_on(int gpu, std::size_t bytes) {
  use_gpu(gpu);
  std::size_t available = 0, total = 0;
  check(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  if (bytes > available) {
    throw SystemError(fmt::format("GPU {} has {} bytes free of {}; this needs {} more: use a smaller --scale",
                                  gpu, available, total, bytes));
  }
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc");
  return memory;
}

void HostFree::operator()(std::uint32_t* word) const { static_cast<void>(cudaFreeHost(word)); }

SharedWord shared_word() {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, sizeof(std::uint32_t), cudaHostAllocPortable | cudaHostAllocMapped),
        "cudaHostAlloc");
  auto* word = static_cast<std::uint32_t*>(memory);
  *word = 0;
  return SharedWord(word);
}

void StreamDestroy::operator()(cudaStream_t stream) const {
  if (cudaSetDevice(gpu) == cudaSuccess) static_cast<void>(cudaStreamDestroy(stream));
}

Stream make_stream(int gpu, bool first) {
  use_gpu(gpu);
  int lowest = 0, highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, first ? highest : lowest),
        "cudaStreamCreateWithPriority");
  return {stream, StreamDestroy{gpu}};
}

void EventDestroy::operator()(cudaEvent_t event) const {
  if (cudaSetDevice(gpu) == cudaSuccess) static_cast<void>(cudaEventDestroy(event));
}

Event make_event(int gpu) {
  use_gpu(gpu);
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  return {event, EventDestroy{gpu}};
}

void GraphDestroy::operator()(cudaGraph_t graph) const { static_cast<void>(cudaGraphDestroy(graph)); }

void GraphExecDestroy::operator()(cudaGraphExec_t graph) const {
  static_cast<void>(cudaGraphExecDestroy(graph));
}

GraphExec make_executable(const Graph& graph) {
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiateWithFlags(&executable, graph.get(), 0), "cudaGraphInstantiateWithFlags");
  return GraphExec(executable);
}

}  // namespace isthmus::hw

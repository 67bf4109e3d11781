// CUDA's functions over the engine.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "tests/fake_cuda/engine.hpp"

namespace {

using isthmus::test::fake_engine;
using isthmus::test::FakeCapture;
using isthmus::test::FakeEngine;
using isthmus::test::FakeNode;

using Held = std::lock_guard<std::mutex>;

thread_local int current_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t told(cudaError_t error) {
  if (error != cudaSuccess && error != cudaErrorNotReady) last_error = error;
  return error;
}

/// What is not allowed in a capture breaks it.
cudaError_t broken(FakeCapture& capture, cudaError_t error) {
  capture.invalid = true;
  return told(error);
}

/// For calls that a capture of the same thread forbids.
cudaError_t outside_of_captures() {
  FakeCapture* const capture = fake_engine().open_capture();
  return capture == nullptr ? cudaSuccess : broken(*capture, cudaErrorStreamCaptureUnsupported);
}

template <class Handle>
cudaError_t give_back(Handle* handle) {
  if (handle == nullptr) return told(cudaErrorInvalidValue);
  std::unique_ptr<Handle>(handle).reset();
  --fake_engine().counts.handles;
  return cudaSuccess;
}

cudaError_t append(cudaStream_t stream, FakeNode node) {
  FakeCapture* const capture = fake_engine().capture_of(stream);
  if (capture != nullptr && capture->invalid) return told(cudaErrorStreamCaptureInvalidated);
  fake_engine().append(stream, std::move(node));
  return cudaSuccess;
}

void close_capture(std::size_t number) { fake_engine().captures[number].open = false; }

/// Whether all that was captured comes before the end of the stream that began.
bool is_joined(const FakeCapture& capture) {
  std::vector<std::size_t> open = capture.origin->captured_tail;
  std::set<std::size_t> reached(open.begin(), open.end());
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    for (const std::size_t earlier : capture.network.nodes[node].before)
      if (reached.insert(earlier).second) open.push_back(earlier);
  }
  return reached.size() == capture.network.nodes.size();
}

std::vector<cudaStream_t>& all_streams() {
  static std::vector<cudaStream_t> streams;
  return streams;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t) { return "made-up failure"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorMadeUp"; }
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(fake_engine().settings.gpus);
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= static_cast<int>(fake_engine().settings.gpus))
    return told(cudaErrorInvalidDevice);
  current_device = device;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::snprintf(properties->name, sizeof properties->name, "made-up GPU");
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 4;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaDeviceCanAccessPeer(int* possible, int, int) {
  *possible = 1;
  return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* total) {
  *available = *total = std::size_t{1} << 32;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const Held held(fake_engine().lock);
  if (const cudaError_t error = outside_of_captures(); error != cudaSuccess) return error;
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  ++fake_engine().counts.handles;
  return *memory == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const Held held(fake_engine().lock);
  std::free(memory);
  --fake_engine().counts.handles;
  return outside_of_captures();
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }

cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind) {
  const Held held(fake_engine().lock);
  if (const cudaError_t error = outside_of_captures(); error != cudaSuccess) return error;
  std::memcpy(target, source, bytes);
  return cudaSuccess;
}
/// The bytes leave ordinary memory at once and arrive in the order of the stream.
cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  const Held held(fake_engine().lock);
  if (FakeCapture* const capture = fake_engine().capture_of(stream))
    return broken(*capture, cudaErrorStreamCaptureUnsupported);
  const auto* const first = static_cast<const std::byte*>(source);
  const std::vector<std::byte> content(first, first + bytes);
  return append(stream, {[target, content] { std::memcpy(target, content.data(), content.size()); }});
}
cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  const Held held(fake_engine().lock);
  return append(stream, {[target, value, bytes] { std::memset(target, value, bytes); }});
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned, int) {
  const Held held(fake_engine().lock);
  *stream = std::make_unique<CUstream_st>(CUstream_st{current_device}).release();
  all_streams().push_back(*stream);
  ++fake_engine().counts.handles;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Held held(fake_engine().lock);
  std::erase(all_streams(), stream);
  return give_back(stream);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const Held held(fake_engine().lock);
  if (FakeCapture* const capture = fake_engine().capture_of(stream))
    return broken(*capture, cudaErrorStreamCaptureUnsupported);
  fake_engine().go_on();
  return fake_engine().idle(stream->tail) ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  if (engine.refuses("cudaStreamWaitEvent")) return broken(*engine.open_capture(), cudaErrorNotSupported);
  if (event->capture != no_node) {
    if (!engine.captures[event->capture].open) return told(cudaErrorCapturedEvent);
    if (stream->capture == no_node) {
      stream->capture = event->capture;
      stream->captured_tail.clear();
    }
    if (stream->capture != event->capture) return told(cudaErrorStreamCaptureIsolation);
    for (const std::size_t node : event->captured) stream->captured_tail.push_back(node);
    return cudaSuccess;
  }
  if (FakeCapture* const capture = engine.capture_of(stream); capture != nullptr && event->recorded)
    return broken(*capture, cudaErrorStreamCaptureIsolation);
  if (event->node != no_node) stream->tail.push_back(event->node);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  const Held held(fake_engine().lock);
  *event = std::make_unique<CUevent_st>(CUevent_st{current_device}).release();
  ++fake_engine().counts.handles;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Held held(fake_engine().lock);
  return give_back(event);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  if (engine.refuses("cudaEventRecord")) return broken(*engine.open_capture(), cudaErrorNotSupported);
  if (event->device != stream->device) return told(cudaErrorInvalidResourceHandle);
  FakeCapture* const capture = engine.capture_of(stream);
  FakeNode node;
  node.recorded = event;
  if (flags == cudaEventRecordExternal) {
    if (capture == nullptr) return told(cudaErrorInvalidValue);
    return append(stream, std::move(node));
  }
  if (capture != nullptr) {
    event->capture = stream->capture;
    event->captured = stream->captured_tail;
    return cudaSuccess;
  }
  event->capture = no_node;
  event->recorded = true;
  event->node = engine.append(stream, std::move(node));
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Held held(fake_engine().lock);
  if (event->capture != no_node) return told(cudaErrorCapturedEvent);
  fake_engine().go_on();
  return event->node == no_node ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const Held held(fake_engine().lock);
  for (const cudaEvent_t event : {begin, end}) {
    if (event->capture != no_node) return told(cudaErrorCapturedEvent);
    if (!event->recorded || event->device != begin->device) return told(cudaErrorInvalidResourceHandle);
    if (event->node != no_node) return cudaErrorNotReady;
  }
  *milliseconds = static_cast<float>((end->time - begin->time) * 1e-3);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  if (engine.settings.refused_in_capture == "cudaStreamBeginCapture") return told(cudaErrorNotSupported);
  if (stream->capture != no_node) return told(cudaErrorStreamCaptureUnsupported);
  engine.captures.push_back({stream, std::this_thread::get_id()});
  stream->capture = engine.captures.size() - 1;
  stream->captured_tail.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  *graph = nullptr;
  if (stream->capture == no_node || engine.captures[stream->capture].origin != stream)
    return told(cudaErrorStreamCaptureUnmatched);
  const std::size_t number = stream->capture;
  FakeCapture& capture = engine.captures[number];
  if (capture.thread != std::this_thread::get_id()) return told(cudaErrorStreamCaptureWrongThread);
  const bool joined = is_joined(capture), refused = engine.refuses("cudaStreamEndCapture");
  close_capture(number);
  for (const cudaStream_t each : all_streams())
    if (each->capture == number) each->capture = no_node;
  if (capture.invalid) return told(cudaErrorStreamCaptureInvalidated);
  if (!joined) return told(cudaErrorStreamCaptureUnjoined);
  if (refused) return told(cudaErrorNotSupported);
  *graph = std::make_unique<CUgraph_st>(CUgraph_st{capture.network}).release();
  engine.graphs.insert(*graph);
  ++engine.counts.handles;
  ++engine.counts.captures;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Held held(fake_engine().lock);
  fake_engine().graphs.erase(graph);
  return give_back(graph);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  if (engine.settings.refused_in_capture == "cudaGraphInstantiateWithFlags")
    return told(cudaErrorNotSupported);
  *executable = std::make_unique<CUgraphExec_st>(CUgraphExec_st{graph->network}).release();
  engine.executables.insert(*executable);
  ++engine.counts.handles;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Held held(fake_engine().lock);
  fake_engine().executables.erase(executable);
  return give_back(executable);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t stream) {
  const Held held(fake_engine().lock);
  return append(stream, {});
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  if (stream->capture != no_node) return told(cudaErrorStreamCaptureUnsupported);
  engine.launch(executable->network, stream);
  ++engine.counts.graph_launches;
  return cudaSuccess;
}

namespace isthmus::test {

cudaError_t launch_fake_kernel(cudaStream_t stream, std::function<void()> work) {
  FakeEngine& engine = fake_engine();
  const Held held(engine.lock);
  if (stream->device != current_device) return told(cudaErrorInvalidResourceHandle);
  if (engine.refuses("kernel")) return broken(*engine.open_capture(), cudaErrorNotSupported);
  if (stream->capture == no_node) ++engine.counts.kernels;
  return append(stream, {std::move(work)});
}

}  // namespace isthmus::test

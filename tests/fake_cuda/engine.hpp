#pragma once
// Internal to tests/fake_cuda: nodes of work and what comes before what, live or in a graph.
// Invariants: nodes are named by their numbers, which are never used twice until reset; a node comes after
// nodes with lesser numbers only; whoever calls holds `lock`.

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include <nccl.h>

#include "tests/fake_cuda/runtime.hpp"

inline constexpr std::size_t no_node = std::numeric_limits<std::size_t>::max();

namespace isthmus::test {

struct FakeNode {
  std::function<void()> run;
  std::vector<std::size_t> before{};
  std::size_t meeting = no_node;      // nodes with the same one run together
  ncclComm_t communicator = nullptr;  // of a group
  cudaEvent_t recorded = nullptr;     // in a graph: the event that this node records
  bool done = false;
};

/// What one group of NCCL's does once all its nodes can run.
struct FakeMeeting {
  std::vector<std::size_t> nodes{};
  std::function<void()> run;
  bool lost = false;
};

struct FakeNodes {
  std::vector<FakeNode> nodes{};
  std::vector<FakeMeeting> meetings{};

  std::size_t add(FakeNode node);
};

struct FakeCapture {
  cudaStream_t origin = nullptr;
  std::thread::id thread{};
  bool open = true, invalid = false;
  FakeNodes network{};
};

}  // namespace isthmus::test

struct CUstream_st {
  int device = 0;
  std::vector<std::size_t> tail{};           // live
  std::size_t capture = no_node;             // number of the capture it takes part in
  std::vector<std::size_t> captured_tail{};  // of its network
};
struct CUevent_st {
  int device = 0;
  bool recorded = false;
  std::size_t node = no_node;  // that records it, while it has not run
  double time = 0;             // microseconds
  std::size_t capture = no_node;
  std::vector<std::size_t> captured{};
};
struct CUgraph_st {
  isthmus::test::FakeNodes network{};
};
struct CUgraphExec_st {
  isthmus::test::FakeNodes network{};
};
struct ncclComm {
  int device = 0, rank = 0, ranks = 1;
  std::uint64_t set = 0;
  bool aborted = false;
};

namespace isthmus::test {

class FakeEngine {
 public:
  std::mutex lock;
  FakeGpus settings;
  FakeGpuCounts counts;
  std::vector<FakeCapture> captures;
  std::set<cudaGraph_t> graphs;
  std::set<cudaGraphExec_t> executables;
  bool lose = false;

  void reset(const FakeGpus& gpus);
  /// A node at the end of a stream, live or captured.
  std::size_t append(cudaStream_t stream, FakeNode node);
  /// Nodes for a group, on the streams given; all of them in one capture or none.
  cudaError_t append_meeting(const std::vector<std::pair<cudaStream_t, ncclComm_t>>& places,
                             std::function<void()> run);
  /// All of a graph, after what the stream holds.
  void launch(const FakeNodes& network, cudaStream_t stream);
  /// Some nodes run, if any can.
  void go_on();
  bool done(std::size_t node) const { return live_.nodes[node].done; }
  bool idle(const std::vector<std::size_t>& tail) const;
  /// Whether a graph, or a group under way, still needs it.
  bool needs(ncclComm_t communicator) const;
  double now() const { return clock_; }
  /// The capture of this thread, or none.
  FakeCapture* open_capture();
  FakeCapture* capture_of(cudaStream_t stream);
  /// Whether a call of this name is to fail now.
  bool refuses(const char* call);

 private:
  bool can_run(const FakeNode& node) const;
  void finish(std::size_t number);

  FakeNodes live_;
  std::vector<std::size_t> waiting_;
  std::mt19937_64 random_;
  double clock_ = 0;
};

FakeEngine& fake_engine();

}  // namespace isthmus::test

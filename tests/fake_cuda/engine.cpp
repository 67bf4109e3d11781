#include "tests/fake_cuda/engine.hpp"

#include <algorithm>
#include <utility>

namespace isthmus::test {

std::size_t FakeNodes::add(FakeNode node) {
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

void FakeEngine::reset(const FakeGpus& gpus) {
  settings = gpus;
  counts = {};
  captures.clear();
  graphs.clear();
  executables.clear();
  lose = false;
  live_ = {};
  waiting_.clear();
  random_.seed(gpus.seed);
  clock_ = 0;
}

std::size_t FakeEngine::append(cudaStream_t stream, FakeNode node) {
  if (FakeCapture* const capture = capture_of(stream)) {
    node.before = stream->captured_tail;
    const std::size_t added = capture->network.add(std::move(node));
    stream->captured_tail = {added};
    return added;
  }
  node.before = stream->tail;
  const std::size_t added = live_.add(std::move(node));
  waiting_.push_back(added);
  stream->tail = {added};
  return added;
}

cudaError_t FakeEngine::append_meeting(const std::vector<std::pair<cudaStream_t, ncclComm_t>>& places,
                                       std::function<void()> run) {
  for (const auto& [stream, communicator] : places)
    if (stream->capture != places.front().first->capture) return cudaErrorStreamCaptureIsolation;
  FakeCapture* const capture = capture_of(places.front().first);
  std::vector<FakeMeeting>& meetings = capture != nullptr ? capture->network.meetings : live_.meetings;
  const std::size_t meeting = meetings.size();
  meetings.push_back({{}, std::move(run), lose});
  for (const auto& [stream, communicator] : places) {
    FakeNode node;
    node.meeting = meeting;
    node.communicator = communicator;
    const std::size_t added = append(stream, std::move(node));
    meetings[meeting].nodes.push_back(added);
  }
  return cudaSuccess;
}

void FakeEngine::launch(const FakeNodes& network, cudaStream_t stream) {
  const std::size_t first = live_.nodes.size(), first_meeting = live_.meetings.size();
  const auto moved = [](std::vector<std::size_t> numbers, std::size_t by) {
    for (std::size_t& number : numbers) number += by;
    return numbers;
  };
  std::set<std::size_t> leaves;
  for (std::size_t i = 0; i < network.nodes.size(); ++i) {
    FakeNode node = network.nodes[i];
    leaves.insert(first + i);
    node.before = moved(node.before, first);
    for (const std::size_t earlier : node.before) leaves.erase(earlier);
    if (node.before.empty()) node.before = stream->tail;
    if (node.meeting != no_node) node.meeting += first_meeting;
    waiting_.push_back(live_.add(std::move(node)));
  }
  for (const FakeMeeting& meeting : network.meetings)
    live_.meetings.push_back({moved(meeting.nodes, first), meeting.run, meeting.lost || lose});
  if (!leaves.empty()) stream->tail.assign(leaves.begin(), leaves.end());
}

bool FakeEngine::idle(const std::vector<std::size_t>& tail) const {
  return std::all_of(tail.begin(), tail.end(), [this](std::size_t node) { return done(node); });
}

bool FakeEngine::can_run(const FakeNode& node) const {
  if (!idle(node.before)) return false;
  if (node.meeting == no_node || node.communicator->aborted) return true;
  const FakeMeeting& meeting = live_.meetings[node.meeting];
  return !meeting.lost && std::all_of(meeting.nodes.begin(), meeting.nodes.end(),
                                      [this](std::size_t other) { return idle(live_.nodes[other].before); });
}

void FakeEngine::finish(std::size_t number) {
  FakeNode& node = live_.nodes[number];
  clock_ += 1 + static_cast<double>(random_() % 10);
  node.done = true;
  if (node.recorded != nullptr) {
    node.recorded->recorded = true;
    node.recorded->node = no_node;
    node.recorded->time = clock_;
  }
  std::erase(waiting_, number);
}

void FakeEngine::go_on() {
  for (std::uint64_t left = 1 + random_() % 8; left > 0; --left) {
    std::vector<std::size_t> able;
    for (const std::size_t node : waiting_)
      if (can_run(live_.nodes[node])) able.push_back(node);
    if (able.empty()) return;
    const std::size_t chosen = able[random_() % able.size()];
    const FakeNode& node = live_.nodes[chosen];
    if (node.meeting == no_node || node.communicator->aborted) {
      if (node.run) node.run();
      finish(chosen);
      continue;
    }
    const FakeMeeting meeting = live_.meetings[node.meeting];
    meeting.run();
    for (const std::size_t each : meeting.nodes) finish(each);
  }
}

bool FakeEngine::needs(ncclComm_t communicator) const {
  const auto of_it = [communicator](const FakeNode& node) { return node.communicator == communicator; };
  const auto holds = [&](const auto& graph) {
    return std::any_of(graph->network.nodes.begin(), graph->network.nodes.end(), of_it);
  };
  return std::any_of(graphs.begin(), graphs.end(), holds) ||
         std::any_of(executables.begin(), executables.end(), holds) ||
         std::any_of(waiting_.begin(), waiting_.end(),
                     [&](std::size_t node) { return of_it(live_.nodes[node]); });
}

FakeCapture* FakeEngine::open_capture() {
  for (FakeCapture& capture : captures)
    if (capture.open && capture.thread == std::this_thread::get_id()) return &capture;
  return nullptr;
}

FakeCapture* FakeEngine::capture_of(cudaStream_t stream) {
  return stream->capture == no_node ? nullptr : &captures[stream->capture];
}

bool FakeEngine::refuses(const char* call) {
  return open_capture() != nullptr && settings.refused_in_capture == call;
}

FakeEngine& fake_engine() {
  static FakeEngine engine;
  return engine;
}

void reset_fake_gpus(const FakeGpus& gpus) {
  const std::lock_guard held(fake_engine().lock);
  fake_engine().reset(gpus);
}

FakeGpuCounts fake_gpu_counts() {
  const std::lock_guard held(fake_engine().lock);
  return fake_engine().counts;
}

void lose_fake_messages() {
  const std::lock_guard held(fake_engine().lock);
  fake_engine().lose = true;
}

}  // namespace isthmus::test

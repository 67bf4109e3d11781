#pragma once
// How much staging memory a timeline needs. An operation that stages its target holds bytes on the GPU of
// each of its ranks from the moment it is ready until it and all operations that read them there have ended.
// What does not depend on times is prepared once: the places (operation x rank), who holds each how often,
// and which places the end of an operation lets go. A peak is then one pass over the timeline's events.
// Invariant: at one instant memory is freed before it is taken.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/timeline.hpp"

namespace isthmus::sim {

/// What happened to an operation.
struct Event {
  std::uint32_t operation = 0;
  bool ended = false;  // else it became ready
};

class Staging {
 public:
  Staging(const Refit& refit, const Operations& operations);

  bool empty() const { return gpu_.empty(); }
  /// The largest sum of staged bytes on one GPU at one time. `events`: all, in the order of time.
  Bytes peak(const Timeline& timeline, const std::vector<Event>& events) const;

 private:
  void list_places(const Refit& refit, const Operations& operations);
  void list_reads(const Operations& operations);

  std::size_t gpus_ = 0;
  std::vector<std::uint32_t> first_place_;         // by operation
  std::vector<std::uint32_t> gpu_, holds_;         // by place
  std::vector<Bytes> bytes_;                       // by place
  std::vector<std::uint32_t> first_read_, reads_;  // by operation: places
};

}  // namespace isthmus::sim

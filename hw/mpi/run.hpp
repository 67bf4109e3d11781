#pragma once
// One process's share of one run: it starts what the execution rule has made ready (hw/process_part.hpp),
// sends and receives, and says when each of its operations was ready and over, counted from when all
// processes were there. What a message brings goes to its place once it has come in whole; what is in one
// piece on a side travels without a copy there.
// Invariant: run() returns when everything of this process is complete, or raises SystemError.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/host_memory.hpp"
#include "hw/mpi/requests.hpp"
#include "hw/mpi/world.hpp"
#include "hw/process_part.hpp"
#include "planner/queues.hpp"

namespace isthmus::hw {

/// What all runs of a program share.
struct MpiProgram {
  MpiProgram(const Program& lowered, const MpiWorld& world);

  const Program& program;
  std::vector<std::uint32_t> process_of;  // by rank
  std::vector<Rank> ranks;                // of this process
  ProcessPart part;
  QueuePlan queues;
  std::vector<ProcessWork> work;  // by own operation

  /// What is missing when a process does not come: its first rank, and a step that it takes part in.
  SystemFault missing(std::uint32_t process) const;
};

struct LocalSpan {
  std::uint32_t operation = 0;  // of the program
  Instant ready, end;
};

class MpiRun {
 public:
  /// `watch`: called with the number of own operations that are complete, each time there are more; tests
  /// let processes die there.
  using Watch = std::function<void(std::size_t)>;
  MpiRun(const MpiProgram& mpi, HostMemory& memory, MpiWorld& world, const Watch& watch);
  std::vector<LocalSpan> run();

 private:
  enum class Role : std::uint8_t { send, receive, stream_out, stream_in, notice, told };
  struct Share {  // what a token stands for
    Role role = Role::send;
    std::uint32_t operation = 0;  // own
    std::uint32_t index = 0;      // of the message, or the part of the stream
    std::int64_t left = 1;        // parts of the message under way
  };

  struct StreamState {
    std::vector<bool> here;  // by part
    std::uint32_t sent = 0;  // leading parts that have been handed on
    std::uint32_t gone = 0;  // of those, taken by the next process
  };

  Instant now() const;
  void start_ready();
  void start(std::uint32_t operation);
  void start_stream(std::uint32_t operation);
  void pass_on(std::uint32_t operation);
  std::uint32_t token(Role role, std::uint32_t operation, std::uint32_t index, std::int64_t parts);
  void end(std::uint32_t token);
  void unpack(const RankMessage& message, const std::byte* bytes);
  /// The message's bytes in one piece: where they lie, or packed into `buffer`.
  const std::byte* packed(const RankMessage& message, std::vector<std::byte>& buffer);
  void finish(std::uint32_t operation);
  SystemFault describe(std::uint32_t token) const;
  int tag(std::uint32_t operation) const;

  const MpiProgram& mpi_;
  HostMemory& memory_;
  MpiWorld& world_;
  const Watch& watch_;
  Queues queues_;
  MpiRequests requests_;
  MpiWorld::Clock::time_point start_;
  std::vector<Share> shares_;                                 // by token
  std::vector<std::uint32_t> ready_;                          // own operations and notices
  std::vector<std::uint32_t> under_way_;                      // by own operation: shares
  std::vector<std::vector<std::vector<std::byte>>> buffers_;  // by own operation: of its messages
  std::vector<StreamState> streams_;                          // by own operation
  std::vector<LocalSpan> spans_;
  std::size_t complete_ = 0;
};

}  // namespace isthmus::hw

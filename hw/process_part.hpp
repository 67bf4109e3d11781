#pragma once
// The part of a plan that one of several processes executes. Each process knows the whole plan; it takes the
// operations that its ranks take part in, and obeys planner/plan.hpp for them by itself:
//   groups and windows  of its own ranks in full; of others' ranks as far as the same operations show them
//   `after`             by the processes that take part in both operations: there the bytes meet. Where none
//                       does, every process of the earlier one sends a notice to the later one's source
// A message is what goes from one rank to one other in an operation; both ends derive the same list of them,
// in the same order. Broadcasts go as a stream from process to process, hosts and on them processes in order
// of first appearance from the root's on, each handing on what has come: so they cross every link once, as
// the simulator has it.
// Invariant: what a process waits for, another one sends; for a proven plan no process waits for ever.

#include <cstdint>
#include <optional>
#include <vector>

#include "hw/program.hpp"
#include "planner/operations.hpp"

namespace isthmus::hw {

/// Word of a process that its share of an operation is complete.
struct Notice {
  std::uint32_t operation = 0;  // of the program
  std::uint32_t process = 0;    // that sends it
};

struct ProcessPart {
  Operations operations;                         // own ones, then one for each notice to be waited for
  std::vector<std::uint32_t> number;             // by own operation: its number in the program
  std::vector<Notice> notices;                   // by operation behind the own ones
  std::vector<std::vector<std::uint32_t>> tell;  // by own operation: processes that wait for its notice
};

/// `process_of`: by rank.
ProcessPart part_of(const Operations& operations, const std::vector<std::uint32_t>& process_of,
                    std::uint32_t process);

struct RankMessage {
  std::uint32_t peer = 0;  // process
  Rank from, to;
  std::int64_t bytes = 0;
  std::vector<Move> moves;  // in order
};

/// The bytes of a broadcast on their way through a process.
struct RankStream {
  std::optional<std::uint32_t> previous, next;  // processes; the root's has no previous one
  std::int64_t bytes = 0;
  Rank root;
  std::vector<RankMessage>
      members;  // here, to be filled from it; at the root: one entry, what is packed into it
};

/// What a process does for one operation.
struct ProcessWork {
  std::vector<Transfer> local;  // both ends here
  std::vector<RankMessage> sends, receives;
  std::optional<RankStream> stream;
};

/// `host_of`: by process; every one on a host of its own where it is empty.
ProcessWork work_of(const Program& program, std::uint32_t operation,
                    const std::vector<std::uint32_t>& process_of, std::uint32_t process,
                    const std::vector<std::uint32_t>& host_of = {});

/// Rank r on process r where there are as many of both; otherwise as ranks are folded onto GPUs.
std::vector<std::uint32_t> processes_of_ranks(const Program& program, std::uint32_t processes);

}  // namespace isthmus::hw

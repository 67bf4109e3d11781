#pragma once
// Messages in flight of one process. Each belongs to a share of an operation; poll() says which shares have
// come or gone. Sends are synchronous ones: they end only when the other side has taken its part, so a group
// is not complete before its peers have started theirs. Large messages travel in parts of at most
// `most_part` bytes, all of them posted at once; MPI keeps parts of one pair and tag in order.
// Invariant: memory that is in flight belongs to MPI until poll() has named its token.

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "hw/mpi/world.hpp"

namespace isthmus::hw {

class MpiRequests {
 public:
  static constexpr std::int64_t most_part = std::int64_t{64} << 20;

  /// `describe`: the fault of a token that goes wrong.
  using Describe = std::function<SystemFault(std::uint32_t)>;
  MpiRequests(MpiWorld& world, Describe describe) : world_(world), describe_(std::move(describe)) {}

  void send(const std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag, std::uint32_t token);
  void receive(std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag, std::uint32_t token);
  /// Without an answer from the other side: ends when MPI has the bytes.
  void post(const std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag, std::uint32_t token);

  /// Waits until something has ended; returns the tokens, once for each message or part.
  const std::vector<std::uint32_t>& poll();
  bool empty() const { return requests_.empty(); }

 private:
  enum class Kind : std::uint8_t { send, receive, post };
  void add(Kind kind, std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag,
           std::uint32_t token);
  bool test();

  MpiWorld& world_;
  Describe describe_;
  std::vector<MPI_Request> requests_;
  std::vector<std::uint32_t> tokens_;  // by request
  std::vector<int> ended_;
  std::vector<MPI_Status> statuses_;
  std::vector<std::uint32_t> done_;
};

/// In how many parts a message of so many bytes travels.
constexpr std::int64_t part_count(std::int64_t bytes) {
  return bytes == 0 ? 1 : (bytes + MpiRequests::most_part - 1) / MpiRequests::most_part;
}

}  // namespace isthmus::hw

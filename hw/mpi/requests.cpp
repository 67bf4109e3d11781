#include "hw/mpi/requests.hpp"

#include <algorithm>

namespace isthmus::hw {

void MpiRequests::send(const std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag,
                       std::uint32_t token) {
  add(Kind::send, const_cast<std::byte*>(memory), bytes, peer, tag, token);
}

void MpiRequests::receive(std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag,
                          std::uint32_t token) {
  add(Kind::receive, memory, bytes, peer, tag, token);
}

void MpiRequests::post(const std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag,
                       std::uint32_t token) {
  add(Kind::post, const_cast<std::byte*>(memory), bytes, peer, tag, token);
}

void MpiRequests::add(Kind kind, std::byte* memory, std::int64_t bytes, std::uint32_t peer, int tag,
                      std::uint32_t token) {
  const auto fault = [&] { return describe_(token); };
  const int other = static_cast<int>(peer);
  for (std::int64_t part = 0; part < part_count(bytes); ++part) {
    std::byte* const first = memory + part * most_part;
    const int count = static_cast<int>(std::min(most_part, bytes - part * most_part));
    MPI_Request request = MPI_REQUEST_NULL;
    if (kind == Kind::receive) {
      world_.require(MPI_Irecv(first, count, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request), "MPI_Irecv",
                     fault);
    } else if (kind == Kind::send) {
      world_.require(MPI_Issend(first, count, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request), "MPI_Issend",
                     fault);
    } else {
      world_.require(MPI_Isend(first, count, MPI_BYTE, other, tag, MPI_COMM_WORLD, &request), "MPI_Isend",
                     fault);
    }
    requests_.push_back(request);
    tokens_.push_back(token);
  }
}

const std::vector<std::uint32_t>& MpiRequests::poll() {
  const MpiWorld::Clock::time_point since = MpiWorld::Clock::now();
  done_.clear();
  world_.beat();
  while (!test()) world_.still_waiting(since, [&] { return describe_(tokens_.front()); });
  world_.rest();
  return done_;
}

bool MpiRequests::test() {
  int count = 0;
  ended_.resize(requests_.size());
  statuses_.resize(requests_.size());
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, ended_.data(),
                                statuses_.data());
  if (count == MPI_UNDEFINED) count = 0;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(ended_[static_cast<std::size_t>(i)]);
    const int error =
        code == MPI_ERR_IN_STATUS ? statuses_[static_cast<std::size_t>(i)].MPI_ERROR : MPI_SUCCESS;
    world_.require(error, "MPI_Testsome", [&] { return describe_(tokens_[at]); });
    done_.push_back(tokens_[at]);
  }
  if (code != MPI_ERR_IN_STATUS)
    world_.require(code, "MPI_Testsome", [&] { return describe_(tokens_.front()); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[i];
    tokens_[kept++] = tokens_[i];
  }
  requests_.resize(kept);
  tokens_.resize(kept);
  return count > 0;
}

}  // namespace isthmus::hw

#pragma once
// Refits of a few whole tensors between a few GPUs of several DGX H100 hosts, where only those GPUs take
// part: small enough for exact programs, with holders and receivers in any domains, on both sides at once.
// Invariant: tensor i is one class: all its bytes have the same holders and the same receivers.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"

namespace isthmus::test {

struct SparseTensor {
  std::int64_t bytes = 0;
  std::vector<std::uint32_t> holders, receivers;  // GPUs
};

/// On DGX H100 hosts; GPU g is on host g / 8, and there are as many ranks as GPUs.
Refit sparse_refit(const std::vector<SparseTensor>& tensors, Relay relay = Relay::members,
                   std::size_t gpus = 32);

/// 1 to 4 tensors between up to 9 GPUs; the same seed gives the same.
std::vector<SparseTensor> sparse_tensors(std::uint64_t seed);

}  // namespace isthmus::test

#pragma once
// Random small refits between GPUs of hosts that have idle ones: every shard layout of refit_generator.hpp on
// every second, third or fourth GPU, or whole tensors of sparse_refit.hpp, on DGX H100 hosts with NICs of
// 1 MB/s, so that a few hundred bytes are worth a detour over a neighbour's NIC.
// Invariant: where any GPU may relay, idle GPUs of hosts with members have ranks.

#include "tests/support/refit_generator.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus::test {

inline Refit lending_refit(std::uint64_t seed, Relay relay) {
  std::vector<SparseTensor> tensors = sparse_tensors(seed);
  for (SparseTensor& tensor : tensors) tensor.bytes /= 10'000;
  const bool sparse = seed % 2 == 0;
  Refit refit = sparse ? sparse_refit(tensors, relay) : make_refit(sample_case(seed));
  const auto stride = static_cast<std::uint32_t>(2 + seed / 2 % 3);
  for (std::uint32_t r = 0; !sparse && r < refit.ranks(); ++r) refit.gpu_of_rank[r] = {r * stride};
  refit.fabric = Fabric({"dgx-h100", 32, Bandwidth{1'000'000}, std::nullopt});
  refit.settings.relay = relay;
  add_relay_ranks(refit);
  return refit;
}

}  // namespace isthmus::test

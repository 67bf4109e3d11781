#include "tests/support/sparse_refit.hpp"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "tests/support/refit_generator.hpp"

namespace isthmus::test {
namespace {

Mesh mesh_of(const std::vector<std::uint32_t>& gpus) {
  Mesh mesh{{static_cast<std::int64_t>(gpus.size())}, {}};
  for (const std::uint32_t gpu : gpus) mesh.ranks.push_back({gpu});
  return mesh;
}

}  // namespace

Refit sparse_refit(const std::vector<SparseTensor>& tensors, Relay relay, std::size_t gpus) {
  RefitCase refit_case{{}, gpus};
  for (const SparseTensor& tensor : tensors) {
    TensorSpec spec;
    spec.name = fmt::format("t{}", refit_case.tensors.size());
    spec.source = {{tensor.bytes}, Dtype::u8, mesh_of(tensor.holders), {{}}, ChunkRule::even};
    spec.target = {{tensor.bytes}, Dtype::u8, mesh_of(tensor.receivers), {{}}, ChunkRule::even};
    refit_case.tensors.push_back(spec);
  }
  Refit refit = make_refit(refit_case);
  refit.settings.relay = relay;
  return refit;
}

std::vector<SparseTensor> sparse_tensors(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  std::vector<std::uint32_t> gpus;  // 1-3 of each of 2-3 hosts
  for (std::uint32_t host = 0, hosts = 2 + static_cast<std::uint32_t>(below(2)); host < hosts; ++host) {
    for (std::uint32_t gpu = 0, count = 1 + static_cast<std::uint32_t>(below(3)); gpu < count; ++gpu) {
      gpus.push_back(host * 8 + gpu);
    }
  }
  const auto choose = [&](std::size_t most) {
    std::vector<std::uint32_t> chosen = gpus;
    std::shuffle(chosen.begin(), chosen.end(), random);
    chosen.resize(1 + below(std::min(most, chosen.size())));
    return chosen;
  };
  std::vector<SparseTensor> tensors;
  for (std::size_t i = 0, count = 1 + below(4); i < count; ++i) {
    const auto bytes = static_cast<std::int64_t>(1'000'000 * (1 + below(9)));
    tensors.push_back({bytes, choose(3), choose(6)});
  }
  return tensors;
}

}  // namespace isthmus::test

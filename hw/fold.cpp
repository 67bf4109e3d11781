#include "hw/fold.hpp"

#include <algorithm>
#include <cstddef>

namespace isthmus::hw {
namespace {

/// Item i of `count` goes to GPU first + floor(i * gpus / count).
void spread(const std::vector<std::size_t>& ranks, std::uint32_t first, std::uint32_t gpus,
            std::vector<std::uint32_t>& gpu) {
  for (std::size_t i = 0; i < ranks.size(); ++i)
    gpu[ranks[i]] = first + static_cast<std::uint32_t>(i * gpus / ranks.size());
}

std::uint32_t gpus_of_sources(std::size_t sources, std::size_t others, std::uint32_t gpus) {
  const std::size_t ranks = sources + others;
  const std::size_t share = (sources * gpus + ranks / 2) / ranks;
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(share, 1, gpus - 1));
}

}  // namespace

Folding fold(const Program& program, std::uint32_t gpus) {
  Folding result;
  result.gpus = gpus;
  result.gpu.assign(program.ranks(), 0);
  std::vector<std::size_t> sources, others;
  for (std::size_t r = 0; r < program.ranks(); ++r) {
    const Rank rank{static_cast<std::uint32_t>(r)};
    if (program.arena(rank).size.value == 0) continue;  // idle ranks would shift where the others go
    (program.sources(rank).empty() ? others : sources).push_back(r);
  }
  if (gpus == 1 || sources.empty() || others.empty()) {
    sources.insert(sources.end(), others.begin(), others.end());
    std::sort(sources.begin(), sources.end());
    spread(sources, 0, gpus, result.gpu);
  } else {
    const std::uint32_t first = gpus_of_sources(sources.size(), others.size(), gpus);
    spread(sources, 0, first, result.gpu);
    spread(others, first, gpus - first, result.gpu);
  }
  result.base.assign(program.ranks(), 0);
  result.memory.assign(gpus, 0);
  for (std::size_t r = 0; r < program.ranks(); ++r) {
    std::int64_t& used = result.memory[result.gpu[r]];
    result.base[r] = used;
    const std::int64_t size = program.arena({static_cast<std::uint32_t>(r)}).size.value;
    used += (size + arena_alignment - 1) / arena_alignment * arena_alignment;
  }
  return result;
}

}  // namespace isthmus::hw

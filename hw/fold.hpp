#pragma once
// Ranks onto the GPUs at hand. Ranks that hold source shards take the first GPUs in contiguous blocks, all
// others the remaining GPUs, in proportion to their numbers; so what a refit sends from side to side crosses
// between GPUs. Where there is only one side, its ranks spread over all GPUs. A GPU's arena holds the arenas
// of its ranks one after the other.

#include <cstdint>
#include <vector>

#include "hw/program.hpp"

namespace isthmus::hw {

struct Folding {
  std::uint32_t gpus = 1;
  std::vector<std::uint32_t> gpu;    // by rank
  std::vector<std::int64_t> base;    // by rank: where its arena begins in that of its GPU
  std::vector<std::int64_t> memory;  // by GPU: bytes of its ranks' arenas
};

Folding fold(const Program& program, std::uint32_t gpus);

}  // namespace isthmus::hw

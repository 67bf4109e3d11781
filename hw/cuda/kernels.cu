#include "hw/cuda/kernels.hpp"

#include <algorithm>

#include "hw/cuda/check.hpp"

namespace isthmus::hw {
namespace {

constexpr std::uint32_t move_threads = 512;
constexpr std::uint32_t units_per_thread = DeviceMove::tile_units / move_threads;
constexpr std::uint32_t code_threads = 256;
/// A block moves this many tiles in about 1 ms.
constexpr std::uint32_t tiles_per_look = 128;

template <class Word>
__device__ void copy_tile(const DeviceMove& move, std::uint32_t first) {
  Word words[units_per_thread];
#pragma unroll
  for (std::uint32_t i = 0; i < units_per_thread; ++i) {
    const std::uint32_t unit = first + i * move_threads + threadIdx.x;
    if (unit < move.units) {
      words[i] = *reinterpret_cast<const Word*>(move.source + unit_offset(move, move.source_stride, unit));
    }
  }
#pragma unroll
  for (std::uint32_t i = 0; i < units_per_thread; ++i) {
    const std::uint32_t unit = first + i * move_threads + threadIdx.x;
    if (unit < move.units) {
      *reinterpret_cast<Word*>(move.target + unit_offset(move, move.target_stride, unit)) = words[i];
    }
  }
}

__device__ void copy_tile_of(const DeviceMove& move, std::uint32_t first) {
  switch (move.width) {
    case 16: return copy_tile<uint4>(move, first);
    case 8: return copy_tile<std::uint64_t>(move, first);
    case 4: return copy_tile<std::uint32_t>(move, first);
    case 2: return copy_tile<std::uint16_t>(move, first);
    default: return copy_tile<std::uint8_t>(move, first);
  }
}

__global__ void __launch_bounds__(move_threads, 2)
    move_kernel(const DeviceMove* moves, std::uint32_t count, std::uint32_t tiles, std::uint32_t chunk,
                const volatile std::uint32_t* abort) {
  std::uint32_t piece = 0;
  std::uint32_t done = 0;
  for (std::uint32_t begin = blockIdx.x * chunk; begin < tiles; begin += gridDim.x * chunk) {
    const std::uint32_t end = begin + chunk < tiles ? begin + chunk : tiles;
    piece += move_of_tile(moves + piece, count - piece, begin);
    for (std::uint32_t tile = begin; tile < end; ++tile, ++done) {
      // Memory of the host answers in 2 us, one warp after the other: one thread of a block asks.
      const bool look = done % tiles_per_look == tiles_per_look - 1;
      const std::uint32_t stop = look && threadIdx.x == 0 ? *abort : 0;
      while (piece + 1 < count && moves[piece + 1].first_tile <= tile) ++piece;
      copy_tile_of(moves[piece], (tile - moves[piece].first_tile) * DeviceMove::tile_units);
      if (look && __syncthreads_or(static_cast<int>(stop)) != 0) return;
    }
  }
}

__device__ void store_word(std::byte* at, std::uint32_t width, std::uint64_t word) {
  switch (width) {
    case 1: *reinterpret_cast<std::uint8_t*>(at) = static_cast<std::uint8_t>(word); break;
    case 2: *reinterpret_cast<std::uint16_t*>(at) = static_cast<std::uint16_t>(word); break;
    case 4: *reinterpret_cast<std::uint32_t*>(at) = static_cast<std::uint32_t>(word); break;
    default: *reinterpret_cast<std::uint64_t*>(at) = word; break;
  }
}

__device__ std::uint64_t load_word(const std::byte* at, std::uint32_t width) {
  switch (width) {
    case 1: return *reinterpret_cast<const std::uint8_t*>(at);
    case 2: return *reinterpret_cast<const std::uint16_t*>(at);
    case 4: return *reinterpret_cast<const std::uint32_t*>(at);
    default: return *reinterpret_cast<const std::uint64_t*>(at);
  }
}

/// Block row y takes every gridDim.y-th shard, its blocks share the elements.
__global__ void fill_kernel(const DeviceShard* shards, std::uint32_t count, ShardValue value) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint32_t s = blockIdx.y; s < count; s += gridDim.y) {
    const DeviceShard& shard = shards[s];
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < shard.code.elements;
         i += step) {
      const std::uint64_t word = code_word(shard.code, i);
      store_word(shard.memory + i * shard.code.width, shard.code.width,
                 value == ShardValue::code ? word : ~word);
    }
  }
}

__device__ void report(DeviceVerdict* verdict, std::uint32_t shard, std::uint64_t position,
                       std::uint64_t found) {
  atomicAdd(reinterpret_cast<unsigned long long*>(&verdict->mismatches), 1ULL);
  const std::uint32_t place = atomicAdd(&verdict->listed, 1U);
  if (place < DeviceVerdict::most_listed) verdict->entries[place] = {shard, position, found};
}

__global__ void compare_kernel(const DeviceShard* shards, std::uint32_t count, DeviceVerdict* verdict) {
  const std::uint64_t step = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint32_t s = blockIdx.y; s < count; s += gridDim.y) {
    const DeviceShard& shard = shards[s];
    for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < shard.code.elements;
         i += step) {
      const std::uint64_t found = load_word(shard.memory + i * shard.code.width, shard.code.width);
      if (found != code_word(shard.code, i)) report(verdict, s, i, found);
    }
  }
}

dim3 code_grid(std::uint32_t count, std::uint32_t blocks) {
  const std::uint32_t rows = count < blocks ? count : blocks;
  return dim3((blocks + rows - 1) / rows, rows);
}

}  // namespace

void load_kernels() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, move_kernel), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, fill_kernel), "cudaFuncGetAttributes");
  check(cudaFuncGetAttributes(&attributes, compare_kernel), "cudaFuncGetAttributes");
}

void launch_moves(const DeviceMove* moves, std::uint32_t count, std::uint32_t tiles, MoveBlocks blocks,
                  const std::uint32_t* abort, cudaStream_t stream) {
  if (tiles == 0) return;
  const std::uint32_t chunk = chunk_of_tiles(tiles, blocks.count);
  const std::uint32_t chunks = (tiles + chunk - 1) / chunk;
  const std::uint32_t grid = blocks.stay ? std::min(blocks.count, chunks) : chunks;
  move_kernel<<<grid, move_threads, 0, stream>>>(moves, count, tiles, chunk, abort);
  check(cudaGetLastError(), "launch of move_kernel");
}

void launch_fill(const DeviceShard* shards, std::uint32_t count, ShardValue value, std::uint32_t blocks,
                 cudaStream_t stream) {
  if (count == 0) return;
  fill_kernel<<<code_grid(count, blocks), code_threads, 0, stream>>>(shards, count, value);
  check(cudaGetLastError(), "launch of fill_kernel");
}

void launch_compare(const DeviceShard* shards, std::uint32_t count, DeviceVerdict* verdict,
                    std::uint32_t blocks, cudaStream_t stream) {
  if (count == 0) return;
  compare_kernel<<<code_grid(count, blocks), code_threads, 0, stream>>>(shards, count, verdict);
  check(cudaGetLastError(), "launch of compare_kernel");
}

}  // namespace isthmus::hw

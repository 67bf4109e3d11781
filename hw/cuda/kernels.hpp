#pragma once
// The kernels of the NCCL backend, as functions that launch them on a stream of the current GPU.
// Moving. A persistent kernel of at most `blocks` blocks copies a list of strided pieces, within the GPU or
// into a peer's memory that it has access to. Each piece is cut into tiles of `tile_units` words, the widest
// that its addresses, strides and runs are multiples of (16 bytes at best); the tiles of all pieces are
// spread evenly over the blocks. It waits for nothing, so it always ends; it ends early once *abort is not 0.
// Filling and comparing work element by element with the code of hw/code.hpp.
// Invariants: a piece has fewer than 2^31 words; `abort` is memory of the host that the GPU can read.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "hw/code.hpp"
#include "hw/program.hpp"

namespace isthmus::hw {

struct DeviceMove {
  static constexpr std::uint32_t tile_units = 2048;

  const std::byte* source = nullptr;
  std::byte* target = nullptr;
  std::int64_t source_stride[3] = {0, 0, 0}, target_stride[3] = {0, 0, 0};  // bytes, outermost first
  std::uint32_t count[3] = {1, 1, 1};
  std::uint32_t units_per_run = 0;
  std::uint32_t units = 0;
  std::uint32_t width = 16;      // bytes of a unit: 16, 8, 4, 2 or 1
  std::uint32_t first_tile = 0;  // of all tiles of the list
};

/// The piece for the device; `first_tile` is left to number_tiles.
DeviceMove device_move(const Move& move, const std::byte* source_base, std::byte* target_base);
/// Numbers the tiles of `count` pieces; returns how many there are.
std::uint32_t number_tiles(DeviceMove* moves, std::size_t count);

/// Where device memory does not hold what it should.
struct DeviceVerdict {
  static constexpr std::uint32_t most_listed = 64;
  std::uint64_t mismatches = 0;
  std::uint32_t listed = 0;  // may count beyond most_listed
  struct Entry {
    std::uint32_t shard;
    std::uint64_t position, found;
  } entries[most_listed] = {};
};

/// A shard in device memory, with what it holds or is to hold.
struct DeviceShard {
  ShardCode code;
  std::byte* memory = nullptr;
};

enum class ShardValue : std::uint32_t { code, complement };

/// Loads the kernels onto the current GPU: CUDA would do so at first use, and wait for all that runs there.
void load_kernels();

void launch_moves(const DeviceMove* moves, std::uint32_t count, std::uint32_t tiles, std::uint32_t blocks,
                  const std::uint32_t* abort, cudaStream_t stream);
void launch_fill(const DeviceShard* shards, std::uint32_t count, ShardValue value, std::uint32_t blocks,
                 cudaStream_t stream);
/// Adds to `verdict`, which is device memory.
void launch_compare(const DeviceShard* shards, std::uint32_t count, DeviceVerdict* verdict,
                    std::uint32_t blocks, cudaStream_t stream);

}  // namespace isthmus::hw

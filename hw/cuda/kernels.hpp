#pragma once
// The kernels of the NCCL backend, as functions that launch them on a stream of the current GPU.
// Moving. A kernel does a list of strided copies (hw/device_move.hpp), within the GPU or into a peer's memory
// that it has access to: with blocks that stay until all is done, or with one block per chunk, so that
// kernels of streams with a higher priority get multiprocessors meanwhile. It waits for nothing, so it always
// ends; blocks that stay end early once *abort is not 0.
// Filling and comparing work element by element with the code of hw/code.hpp.
// Invariant: `abort` is memory of the host that the GPU can read.

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "hw/code.hpp"
#include "hw/device_move.hpp"

namespace isthmus::hw {

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

struct MoveBlocks {
  std::uint32_t count = 1;  // that the GPU is to run at a time
  bool stay = false;
};

void launch_moves(const DeviceMove* moves, std::uint32_t count, std::uint32_t tiles, MoveBlocks blocks,
                  const std::uint32_t* abort, cudaStream_t stream);
void launch_fill(const DeviceShard* shards, std::uint32_t count, ShardValue value, std::uint32_t blocks,
                 cudaStream_t stream);
/// Adds to `verdict`, which is device memory.
void launch_compare(const DeviceShard* shards, std::uint32_t count, DeviceVerdict* verdict,
                    std::uint32_t blocks, cudaStream_t stream);

}  // namespace isthmus::hw

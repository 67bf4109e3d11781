// The kernels of hw/cuda/kernels.hpp on host memory.

#include "hw/cuda/kernels.hpp"

#include <cstring>

#include "hw/cuda/check.hpp"
#include "tests/fake_cuda/runtime.hpp"

namespace isthmus::hw {
namespace {

void move_units(const DeviceMove& move) {
  for (std::uint32_t unit = 0; unit < move.units; ++unit) {
    std::memcpy(move.target + unit_offset(move, move.target_stride, unit),
                move.source + unit_offset(move, move.source_stride, unit), move.width);
  }
}

}  // namespace

void load_kernels() {}

void launch_moves(const DeviceMove* moves, std::uint32_t count, std::uint32_t tiles, MoveBlocks,
                  const std::uint32_t* abort, cudaStream_t stream) {
  if (tiles == 0) return;
  const auto work = [=] {
    for (std::uint32_t m = 0; m < count; ++m)
      if (*static_cast<const volatile std::uint32_t*>(abort) == 0) move_units(moves[m]);
  };
  check(test::launch_fake_kernel(stream, work), "launch of move_kernel");
}

void launch_fill(const DeviceShard* shards, std::uint32_t count, ShardValue value, std::uint32_t,
                 cudaStream_t stream) {
  if (count == 0) return;
  const auto work = [=] {
    for (std::uint32_t s = 0; s < count; ++s) {
      for (std::uint64_t i = 0; i < shards[s].code.elements; ++i) {
        const std::uint64_t code = code_word(shards[s].code, i);
        const std::uint64_t word = value == ShardValue::code ? code : ~code;
        std::memcpy(shards[s].memory + i * shards[s].code.width, &word, shards[s].code.width);
      }
    }
  };
  check(test::launch_fake_kernel(stream, work), "launch of fill_kernel");
}

void launch_compare(const DeviceShard* shards, std::uint32_t count, DeviceVerdict* verdict, std::uint32_t,
                    cudaStream_t stream) {
  if (count == 0) return;
  const auto work = [=] {
    for (std::uint32_t s = 0; s < count; ++s) {
      for (std::uint64_t i = 0; i < shards[s].code.elements; ++i) {
        std::uint64_t found = 0;
        std::memcpy(&found, shards[s].memory + i * shards[s].code.width, shards[s].code.width);
        if (found == code_word(shards[s].code, i)) continue;
        ++verdict->mismatches;
        if (verdict->listed < DeviceVerdict::most_listed) verdict->entries[verdict->listed] = {s, i, found};
        ++verdict->listed;
      }
    }
  };
  check(test::launch_fake_kernel(stream, work), "launch of compare_kernel");
}

}  // namespace isthmus::hw

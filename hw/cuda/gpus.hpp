#pragma once
// What this process sees of the machine's GPUs (CUDA_VISIBLE_DEVICES chooses), and which of them may write
// into each other's memory.
// Invariant: GPUs are numbered from 0 as CUDA does.

#include <cstdint>
#include <string>

namespace isthmus::hw {

/// Raises SystemError where there is none.
std::uint32_t visible_gpus();
/// Lets kernels of one GPU write into the memory of another; false where the machine cannot do that.
bool open_peer(int from, int to);
/// "2 x NVIDIA H200, CUDA 13.0, driver for 13.0, NCCL 2.28.3"
std::string describe_gpus(std::uint32_t gpus);

}  // namespace isthmus::hw

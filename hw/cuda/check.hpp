#pragma once
// Every call of CUDA and NCCL goes through check: what fails leaves as SystemError, which names the call, the
// code in words and number, and the GPU that was current.
// Pairs with the watchdog (hw/cuda/watchdog.hpp): calls that do not return are its business.

#include <string_view>

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace isthmus::hw {

void check(cudaError_t result, std::string_view call);
/// ncclInProgress is no failure: communicators are asked later (Communicators::settle).
void check(ncclResult_t result, std::string_view call);

}  // namespace isthmus::hw

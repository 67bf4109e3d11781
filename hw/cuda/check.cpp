#include "hw/cuda/check.hpp"

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {

void check(cudaError_t result, std::string_view call) {
  if (result == cudaSuccess) return;
  int gpu = -1;
  const bool known = cudaGetDevice(&gpu) == cudaSuccess;
  throw SystemError(fmt::format("{}: {} (CUDA code {}, {}){}", call, cudaGetErrorString(result),
                                static_cast<int>(result), cudaGetErrorName(result),
                                known ? fmt::format(" with GPU {}", gpu) : std::string()));
}

void check(ncclResult_t result, std::string_view call) {
  if (result == ncclSuccess || result == ncclInProgress) return;
  throw SystemError(fmt::format("{}: {} (NCCL code {}); {}", call, ncclGetErrorString(result),
                                static_cast<int>(result), ncclGetLastError(nullptr)));
}

}  // namespace isthmus::hw

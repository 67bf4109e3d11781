#include "hw/cuda/gpus.hpp"

#include <fmt/format.h>

#include "hw/cuda/check.hpp"
#include "hw/cuda/communicators.hpp"
#include "hw/cuda/handles.hpp"
#include "model/error.hpp"

namespace isthmus::hw {

std::uint32_t visible_gpus() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  if (count == 0) throw SystemError("cudaGetDeviceCount: no GPU is visible");
  return static_cast<std::uint32_t>(count);
}

bool open_peer(int from, int to) {
  int possible = 0;
  check(cudaDeviceCanAccessPeer(&possible, from, to), "cudaDeviceCanAccessPeer");
  if (possible == 0) return false;
  use_gpu(from);
  const cudaError_t result = cudaDeviceEnablePeerAccess(to, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {
    static_cast<void>(cudaGetLastError());  // else the next launch would report it
  } else {
    check(result, "cudaDeviceEnablePeerAccess");
  }
  return true;
}

std::string describe_gpus(std::uint32_t gpus) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return fmt::format("{} x {}, CUDA {}.{}, driver for {}.{}, {}", gpus, properties.name, runtime / 1000,
                     runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, nccl_version());
}

}  // namespace isthmus::hw

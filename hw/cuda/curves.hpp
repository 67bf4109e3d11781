#pragma once
// The micro-benchmarks of hw/microbench.hpp, on the GPUs that this process sees: with two or more, messages
// and writes from GPU 0 to GPU 1; else only what stays within a GPU.
// Invariant: every wait is under the watchdog.

#include "hw/microbench.hpp"

namespace isthmus::hw {

CurveDevice measure_gpu_curves(const CurveVisitor& visit);

}  // namespace isthmus::hw

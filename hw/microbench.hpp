#pragma once
// Micro-benchmarks of the GPUs at hand, or of the network between MPI processes: what a calibration is made
// of. Each point is the median of several runs after warm-ups, with the fastest and the slowest: GPU time by
// events, from before the work is issued until it is complete on all GPUs that take part, and the host time
// that issuing took. What happens once (set-up of communicators, first messages) is a point of its own.
// Rates are payload per second in one direction; copies within a GPU also read what they write, so they use
// twice that of its memory.

#include <cstdint>
#include <functional>
#include <string>

#include "model/units.hpp"

namespace isthmus::hw {

struct CurvePoint {
  std::string path;              // nccl, nccl-both-ways, put, peer-copy, copy, strided-copy, launch, mpi
  std::uint32_t operations = 1;  // in one group, or pieces of one kernel
  Bytes bytes;                   // of one operation
  Bytes row;                     // of a strided piece; 0: in one piece
  std::uint32_t blocks = 0;      // of a kernel of ours; 0: not one
  double seconds = 0, fastest = 0, slowest = 0, host_seconds = 0;

  /// Payload of all operations per second.
  double bytes_per_second() const;
};

struct CurveDevice {
  std::string description;  // GPUs, CUDA, driver, NCCL
  std::uint32_t gpus = 0;
  bool reports = true;  // of several processes, one
};

using CurveVisitor = std::function<void(const CurvePoint&)>;

/// Visits every point as soon as it is measured. Raises InputError where this program was built without CUDA
/// and NCCL.
CurveDevice measure_curves(const CurveVisitor& visit);
/// The same for messages from the first to the last process of an MPI job.
CurveDevice measure_network_curves(const CurveVisitor& visit);

}  // namespace isthmus::hw

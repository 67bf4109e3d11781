#pragma once
// Curves of a network as MPI has it: groups of equal messages from process 0 to the last one, of an MPI job
// on two hosts or more. A point's time is what a plan's would be: from when both processes know that the
// other is there until both are done. No message is verified here; replays do that.

#include "hw/microbench.hpp"

namespace isthmus::hw {

/// Only process 0 visits points. Raises InputError for a job of one process.
CurveDevice measure_mpi_curves(const CurveVisitor& visit);

}  // namespace isthmus::hw

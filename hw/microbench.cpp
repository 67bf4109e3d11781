#include "hw/microbench.hpp"

#include "model/error.hpp"

#ifdef ISTHMUS_HAVE_CUDA
#include "hw/cuda/curves.hpp"
#endif

#ifdef ISTHMUS_HAVE_MPI
#include "hw/mpi/curves.hpp"
#endif

namespace isthmus::hw {

double CurvePoint::bytes_per_second() const {
  return seconds > 0 ? static_cast<double>(bytes.value) * operations / seconds : 0;
}

#ifdef ISTHMUS_HAVE_CUDA
CurveDevice measure_curves(const CurveVisitor& visit) { return measure_gpu_curves(visit); }
#else
CurveDevice measure_curves(const CurveVisitor&) {
  throw InputError({"--backend", 0, ""}, "'nccl', which this program was built without", "a build with CUDA");
}
#endif

#ifdef ISTHMUS_HAVE_MPI
CurveDevice measure_network_curves(const CurveVisitor& visit) { return measure_mpi_curves(visit); }
#else
CurveDevice measure_network_curves(const CurveVisitor&) {
  throw InputError({"--backend", 0, ""}, "'mpi', which this program was built without", "a build with MPI");
}
#endif

}  // namespace isthmus::hw

// Spaces of sweeps: what is read keeps its limits. No file that a space names is read.

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/sweep_space.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  fuzz::only_input_errors([&] {
    const SweepSpace space = parse_sweep_space(std::string(fuzz::text_of(data, size)), "space.yaml");
    const std::int64_t layouts = space.layouts();
    ISTHMUS_ASSERT(layouts > 0 && layouts <= max_sweep_layouts, "{} layouts", layouts);
    ISTHMUS_ASSERT(!space.models.empty() && !space.calibrations.empty() && !space.streams.empty(),
                   "a list without values");
  });
  return 0;
}

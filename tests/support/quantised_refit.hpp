#pragma once
// Random small refits whose sources quantise: one to three matrices, or stacks of them, each as MXFP8 values
// and their scales, cut alike on the source side. Targets are cut in any way, also inside groups of 32.
// Invariant: without `cut_groups` every source shard of values consists of whole groups.

#include <cstdint>

#include "model/refit.hpp"

namespace isthmus::test {

struct QuantisedRefitOptions {
  bool cut_groups = false;  // some source shard cuts a group along the last dimension
  bool plain = true;        // now and then a tensor between them that travels as it is
};

Refit quantised_refit(std::uint64_t seed, QuantisedRefitOptions options = {});

/// Bytes of the values and scales of one tensor's elements, and of these in BF16.
struct WireBytes {
  std::int64_t quantised = 0, bf16 = 0;
};
WireBytes wire_bytes(const Refit& refit);

}  // namespace isthmus::test

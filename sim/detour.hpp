#pragma once
// A way between two GPUs around links that are down: through the NICs of other GPUs of their hosts, which
// NVLink joins them to (as PXN goes: over NVLink, then out; on the far side in, then over NVLink).
// Rule: of all pairs (a, b), a from the sender on round its host, b from the receiver on round its, the first
// by steps together, then by a's, whose way sender -> a -> b -> receiver crosses nothing that is down and no
// link twice. Invariant: equal arguments give the same way.

#include <optional>
#include <vector>

#include "model/fabric.hpp"

namespace isthmus::sim {

/// `down`: by link. The fabric's own route where that is whole; nullopt where no way is left.
std::optional<std::vector<LinkId>> way_around(const Fabric& fabric, GpuId from, GpuId to,
                                              const std::vector<char>& down);

}  // namespace isthmus::sim

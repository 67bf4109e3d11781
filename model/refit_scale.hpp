#pragma once
// A refit made small, so that its plan can be replayed where the real weights do not fit: fewer layers, then
// smaller dimensions; same ranks, same stages, same kinds of tensors.
//   Layers   Layers whose tensors agree in everything but the layer's number, on the same stages, are of one
//            kind. Of each kind a share of the layers stays, the first ones, and at least one.
//   Lengths  Along a dimension of a geometry let u be the greatest length that all cuts of both layouts (and
//            the frames around them) are multiples of. u becomes max(1, ceil(s u)), with one s for all
//            dimensions of the refit. Dimension 0 of stacked tensors (experts) stays.
// Invariant: each region of each new layout is the old region with every coordinate scaled by u'/u. So who
// holds what, which shards are empty or uneven, and which overlaps there are, is as before.
// Packets (refit.packet_bytes) shrink as lengths do, so that a layer fills as many as before.

#include "model/refit.hpp"

namespace isthmus {

struct ScaledRefit {
  Refit refit;
  double share = 1;  // of the bytes that are left: the share asked for, or a little more, where less is not
                     // possible
};

/// Requires 0 < share <= 1. A share of 1 changes nothing.
ScaledRefit scale_refit(Refit refit, double share);

}  // namespace isthmus

#pragma once
// What a predicted time rests on, by the provenance of the calibration's constants. The constants of one kind
// after the other are set as under wire-only, in the order fitted, judgement, nccl-source, metal; what each
// step takes off is the share of that kind, and what is left rests on datasheets (link rates).
// Invariant: shares add up to 1. One may be slightly negative: sharing of links is not monotone.

#include <vector>

#include "model/calibration.hpp"

namespace isthmus::report {

struct Shares {
  double metal = 0, source = 0, datasheet = 0, fitted = 0, judgement = 0;
};

/// One calibration for each step, in that order.
std::vector<Calibration> share_calibrations(const Calibration& calibration);
/// `left`: seconds under those calibrations. All 0 where there are none.
Shares shares_of(double seconds, const std::vector<double>& left);

}  // namespace isthmus::report

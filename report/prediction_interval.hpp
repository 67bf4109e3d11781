#pragma once
// Within what a prediction is believed to lie, from the intervals of the calibration's constants.
// Rule. Constants form six groups: link efficiencies; latencies and times per operation; rates of collectives
// and channels; times per call; times per tensor; memory. Inside a group what makes one constant wrong is
// taken to make all of them wrong, so all go to their fast ends together, then to their slow ends. Groups are
// taken to be independent, so their effects add up as squares:
//     low  = seconds - sqrt(sum of squares of what the fast ends take off),
//     high = seconds + sqrt(sum of squares of what the slow ends add).
// An end that has the opposite effect (sharing is not monotone) counts on the other side.
// What a plan or a row's description leaves out is not in it.

#include <vector>

#include "model/calibration.hpp"

namespace isthmus::report {

struct PredictedInterval {
  double low = 0, high = 0;  // seconds
};

/// Of each group the fast ends, then the slow ends.
std::vector<Calibration> interval_calibrations(const Calibration& calibration);
/// `ends`: seconds under those calibrations, in their order.
PredictedInterval interval_of(double seconds, const std::vector<double>& ends);

}  // namespace isthmus::report

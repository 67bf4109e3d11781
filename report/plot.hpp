#pragma once
// Static plots for papers (--plot), as SVG: the policies of one refit against the lower bound, and all
// published refits, predicted against published on logarithmic axes.
// Every number shown is of the value given, and so in the table and the JSON of the same command: times as
// bars (bulk, misc, other) with the published range, or points with the published range across and the
// predicted interval up and down. Invariant: equal values give equal bytes.

#include <string>

#include "report/comparison.hpp"
#include "report/scoreboard.hpp"

namespace isthmus::report {

/// Policies without a prediction are named with the reason left to the table.
std::string plot(const Comparison& comparison);
/// Rows with a published time and a prediction; counted ones filled.
std::string plot(const Scoreboard& scoreboard);

}  // namespace isthmus::report

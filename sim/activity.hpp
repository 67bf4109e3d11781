#pragma once
// What links carry and which ranks are at work, over time, in equal steps: from a timeline, predicted or
// measured. load = bytes carried in the step / (rate x step); active = share of the step in which at least
// one operation of the rank is between ready and end. The bytes of an operation count as spread evenly over
// its flow, so the load of one step may exceed 1 where sharing changed while it ran.
// Invariant: summed over its steps, load x rate x step is what the link carries (to rounding of doubles).

#include <cstddef>
#include <vector>

#include "model/calibration.hpp"
#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/timeline.hpp"

namespace isthmus::sim {

struct LinkActivity {
  LinkId link;
  Bytes bytes;
  Bandwidth rate;
  Duration busy;             // bytes / rate
  std::vector<double> load;  // by step
};

struct RankActivity {
  Rank rank;
  std::size_t operations = 0;
  Duration active;
  std::vector<double> share;  // of each step
};

struct Activity {
  Duration step;
  std::vector<LinkActivity> links;  // that carry something, ascending
  std::vector<RankActivity> ranks;  // that take part in something, ascending
};

/// `flow_begins`: when the bytes of each operation began to move (Prediction::flow_begins); empty: when it
/// was ready. Rates are nominal without a calibration, else achieved. `steps` > 0.
Activity activity(const Refit& refit, const Operations& operations, const Timeline& timeline,
                  const std::vector<Instant>& flow_begins, const Calibration* calibration, std::size_t steps);

}  // namespace isthmus::sim

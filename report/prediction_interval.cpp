#include "report/prediction_interval.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace isthmus::report {
namespace {

enum Group : std::size_t { efficiencies, latencies, collectives, calls, tensors, memory, group_count };

Group group_of(const ConstantField& field) {
  const std::string_view key = field.key;
  if (field.unit == "ratio") return efficiencies;
  if (key == "memory_bandwidth") return memory;
  if (field.unit == "B/s") return collectives;
  if (key.ends_with("_call_time")) return calls;
  return key.ends_with("_per_tensor") ? tensors : latencies;
}

}  // namespace

std::vector<Calibration> interval_calibrations(const Calibration& calibration) {
  std::vector<Calibration> ends(2 * std::size_t{group_count}, calibration);
  for (const ConstantField& field : calibration_fields()) {
    const Constant& constant = calibration.*field.member;
    const bool is_time = field.unit == "s";  // of all others, more is faster
    const std::size_t group = group_of(field);
    (ends[2 * group].*field.member).value = is_time ? constant.low : constant.high;
    (ends[2 * group + 1].*field.member).value = is_time ? constant.high : constant.low;
  }
  return ends;
}

PredictedInterval interval_of(double seconds, const std::vector<double>& ends) {
  double less = 0, more = 0;
  for (const double end : ends) {
    const double change = end - seconds;
    (change < 0 ? less : more) += change * change;
  }
  return {std::max(0.0, seconds - std::sqrt(less)), seconds + std::sqrt(more)};
}

}  // namespace isthmus::report

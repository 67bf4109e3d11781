#include "hw/fitted.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "model/quantity.hpp"

namespace isthmus::hw {
namespace {

class CurveReader {
 public:
  explicit CurveReader(const std::vector<CurvePoint>& curves) : curves_(curves) {}

  const CurvePoint* find(const std::string& path, std::uint32_t operations, Bytes bytes) const {
    for (const CurvePoint& point : curves_) {
      if (point.path == path && point.operations == operations && point.bytes == bytes) return &point;
    }
    return nullptr;
  }

  /// The point alone in its group with the most or the fewest bytes.
  const CurvePoint* alone(const std::string& path, bool largest) const {
    const CurvePoint* best = nullptr;
    for (const CurvePoint& point : curves_) {
      if (point.path != path || point.operations != 1) continue;
      const bool further =
          best != nullptr && (largest ? point.bytes > best->bytes : point.bytes < best->bytes);
      if (best == nullptr || further) best = &point;
    }
    return best;
  }

  /// By size: the largest group, where there is one of more than one operation.
  std::map<Bytes, const CurvePoint*> groups(const std::string& path) const {
    std::map<Bytes, const CurvePoint*> result;
    for (const CurvePoint& point : curves_) {
      if (point.path != path || point.operations < 2) continue;
      const CurvePoint*& best = result[point.bytes];
      if (best == nullptr || point.operations > best->operations) best = &point;
    }
    return result;
  }

  std::vector<double> rates(const std::string& path) const {
    std::vector<double> result;
    for (const CurvePoint& point : curves_) {
      if (point.path == path) result.push_back(point.bytes_per_second());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

 private:
  const std::vector<CurvePoint>& curves_;
};

Constant measured(double value, double low, double high, std::string text) {
  return {value, std::min(low, value), std::max(high, value), Provenance::metal, std::move(text)};
}

void fit_links(const CurveReader& curves, double nominal, const std::string& source, Calibration& result) {
  const CurvePoint* const largest = curves.alone("nccl", true);
  const CurvePoint* const smallest = curves.alone("nccl", false);
  if (largest == nullptr || smallest == nullptr) return;
  const double rate = largest->bytes_per_second();
  const CurvePoint* const both = curves.find("nccl-both-ways", 1, largest->bytes);
  const double low = both == nullptr ? rate : both->bytes_per_second();
  result.nvlink_efficiency =
      measured(std::min(1.0, rate / nominal), low / nominal, std::min(1.0, rate / nominal),
               fmt::format("one message of {}: {:.1f} of {:.1f} GB/s; low: both directions; {}",
                           to_string(largest->bytes), rate * 1e-9, nominal * 1e-9, source));
  result.nvlink_latency =
      measured(smallest->seconds, smallest->fastest, smallest->slowest,
               fmt::format("group of one message of {}; {}", to_string(smallest->bytes), source));
}

void fit_operations(const CurveReader& curves, const std::string& source, Calibration& result) {
  const CurvePoint* const largest = curves.alone("nccl", true);
  std::vector<double> enqueue, occupied;
  for (const auto& [bytes, group] : curves.groups("nccl")) {
    const CurvePoint* const one = curves.find("nccl", 1, bytes);
    if (one == nullptr || largest == nullptr) continue;
    enqueue.push_back(group->host_seconds / group->operations);
    const double each = (group->seconds - one->seconds) / (group->operations - 1);
    const double wire = static_cast<double>(bytes.value) / largest->bytes_per_second();
    // Where the wire takes most of the time, the difference is noise.
    if (wire < each / 2 || occupied.empty()) occupied.push_back(std::max(0.0, each - wire));
  }
  if (enqueue.empty()) return;
  const auto constant = [&source](const std::vector<double>& values, const char* text) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return measured(values.front(), *low, *high, fmt::format("{}; {}", text, source));
  };
  result.enqueue_time = constant(enqueue, "host time per message of the largest group, smallest messages");
  result.nvlink_operation_time =
      constant(occupied, "each further message of the largest group, less its time at the best rate");
}

void fit_network(const std::vector<CurvePoint>& curves, double nominal, const std::string& source,
                 Calibration& result) {
  const CurveReader reader(curves);
  const CurvePoint* const largest = reader.alone("mpi", true);
  const CurvePoint* const smallest = reader.alone("mpi", false);
  if (largest == nullptr || largest == smallest || largest->seconds <= smallest->seconds) return;
  const double rate =
      static_cast<double>((largest->bytes - smallest->bytes).value) / (largest->seconds - smallest->seconds);
  const double share = std::min(1.0, rate / nominal);
  result.nic_efficiency =
      measured(share, share, share,
               fmt::format("from {} to {}: {:.4f} of {:.4f} GB/s; {}", to_string(smallest->bytes),
                           to_string(largest->bytes), rate * 1e-9, nominal * 1e-9, source));
  std::vector<double> latency, occupied;
  for (const CurvePoint& point : curves) {
    if (point.path != "mpi") continue;
    const double wire = static_cast<double>(point.bytes.value) / (share * nominal);
    const CurvePoint* const one = reader.find("mpi", 1, point.bytes);
    if (point.operations == 1) latency.push_back(std::max(0.0, point.seconds - wire));
    if (point.operations == 1 || one == nullptr) continue;
    const double each = (point.seconds - one->seconds) / (point.operations - 1);
    occupied.push_back(std::max(0.0, each - wire));
  }
  const auto constant = [&source](const std::vector<double>& values, const char* text) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return measured(values.front(), *low, *high, fmt::format("{}; {}", text, source));
  };
  result.network_latency =
      constant(latency, "one small message, less its bytes at that rate; over all sizes");
  if (!occupied.empty()) {
    result.network_operation_time =
        constant(occupied, "each further message of a group, less its bytes at that rate; over all sizes");
  }
}

/// A value of a calibration file in its unit; what cannot be written exactly is rounded.
std::string value_text(double value, std::string_view unit) {
  if (unit == "ratio") return fmt::format("{:.6g}", value);
  if (unit == "s") return to_string(Duration{std::llround(value * 1e12)});
  if (unit == "B") return to_string(Bytes{std::llround(value)});
  return std::isinf(value) ? "unlimited" : to_string(Bandwidth{std::llround(value)});
}

std::string constant_text(std::string_view key, std::string_view unit, const Constant& constant,
                          std::string_view indent) {
  return fmt::format(
      "{0}{1}:\n{0}  value: {2}\n{0}  interval: [{3}, {4}]\n{0}  provenance: {5}\n{0}  source: >-\n"
      "{0}    {6}\n",
      indent, key, value_text(constant.value, unit), value_text(constant.low, unit),
      value_text(constant.high, unit), to_string(constant.provenance), constant.source);
}

}  // namespace

Calibration fitted(const std::vector<CurvePoint>& curves, const Calibration& base, Bandwidth nominal,
                   const std::string& source) {
  Calibration result = base;
  const CurveReader reader(curves);
  fit_links(reader, static_cast<double>(nominal.value), source, result);
  fit_operations(reader, source, result);
  fit_network(curves, static_cast<double>(nominal.value), source, result);
  const std::vector<double> copies = reader.rates("strided-copy");
  if (!copies.empty()) {
    result.memory_bandwidth = measured(2 * copies[copies.size() / 2], 2 * copies.front(), 2 * copies.back(),
                                       "strided copies, read and write together, median; " + source);
  }
  if (result.replay) fit_replay(curves, source, *result.replay);
  return result;
}

std::string calibration_text(const Calibration& calibration, const std::string& heading) {
  std::string text = fmt::format("# {}\n", heading);
  for (const ConstantField& field : calibration_fields())
    text += constant_text(field.key, field.unit, calibration.*field.member, "");
  if (!calibration.replay) return text;
  text += "replay:\n";
  for (const ReplayField& field : replay_fields())
    text += constant_text(field.key, field.unit, *calibration.replay.*field.member, "  ");
  return text;
}

}  // namespace isthmus::hw

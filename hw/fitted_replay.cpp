// The constants of replays from curves; hw/fitted.hpp has the equations.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hw/fitted.hpp"

namespace isthmus::hw {
namespace {

constexpr double mebibyte = 1 << 20;

double bytes_of(const CurvePoint& point) { return static_cast<double>(point.bytes.value); }

class ReplayFit {
 public:
  ReplayFit(const std::vector<CurvePoint>& curves, const std::string& source)
      : curves_(curves), source_(source) {
    for (const CurvePoint& point : curves) {
      if (point.path == "nccl" && point.operations == 1) alone_.push_back(&point);
    }
    std::sort(alone_.begin(), alone_.end(),
              [](const CurvePoint* a, const CurvePoint* b) { return a->bytes < b->bytes; });
  }

  void fit(ReplayConstants& constants) const {
    fit_copies(constants);
    fit_puts(constants);
    fit_kernels(constants);
    if (alone_.size() >= 2) fit_messages(constants);
  }

 private:
  const CurvePoint* find(const std::string& path) const {
    const auto found = std::find_if(curves_.begin(), curves_.end(),
                                    [&path](const CurvePoint& point) { return point.path == path; });
    return found == curves_.end() ? nullptr : &*found;
  }

  /// The largest group of more than one message of the size.
  const CurvePoint* group(Bytes bytes) const {
    const CurvePoint* best = nullptr;
    for (const CurvePoint& point : curves_) {
      if (point.path != "nccl" || point.bytes != bytes || point.operations < 2) continue;
      if (best == nullptr || point.operations > best->operations) best = &point;
    }
    return best;
  }

  /// The median, within the least and the greatest.
  void set(Constant& constant, std::vector<double> values, const std::string& what) const {
    if (values.empty()) return;
    std::sort(values.begin(), values.end());
    constant = {values[values.size() / 2], values.front(), values.back(), Provenance::metal,
                what + "; " + source_};
  }

  void fit_copies(ReplayConstants& constants) const {
    std::vector<double> whole, rows;
    for (const CurvePoint& point : curves_) {
      if (point.path != "strided-copy") continue;
      const double rate = point.bytes_per_second();
      if (point.row.value == 0) whole.push_back(2 * rate);
      if (point.row.value > 0 && point.row.value % 16 == 0) rows.push_back(rate);
    }
    set(constants.copy_bandwidth, whole, "copies in one piece by our kernel, read and written");
    set(constants.strided_bandwidth, rows, "strided copies in units of 16 bytes, median");
  }

  void fit_puts(ReplayConstants& constants) const {
    std::vector<double> rates;
    for (const CurvePoint& point : curves_)
      if (point.path == "put") rates.push_back(point.bytes_per_second());
    if (rates.empty()) return;
    const double best = *std::max_element(rates.begin(), rates.end());
    set(constants.put_bandwidth, {best}, "the best put");
  }

  void fit_kernels(ReplayConstants& constants) const {
    const CurvePoint *launch = find("launch"), *nothing = find("no-work");
    if (launch == nullptr || nothing == nullptr) return;
    set(constants.kernel_host_time, {launch->host_seconds}, "host time of one small kernel");
    set(constants.issue_latency, {nothing->fastest, nothing->seconds, nothing->slowest},
        "between events without work");
    set(constants.kernel_time, {std::max(0.0, launch->seconds - launch->host_seconds - nothing->seconds)},
        "one small kernel, less its host time and that of no work");
  }

  void fit_messages(ReplayConstants& constants) const {
    const CurvePoint &largest = *alone_.back(), &next = *alone_[alone_.size() - 2];
    const CurvePoint& smallest = *alone_.front();
    const double rate = (bytes_of(largest) - bytes_of(next)) / (largest.seconds - next.seconds);
    if (!(rate > 0)) return;
    set(constants.exchange_bandwidth, {rate}, "between the two largest messages alone");
    fit_both_ways(constants);
    const auto each = [&](const CurvePoint& one) -> std::optional<double> {
      const CurvePoint* const many = group(one.bytes);
      if (many == nullptr) return std::nullopt;
      return std::max(0.0, (many->seconds - one.seconds) / (many->operations - 1) - bytes_of(one) / rate);
    };
    const std::optional<double> small = each(smallest);
    if (!small) return;
    set(constants.message_time, {*small}, "each further message of the largest group of small ones");
    const double calls = group(smallest.bytes)->host_seconds / group(smallest.bytes)->operations;
    set(constants.message_host_time, {calls}, "host time per message of the largest group of small ones");
    set(constants.exchange_host_time, {std::max(0.0, smallest.host_seconds - calls)},
        "host time of a group of one small message, less that of the message");
    std::vector<double> more, ramps;
    for (const CurvePoint* one : alone_) {
      const bool chosen = bytes_of(*one) >= mebibyte && bytes_of(*one) <= 16 * mebibyte;
      if (const std::optional<double> time = each(*one); time && chosen)
        more.push_back(std::max(0.0, *time - *small));
    }
    set(constants.large_message_time, more, "the same of 1 to 16 MiB less that, median");
    const double first = smallest.seconds - bytes_of(smallest) / rate + constants.large_message_time.value;
    for (const CurvePoint* one : alone_) {
      const double bytes = bytes_of(*one);
      if (bytes < 4 * mebibyte || bytes > 256 * mebibyte) continue;
      ramps.push_back(std::max(0.0, (one->seconds - bytes / rate - first) * (1 + 16 * mebibyte / bytes)));
    }
    set(constants.ramp_time, ramps, "messages of 4 to 256 MiB alone, beyond their bytes, median");
  }

  void fit_both_ways(ReplayConstants& constants) const {
    const CurvePoint* best = nullptr;
    double value = 0, low = 1, high = 0;
    for (const CurvePoint& both : curves_) {
      if (both.path != "nccl-both-ways" || bytes_of(both) < 256 * mebibyte) continue;
      for (const CurvePoint& one : curves_) {
        if (one.path != "nccl" || one.operations != both.operations || one.bytes != both.bytes) continue;
        const double share = std::clamp(one.seconds / both.seconds, 0.5, 1.0);
        low = std::min(low, share);
        high = std::max(high, share);
        if (best == nullptr || both.operations > best->operations) best = &both, value = share;
      }
    }
    if (best == nullptr) return;
    constants.both_ways_share = {value, low, high, Provenance::metal,
                                 fmt::format("{} messages of {} bytes each way, against one way; {}",
                                             best->operations, best->bytes.value, source_)};
  }

  const std::vector<CurvePoint>& curves_;
  const std::string& source_;
  std::vector<const CurvePoint*> alone_;  // by size
};

}  // namespace

void fit_replay(const std::vector<CurvePoint>& curves, const std::string& source,
                ReplayConstants& constants) {
  ReplayFit(curves, source).fit(constants);
}

}  // namespace isthmus::hw

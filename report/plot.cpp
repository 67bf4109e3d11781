#include "report/plot.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/svg.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

constexpr std::string_view bulk_fill = "#2a6fb0", misc_fill = "#d9822b", other_fill = "#7a6fae";
constexpr std::string_view bound_stroke = "#b3261e", ink = "#222222", pale = "#cccccc";

/// 1, 2 or 5 times a power of ten: the least such step with at most `most` of them in `range`.
double tick_step(double range, double most) {
  const double raw = range / most;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw) return factor * power;
  }
  return 10 * power;
}

struct BarPlot {
  static constexpr double width = 720, left = 130, right = 90, top = 50, row = 30;
  double seconds = 1;  // at the right end
  double x(double time) const { return left + time / seconds * (width - left - right); }
};

void draw_axis(SvgDrawing& drawing, const BarPlot& plot, double bottom) {
  const double step = tick_step(plot.seconds, 8);
  for (int i = 0; i * step <= plot.seconds * 1.0001; ++i) {
    const double at = plot.x(i * step);
    drawing.line({at, BarPlot::top - 6}, {at, bottom}, pale, 0.5);
    drawing.text({at, bottom + 14}, fmt::format("{:g}", i * step), 10, SvgAnchor::middle);
  }
  drawing.text({plot.x(plot.seconds / 2), bottom + 30}, "predicted time (s)", 11, SvgAnchor::middle);
}

void draw_policy(SvgDrawing& drawing, const BarPlot& plot, const Comparison& comparison, const PolicyRow& row,
                 double y) {
  drawing.text({BarPlot::left - 8, y + 13}, row.policy, 11, SvgAnchor::end);
  if (!row.predicted()) {
    drawing.text({BarPlot::left + 4, y + 13}, row.refused.empty() ? "no prediction" : "refuses the layout",
                 10);
    return;
  }
  double from = 0;
  const auto part = [&](double seconds, std::string_view fill) {
    drawing.bar({plot.x(from), y + 2}, plot.x(seconds) - plot.x(0), 16, fill);
    from += seconds;
  };
  part(row.bulk_seconds, bulk_fill);
  part(row.misc_seconds, misc_fill);
  part(row.other_seconds, other_fill);
  double end = row.seconds;
  for (const Published& each : comparison.published) {
    if (each.policy != row.policy || each.blind()) continue;
    const double low = plot.x(each.seconds_low), high = plot.x(each.seconds_high);
    drawing.line({low, y + 21}, {high, y + 21}, ink, 1.2);
    drawing.line({low, y}, {low, y + 21}, ink, 1.2);
    drawing.line({high, y}, {high, y + 21}, ink, 1.2);
    end = std::max(end, each.seconds_high);
  }
  drawing.text({plot.x(end) + 5, y + 14}, time_text(row.seconds), 10);
}

void draw_bar_key(SvgDrawing& drawing, const BarPlot& plot, double bound, double y) {
  double x = BarPlot::left;
  for (const auto& [name, fill] :
       {std::pair{"bulk", bulk_fill}, std::pair{"misc", misc_fill}, std::pair{"other", other_fill}}) {
    drawing.bar({x, y - 9}, 10, 10, fill);
    drawing.text({x + 14, y}, name, 10);
    x += 60;
  }
  drawing.line({x, y - 4}, {x + 14, y - 4}, bound_stroke, 1.5, "5 3");
  drawing.text({x + 18, y}, fmt::format("lower bound, {}", time_text(bound)), 10);
  drawing.line({x + 160, y}, {x + 174, y}, ink, 1.2);
  drawing.line({x + 160, y - 8}, {x + 160, y}, ink, 1.2);
  drawing.line({x + 174, y - 8}, {x + 174, y}, ink, 1.2);
  drawing.text({x + 180, y}, "published", 10);
  drawing.line({plot.x(bound), BarPlot::top - 6}, {plot.x(bound), y - 50}, bound_stroke, 1.5, "5 3");
}

}  // namespace

std::string plot(const Comparison& comparison) {
  const double bound = seconds(comparison.bound.time);
  double longest = bound;
  std::string told;
  for (const PolicyRow& row : comparison.policies) {
    if (!row.predicted()) continue;
    longest = std::max(longest, row.seconds);
    told += fmt::format("{} {}, ", row.policy, time_text(row.seconds));
    for (const Published& each : comparison.published) {
      if (each.policy == row.policy) longest = std::max(longest, each.seconds_high);
    }
  }
  const BarPlot plot{longest > 0 ? longest : 1};
  const double bottom = BarPlot::top + BarPlot::row * static_cast<double>(comparison.policies.size());
  SvgDrawing drawing(BarPlot::width, bottom + 64,
                     fmt::format("{}: policies against the lower bound", comparison.scenario),
                     fmt::format("{}lower bound {}", told, time_text(bound)));
  drawing.text({16, 22},
               fmt::format("{}, calibration {}, {}", comparison.scenario, comparison.calibration,
                           size_text(comparison.payload)),
               13);
  draw_axis(drawing, plot, bottom);
  double y = BarPlot::top;
  for (const PolicyRow& row : comparison.policies) {
    draw_policy(drawing, plot, comparison, row, y);
    y += BarPlot::row;
  }
  draw_bar_key(drawing, plot, bound, bottom + 50);
  return drawing.finish();
}

}  // namespace isthmus::report

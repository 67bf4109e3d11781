#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/plot.hpp"
#include "report/svg.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

constexpr std::string_view point_stroke = "#2a6fb0", frame_stroke = "#222222", grid_stroke = "#dddddd";

/// Both axes alike: the diagonal is where prediction and report agree.
struct LogPlot {
  static constexpr double left = 64, top = 44, side = 560;
  double low = 0.1, high = 10;  // seconds, powers of ten
  double along(double seconds) const {
    return (std::log10(seconds) - std::log10(low)) / (std::log10(high) - std::log10(low)) * side;
  }
  SvgPoint at(double published, double predicted) const {
    return {left + along(std::clamp(published, low, high)),
            top + side - along(std::clamp(predicted, low, high))};
  }
};

bool plotted(const ScoreRow& row) {
  return !row.published.blind() && row.published.seconds_low > 0 && row.prediction.predicted() &&
         row.prediction.seconds > 0;
}

double middle(const Published& row) { return std::sqrt(row.seconds_low * row.seconds_high); }

LogPlot plot_of(const Scoreboard& scoreboard) {
  double least = 1, most = 1;
  for (const ScoreRow& row : scoreboard.rows) {
    if (!plotted(row)) continue;
    least = std::min({least, row.published.seconds_low, row.prediction.seconds});
    most = std::max({most, row.published.seconds_high, row.prediction.seconds});
  }
  return {std::pow(10, std::floor(std::log10(least))),
          std::pow(10, std::max(1.0, std::ceil(std::log10(most))))};
}

void draw_frame(SvgDrawing& drawing, const LogPlot& plot) {
  constexpr double bottom = LogPlot::top + LogPlot::side, right = LogPlot::left + LogPlot::side;
  for (double decade = plot.low; decade <= plot.high * 1.0001; decade *= 10) {
    const SvgPoint at = plot.at(decade, decade);
    drawing.line({at.x, LogPlot::top}, {at.x, bottom}, grid_stroke);
    drawing.line({LogPlot::left, at.y}, {right, at.y}, grid_stroke);
    drawing.text({at.x, bottom + 15}, fmt::format("{:g}", decade), 10, SvgAnchor::middle);
    drawing.text({LogPlot::left - 6, at.y + 4}, fmt::format("{:g}", decade), 10, SvgAnchor::end);
  }
  for (const double off : {0.25, 0.1}) {
    const std::string_view dashes = off == 0.1 ? "6 3" : "2 3";
    drawing.line(plot.at(plot.low, plot.low * (1 + off)), plot.at(plot.high / (1 + off), plot.high),
                 "#888888", 0.8, dashes);
    drawing.line(plot.at(plot.low / (1 - off), plot.low), plot.at(plot.high, plot.high * (1 - off)),
                 "#888888", 0.8, dashes);
  }
  drawing.line(plot.at(plot.low, plot.low), plot.at(plot.high, plot.high), frame_stroke, 0.8);
  drawing.line({LogPlot::left, bottom}, {right, bottom}, frame_stroke);
  drawing.line({LogPlot::left, LogPlot::top}, {LogPlot::left, bottom}, frame_stroke);
  drawing.text({(LogPlot::left + right) / 2, bottom + 34}, "published time (s)", 11, SvgAnchor::middle);
  drawing.upright({18, (LogPlot::top + bottom) / 2}, "predicted time (s)");
  drawing.text({LogPlot::left, bottom + 54},
               "filled: counted; open: not counted; lines: equal, 10 % and 25 % off; bars: published range, "
               "predicted interval",
               9);
}

void draw_row(SvgDrawing& drawing, const LogPlot& plot, const ScoreRow& row) {
  const Published& published = row.published;
  const double seconds = row.prediction.seconds;
  const SvgPoint centre = plot.at(middle(published), seconds);
  drawing.line(plot.at(published.seconds_low, seconds), plot.at(published.seconds_high, seconds),
               point_stroke);
  if (row.interval) {
    drawing.line(plot.at(middle(published), row.interval->low),
                 plot.at(middle(published), row.interval->high), point_stroke);
  }
  drawing.dot(centre, 3, point_stroke, published.counted ? point_stroke : "white",
              fmt::format("{}, {}: published {}, predicted {}", published.id, row.prediction.policy,
                          published_text(published), time_text(seconds)));
}

/// Names of the rows that are off most; others can be pointed at.
void draw_names(SvgDrawing& drawing, const LogPlot& plot, const Scoreboard& scoreboard) {
  for (const ScoreRow& row : scoreboard.rows) {
    if (!plotted(row) || !row.published.counted || std::abs(row.error().value_or(0)) <= 0.1) continue;
    const SvgPoint at = plot.at(middle(row.published), row.prediction.seconds);
    drawing.text({at.x + 5, at.y - 4}, row.published.id, 8);
  }
}

}  // namespace

std::string plot(const Scoreboard& scoreboard) {
  const LogPlot plot = plot_of(scoreboard);
  const auto rows = std::count_if(scoreboard.rows.begin(), scoreboard.rows.end(), plotted);
  const ScoreSummary summary = summarise(scoreboard, true);
  SvgDrawing drawing(
      LogPlot::left + LogPlot::side + 24, LogPlot::top + LogPlot::side + 64,
      "Published refits: predicted against published time",
      fmt::format("{} refits on logarithmic axes; the table of isthmus scoreboard has each", rows));
  drawing.text({16, 22},
               fmt::format("{} published refits; {} counted, median error {:.1f} %", rows, summary.rows,
                           100 * summary.median),
               13);
  draw_frame(drawing, plot);
  for (const ScoreRow& row : scoreboard.rows) {
    if (plotted(row)) draw_row(drawing, plot, row);
  }
  draw_names(drawing, plot, scoreboard);
  return drawing.finish();
}

}  // namespace isthmus::report

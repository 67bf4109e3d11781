#include "report/observation.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/json_file.hpp"
#include "model/text.hpp"
#include "report/observed_events.hpp"
#include "report/tensor_names.hpp"

namespace isthmus::report {
namespace {

constexpr const char* table_form = "a table with start_U, end_U and at least one of stage and tensor";
constexpr std::size_t most_bytes = std::size_t{1} << 30;

struct TimeUnit {
  std::string_view name;
  double picoseconds;
};
constexpr std::array<TimeUnit, 4> time_units{{{"s", 1e12}, {"ms", 1e9}, {"us", 1e6}, {"ns", 1e3}}};

/// Reads a plain table line by line.
class TableReader {
 public:
  TableReader(std::string_view text, std::string file, const Refit& refit)
      : rest_(text), file_(std::move(file)), refit_(refit), names_(refit) {}

  Observation read() {
    read_header();
    Observation observation;
    for (std::string_view line = next_line(); !at_end_; line = next_line()) {
      if (!line.empty()) observation.spans.push_back(read_row(split(line)));
    }
    return observation;
  }

 private:
  std::string_view next_line() {
    at_end_ = rest_.empty();
    const std::size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++line_;
    return line;
  }

  std::vector<std::string_view> split(std::string_view line) const {
    std::vector<std::string_view> cells;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find(separator_, begin), line.size());
      std::string_view cell = line.substr(begin, end - begin);
      while (cell.starts_with(' ')) cell.remove_prefix(1);
      while (cell.ends_with(' ')) cell.remove_suffix(1);
      cells.push_back(cell);
      begin = end + 1;
    }
    return cells;
  }

  void read_header() {
    const std::string_view line = next_line();
    if (line.empty()) refuse("", "no column names", table_form);
    if (line.find('\t') != std::string_view::npos) separator_ = '\t';
    for (const std::string_view name : split(line)) {
      const bool known = name == "stage" || name == "tensor" || name == "lane" || time_column(name);
      if (!known || std::find(columns_.begin(), columns_.end(), name) != columns_.end())
        refuse(name, "a column of this name",
               "stage, tensor, lane, start_U, end_U with U = s, ms, us or ns, each once");
      columns_.emplace_back(name);
    }
    const auto has = [&](std::string_view prefix) {
      return std::any_of(columns_.begin(), columns_.end(),
                         [&](const std::string& each) { return each.starts_with(prefix); });
    };
    if (!has("start_") || !has("end_") || (!has("stage") && !has("tensor")))
      refuse(line, "these columns", table_form);
  }

  static const TimeUnit* time_column(std::string_view name) {
    for (const TimeUnit& unit : time_units) {
      if (name == fmt::format("start_{}", unit.name) || name == fmt::format("end_{}", unit.name))
        return &unit;
    }
    return nullptr;
  }

  ObservedSpan read_row(const std::vector<std::string_view>& cells) {
    if (cells.size() != columns_.size())
      refuse("", fmt::format("{} values", cells.size()),
             fmt::format("{}, as in the first line", columns_.size()));
    ObservedSpan span;
    for (std::size_t c = 0; c < cells.size(); ++c) {
      const std::string& column = columns_[c];
      if (column == "stage") {
        span.stage = stage(cells[c]);
      } else if (column == "tensor") {
        span.tensor = names_.find(cells[c]);
        if (!span.tensor) refuse(column, fmt::format("'{}'", printable(cells[c])), "a tensor of the refit");
      } else if (column == "lane") {
        if (cells[c].empty()) refuse(column, "nothing", "a lane of the plan");
        span.lane = cells[c];
      } else {
        (column.starts_with("start_") ? span.begin : span.end) = time(column, cells[c]);
      }
    }
    if (span.end < span.begin) refuse("", "an end before the start", "start <= end");
    return span;
  }

  int stage(std::string_view cell) {
    int value = -1;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || value < 0 || value >= refit_.stages)
      refuse("stage", fmt::format("'{}'", printable(cell)), fmt::format("0 to {}", refit_.stages - 1));
    return value;
  }

  Instant time(const std::string& column, std::string_view cell) {
    double value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || !std::isfinite(value))
      refuse(column, fmt::format("'{}'", printable(cell)), "a number");
    // Seconds since 1970 do not fit as picoseconds.
    const double picoseconds = value * time_column(column)->picoseconds;
    if (!first_) first_ = picoseconds;
    if (!(std::abs(picoseconds - *first_) < 4e18))
      refuse(column, fmt::format("'{}'", printable(cell)), "times within a month of each other");
    return {std::llround(picoseconds - *first_)};
  }

  [[noreturn]] void refuse(std::string_view key, const std::string& found, const std::string& allowed) const {
    throw InputError({file_, line_, printable(key)}, found, allowed);
  }

  std::string_view rest_;
  std::string file_;
  const Refit& refit_;
  TensorNames names_;
  std::vector<std::string> columns_;
  char separator_ = ',';
  int line_ = 0;
  bool at_end_ = false;
  std::optional<double> first_;  // of all times, in picoseconds
};

/// Times from the earliest on.
void rebase(Observation& observation) {
  Instant first = observation.spans.front().begin;
  for (const ObservedSpan& span : observation.spans) first = std::min(first, span.begin);
  for (ObservedSpan& span : observation.spans) {
    span.begin = Instant{} + (span.begin - first);
    span.end = Instant{} + (span.end - first);
  }
}

}  // namespace

std::string_view to_string(ObservedForm form) {
  switch (form) {
    case ObservedForm::table: return "table";
    case ObservedForm::trace: return "trace";
    case ObservedForm::profile: return "profile";
    case ObservedForm::nsys: return "nsys";
  }
  return "";
}

Observation read_observation(const std::filesystem::path& file, const Refit& refit) {
  const std::string text = read_text(file, most_bytes);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (text.starts_with("\x1f\x8b"))
    throw InputError({file.string(), 0, ""}, "compressed data", "the file that gunzip makes of it");
  Observation observation;
  if (text.starts_with("SQLite format 3")) {
    observation = read_nsys(file, refit);
  } else if (first != std::string::npos && (text[first] == '{' || text[first] == '[')) {
    observation = read_events(text, file.string(), refit);
  } else {
    observation = TableReader(text, file.string(), refit).read();
  }
  if (observation.spans.empty()) {
    throw InputError(
        {file.string(), 0, ""},
        fmt::format("nothing of this refit ({} spans name none of its tensors)", observation.ignored),
        fmt::format("spans that name its tensors, such as {}",
                    refit.tensors.empty() ? "w" : refit.tensors.front().tensor.name));
  }
  rebase(observation);
  return observation;
}

}  // namespace isthmus::report

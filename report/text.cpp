#include "report/text.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace isthmus::report {

std::string time_text(double seconds) {
  if (seconds >= 0.1) return fmt::format("{:.3f} s", seconds);
  return seconds >= 1e-4 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.3f} us", seconds * 1e6);
}

std::string size_text(Bytes bytes) {
  const double b = static_cast<double>(bytes.value);
  if (b >= 1e9) return fmt::format("{:.2f} GB", b * 1e-9);
  return b >= 1e6 ? fmt::format("{:.2f} MB", b * 1e-6) : fmt::format("{} B", bytes.value);
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string signed_percent(std::optional<double> share) {
  return share ? fmt::format("{:+.0f} %", 100 * *share) : "-";
}

std::string published_text(const Published& row) {
  if (row.blind()) return "-";
  if (row.seconds_low == row.seconds_high) return fmt::format("{:g} s", row.seconds_low);
  return fmt::format("{:g}-{:g} s", row.seconds_low, row.seconds_high);
}

std::string columns_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> width;
  for (const auto& row : rows) {
    width.resize(std::max(width.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool left = c == 0 || c + 1 == width.size();
      line += left ? fmt::format("{:<{}}  ", row[c], width[c]) : fmt::format("{:>{}}  ", row[c], width[c]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace isthmus::report

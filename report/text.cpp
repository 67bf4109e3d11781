#include "report/text.hpp"

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

}  // namespace isthmus::report

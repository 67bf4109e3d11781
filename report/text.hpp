#pragma once
// Quantities as tables show them: three decimals and the unit that keeps the number readable.
// For people only; JSON carries seconds and bytes as they are.
// Examples: "0.939 s", "20.112 ms", "337.06 GB", "512 B".

#include <optional>
#include <string>
#include <vector>

#include "model/published.hpp"
#include "model/units.hpp"

namespace isthmus::report {

std::string time_text(double seconds);
std::string size_text(Bytes bytes);
/// "8.3 %".
std::string percent(double share);
/// "+8 %", or "-" of nothing.
std::string signed_percent(std::optional<double> share);
/// "0.74-1 s", "14.9 s", or "-" of a blind row.
std::string published_text(const Published& row);

/// Columns as wide as their widest cell; the first and the last are left-aligned, the others right.
std::string columns_text(const std::vector<std::vector<std::string>>& rows);

}  // namespace isthmus::report

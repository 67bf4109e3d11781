#pragma once
// Quantities as tables show them: three decimals and the unit that keeps the number readable.
// For people only; JSON carries seconds and bytes as they are.
// Examples: "0.939 s", "20.112 ms", "337.06 GB", "512 B".

#include <string>

#include "model/units.hpp"

namespace isthmus::report {

std::string time_text(double seconds);
std::string size_text(Bytes bytes);

}  // namespace isthmus::report

#pragma once
// Spans out of what profilers write: trace-event JSON and the SQLite export of Nsight Systems (tables
// NVTX_EVENTS and StringIds, times in nanoseconds). Of trace events only complete ones ("ph": "X") count,
// with `ts` and `dur` in microseconds; whole files are parsed, but only events that matter are kept.
// Invariant: times are the file's own, not rebased. Raises InputError for what is no such file.

#include <filesystem>
#include <string>
#include <string_view>

#include "report/observation.hpp"

namespace isthmus::report {

Observation read_events(std::string_view text, const std::string& file, const Refit& refit);
Observation read_nsys(const std::filesystem::path& file, const Refit& refit);

}  // namespace isthmus::report

#pragma once
// What a user's own run did, read from a file: when each tensor, on each lane where the file tells them
// apart, began and ended. The form shows in the content:
//   table    a header line and rows, separated by commas or tabs: `stage`, `tensor`, `lane` (a stage or a
//            tensor is needed), `start_U` and `end_U` with U one of s, ms, us, ns
//   trace    trace-event JSON of `isthmus replay --trace`: events name the operation
//   profile  trace-event JSON of others (Kineto, the profiler of PyTorch): complete events with a tensor's
//            name in theirs
//   nsys     the SQLite export of Nsight Systems: NVTX ranges, likewise
// A stacked tensor also has the names of its experts. What names no tensor is counted, not kept.
// Invariant: there is at least one span; begin <= end, and the earliest begin is 0.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/refit.hpp"

namespace isthmus::report {

enum class ObservedForm : std::uint8_t { table, trace, profile, nsys };
std::string_view to_string(ObservedForm form);

struct ObservedSpan {
  std::optional<int> stage{};  // all spans of a file have it, or none; and so on
  std::optional<TensorId> tensor{};
  std::string lane{};                        // empty: not told
  std::optional<std::uint32_t> operation{};  // trace: of the plan
  Instant begin, end;
};

struct Observation {
  ObservedForm form = ObservedForm::table;
  std::string policy;          // trace: the one that ran
  std::size_t operations = 0;  // trace: of its plan
  std::size_t ignored = 0;     // events and ranges that name no tensor
  std::vector<ObservedSpan> spans;
};

/// Raises InputError, with the line where there are any, for a file that is none of these, names an unknown
/// tensor or stage, or holds nothing of the refit.
Observation read_observation(const std::filesystem::path& file, const Refit& refit);

}  // namespace isthmus::report

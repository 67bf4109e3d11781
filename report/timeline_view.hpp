#pragma once
// What views of a timeline share (report/trace.hpp, report/page_data.hpp): which operations they show where
// not all of them fit, how far an operation reaches, and what it is called.
// Rule: the operations of the critical path are kept first, then the longest, then the first.
// Invariant: `kept` is ascending and has min(limit, all) operations.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/timeline.hpp"

namespace isthmus::report {

struct KeptOperations {
  std::vector<std::uint32_t> path;  // critical, from first to last, kept or not
  std::vector<std::uint32_t> kept;
  std::vector<char> is_kept, is_critical;  // by operation
  Bytes dropped_bytes;
};

KeptOperations keep_operations(const Operations& operations, const Timeline& timeline, std::size_t limit);

/// Whether any rank that takes part sits on another GPU (in another NVLink domain) than the source.
bool leaves_gpu(const Refit& refit, const Operations& operations, const Operation& operation);
bool leaves_domain(const Refit& refit, const Operations& operations, const Operation& operation);

/// "send 3 to 17", "broadcast of 8 from rank 0", "pack on rank 2".
std::string operation_name(const Operations& operations, const Operation& operation);

}  // namespace isthmus::report

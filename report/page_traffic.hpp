#pragma once
// Bytes between ranks as a matrix whose rows and columns are ranks, or whole hosts where ranks are too many:
// as few consecutive hosts to a row as fit. What stays on its rank does not count.
// Invariant: the sum of all cells is the bytes that arrive at other ranks, to the byte; a broadcast counts
// its region once for each receiver, an all-gather each member's share once for each other member.

#include <cstdint>
#include <string>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"

namespace isthmus::report {

struct TrafficMatrix {
  std::string unit;                 // "rank", "host", "4 hosts"
  std::vector<std::string> names;   // of rows and columns
  std::vector<std::int64_t> bytes;  // row after row: from, to
  std::size_t size() const { return names.size(); }
};

TrafficMatrix traffic_matrix(const Refit& refit, const Operations& operations, std::size_t most_rows);

}  // namespace isthmus::report

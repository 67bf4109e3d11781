#pragma once
// The assignment problem: rows get columns, each a column of its own, so that the costs add up to the least
// possible. Successive shortest augmenting paths with potentials (Kuhn, Munkres; Jonker and Volgenant),
// O(rows^2 x columns).
// Invariant: equal costs give equal answers; sums stay within 62 bits, or the answer means nothing.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace isthmus {

/// The column of each row. Requires rows of equal length, and no more rows than columns.
std::vector<std::size_t> least_cost_assignment(const std::vector<std::vector<std::int64_t>>& cost);

}  // namespace isthmus

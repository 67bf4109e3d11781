#include "model/assignment.hpp"

#include <limits>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

constexpr std::int64_t out_of_reach = std::numeric_limits<std::int64_t>::max() / 2;

/// Rows and columns count from 1; column 0 stands for the row that is being placed.
class AssignmentSearch {
 public:
  AssignmentSearch(const std::vector<std::vector<std::int64_t>>& cost, std::size_t columns)
      : cost_(cost),
        of_row_(cost.size() + 1),
        of_column_(columns + 1),
        row_at_(columns + 1),
        before_(columns + 1) {}

  void place(std::size_t row) {
    std::vector<std::int64_t> least(row_at_.size(), out_of_reach);
    std::vector<char> seen(row_at_.size());
    std::size_t column = 0;
    row_at_[0] = row;
    do {
      column = step(column, least, seen);
    } while (row_at_[column] != 0);
    for (; column != 0; column = before_[column]) row_at_[column] = row_at_[before_[column]];
  }

  std::vector<std::size_t> columns() const {
    std::vector<std::size_t> columns(cost_.size());
    for (std::size_t c = 1; c < row_at_.size(); ++c)
      if (row_at_[c] != 0) columns[row_at_[c] - 1] = c - 1;
    return columns;
  }

 private:
  /// Goes on to the nearest column that was not seen, with all prices moved so that its way costs nothing.
  std::size_t step(std::size_t column, std::vector<std::int64_t>& least, std::vector<char>& seen) {
    seen[column] = 1;
    const std::size_t row = row_at_[column];
    std::size_t nearest = 0;
    std::int64_t distance = out_of_reach;
    for (std::size_t c = 1; c < row_at_.size(); ++c) {
      if (seen[c] != 0) continue;
      const std::int64_t way = cost_[row - 1][c - 1] - of_row_[row] - of_column_[c];
      if (way < least[c]) {
        least[c] = way;
        before_[c] = column;
      }
      if (least[c] < distance) {
        distance = least[c];
        nearest = c;
      }
    }
    for (std::size_t c = 0; c < row_at_.size(); ++c) {
      if (seen[c] != 0) {
        of_row_[row_at_[c]] += distance;
        of_column_[c] -= distance;
      } else {
        least[c] -= distance;
      }
    }
    return nearest;
  }

  const std::vector<std::vector<std::int64_t>>& cost_;
  std::vector<std::int64_t> of_row_, of_column_;  // prices
  std::vector<std::size_t> row_at_;               // by column; 0: none
  std::vector<std::size_t> before_;               // on the way to a column
};

}  // namespace

std::vector<std::size_t> least_cost_assignment(const std::vector<std::vector<std::int64_t>>& cost) {
  if (cost.empty()) return {};
  ISTHMUS_ASSERT(cost.size() <= cost.front().size(), "{} rows, {} columns", cost.size(), cost.front().size());
  AssignmentSearch search(cost, cost.front().size());
  for (std::size_t row = 1; row <= cost.size(); ++row) search.place(row);
  return search.columns();
}

}  // namespace isthmus

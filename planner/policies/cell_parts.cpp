#include "planner/policies/cell_parts.hpp"

#include <algorithm>

namespace isthmus {

std::vector<Region> split(const Region& box, std::int64_t parts) {
  std::vector<Region> result;
  split_into(box, parts, result);
  return result;
}

void split_into(const Region& box, std::int64_t parts, std::vector<Region>& result) {
  result.clear();
  if (parts == 1 && !box.empty()) {
    result.push_back(box);
    return;
  }
  constexpr std::int64_t fine = 16;
  std::size_t along = 0;
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    if (box.end[d] - box.begin[d] > box.end[along] - box.begin[along]) along = d;
  }
  for (std::size_t d = box.dimensions; d-- > 0;) {
    const std::int64_t extent = box.end[d] - box.begin[d];
    if (extent % parts == 0 || (extent >= fine * parts && d + 1 < box.dimensions)) along = d;
  }
  const std::int64_t extent = box.end[along] - box.begin[along];
  parts = std::min(parts, extent);
  const auto cut = [&](std::int64_t n) {
    return box.begin[along] + static_cast<std::int64_t>(Int128{extent} * n / parts);
  };
  for (std::int64_t i = 0; i < parts; ++i) {
    Region part = box;
    part.begin[along] = cut(i);
    part.end[along] = cut(i + 1);
    result.push_back(part);
  }
}

std::int64_t shares_of(Bytes bytes, std::size_t receivers) {
  const auto most = static_cast<std::int64_t>(receivers);
  return std::clamp<std::int64_t>(bytes.value / smallest_part.value, 1, most);
}

std::int64_t parts_of(Bytes bytes, std::size_t receivers, Bytes unit) {
  const std::int64_t shares = shares_of(bytes, receivers);
  const std::int64_t share = bytes.value / shares;
  return shares * std::max<std::int64_t>(1, (2 * share + unit.value - 1) / unit.value);
}

}  // namespace isthmus

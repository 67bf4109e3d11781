#include "planner/check_boxes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

/// The dimension in which most boxes begin elsewhere than the first one: the sweep meets the fewest boxes
/// there.
std::size_t sweep_dimension(const std::vector<StepBox>& boxes) {
  const Region& first = *boxes.front().region;
  std::array<std::size_t, max_dimensions> different{};
  for (const StepBox& box : boxes) {
    for (std::size_t d = 0; d < first.dimensions; ++d) different[d] += box.region->begin[d] != first.begin[d];
  }
  const auto most = std::max_element(different.begin(), different.end());
  return to_size(most - different.begin());
}

bool meet(const Region& a, const Region& b) {
  for (std::size_t d = 0; d < a.dimensions; ++d) {
    if (a.begin[d] >= b.end[d] || b.begin[d] >= a.end[d]) return false;
  }
  return true;
}

}  // namespace

std::optional<std::pair<StepBox, StepBox>> first_overlap(std::vector<StepBox>& boxes) {
  if (boxes.size() < 2) return std::nullopt;
  const std::size_t d = sweep_dimension(boxes);
  std::sort(boxes.begin(), boxes.end(), [d](const StepBox& a, const StepBox& b) {
    if (a.region->begin[d] != b.region->begin[d]) return a.region->begin[d] < b.region->begin[d];
    return a.step < b.step;
  });
  for (std::size_t i = 0; i + 1 < boxes.size(); ++i) {
    const Region& region = *boxes[i].region;
    for (std::size_t j = i + 1; j < boxes.size() && boxes[j].region->begin[d] < region.end[d]; ++j) {
      if (meet(region, *boxes[j].region)) return std::pair{boxes[i], boxes[j]};
    }
  }
  return std::nullopt;
}

bool covers(const Region& box, const std::vector<Region>& parts) {
  std::int64_t volume = 0;
  for (const Region& part : parts) {
    if (part.contains(box)) return true;
    volume += part.volume();
  }
  if (volume < box.volume()) return false;
  std::vector<StepBox> boxes;
  boxes.reserve(parts.size());
  for (const Region& part : parts) boxes.push_back({&part, 0});
  if (!first_overlap(boxes))
    return true;  // disjoint parts inside the box: the sum decides, and it is not larger
  std::vector<Region> distinct = parts;  // replicas bring the same part several times
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return covered(box, distinct);
}

std::vector<std::int64_t> first_element(const Region& box) {
  return {box.begin.begin(), box.begin.begin() + static_cast<std::ptrdiff_t>(box.dimensions)};
}

std::vector<std::int64_t> first_missing(const Region& box, const std::vector<Region>& parts) {
  std::vector<Region> open{box};
  for (const Region& part : parts) {
    std::vector<Region> still_open;
    for (const Region& region : open) {
      const std::vector<Region> rest = subtract(region, part);
      still_open.insert(still_open.end(), rest.begin(), rest.end());
    }
    open = std::move(still_open);
  }
  ISTHMUS_ASSERT(!open.empty(), "{} is covered by its {} parts", to_string(box), parts.size());
  return first_element(*std::min_element(open.begin(), open.end()));
}

}  // namespace isthmus

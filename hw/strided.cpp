#include "hw/strided.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace isthmus::hw {
namespace {

using OuterStrides = std::array<std::int64_t, max_dimensions - 1>;

OuterStrides contiguous_strides(const Move& move) {
  OuterStrides strides{};
  std::int64_t step = move.run;
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = step;
    step *= move.loops[d].count;
  }
  return strides;
}

void cut_run(const Move& move, std::int64_t limit, std::vector<Move>& parts) {
  for (std::int64_t done = 0; done < move.run; done += limit) {
    Move part = move;
    part.run = std::min(limit, move.run - done);
    part.source += done;
    part.target += done;
    parts.push_back(part);
  }
}

}  // namespace

void cut(const Move& move, std::int64_t limit, std::vector<Move>& parts) {
  if (move.bytes() <= limit) {
    parts.push_back(move);
    return;
  }
  const auto outermost = std::find_if(move.loops.begin(), move.loops.end(),
                                      [](const Loop& candidate) { return candidate.count > 1; });
  if (outermost == move.loops.end()) return cut_run(move, limit, parts);
  const auto d = static_cast<std::size_t>(outermost - move.loops.begin());
  const Loop loop = move.loops[d];
  const std::int64_t step = std::max<std::int64_t>(1, limit / (move.bytes() / loop.count));
  for (std::int64_t done = 0; done < loop.count; done += step) {
    Move part = move;
    part.source += done * loop.source_stride;
    part.target += done * loop.target_stride;
    part.loops[d].count = std::min(step, loop.count - done);
    cut(part, limit, parts);
  }
}

Move packed(const Move& move, std::int64_t target) {
  const OuterStrides strides = contiguous_strides(move);
  Move result = move;
  result.target = target;
  for (std::size_t d = 0; d < strides.size(); ++d) result.loops[d].target_stride = strides[d];
  return result;
}

Move unpacked(const Move& move, std::int64_t source) {
  const OuterStrides strides = contiguous_strides(move);
  Move result = move;
  result.source = source;
  for (std::size_t d = 0; d < strides.size(); ++d) result.loops[d].source_stride = strides[d];
  return result;
}

Move onward(const Move& first, const Move& second) {
  Move result = second;
  result.source = first.target;
  for (std::size_t d = 0; d < result.loops.size(); ++d)
    result.loops[d].source_stride = first.loops[d].target_stride;
  return result;
}

}  // namespace isthmus::hw

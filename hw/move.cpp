#include "hw/move.hpp"

#include <cstring>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

/// Bytes from one index to the next, by dimension of a row-major box.
std::array<std::int64_t, max_dimensions> strides(const Region& box, Bytes element) {
  std::array<std::int64_t, max_dimensions> result{};
  std::int64_t stride = element.value;
  for (std::size_t d = box.dimensions; d-- > 0;) {
    result[d] = stride;
    stride *= box.end[d] - box.begin[d];
  }
  return result;
}

using Strides = std::array<std::int64_t, max_dimensions>;

std::int64_t first_byte(const Place& place, const Region& region, const Strides& stride) {
  std::int64_t offset = place.offset;
  for (std::size_t d = 0; d < region.dimensions; ++d)
    offset += (region.begin[d] - place.box.begin[d]) * stride[d];
  return offset;
}

bool contiguous(const Move& move, std::int64_t Loop::*stride) {
  std::int64_t size = move.run;
  for (std::size_t l = move.loops.size(); l-- > 0;) {
    const Loop& loop = move.loops[l];
    if (loop.count == 1) continue;
    if (loop.*stride != size) return false;
    size *= loop.count;
  }
  return true;
}

/// Calls copy(source offset, target offset) for every run.
template <class Copy>
void for_each_run(const Move& move, Copy copy) {
  const auto& [outer, middle, inner] = move.loops;
  for (std::int64_t i = 0; i < outer.count; ++i) {
    for (std::int64_t j = 0; j < middle.count; ++j) {
      std::int64_t source = move.source + i * outer.source_stride + j * middle.source_stride;
      std::int64_t target = move.target + i * outer.target_stride + j * middle.target_stride;
      for (std::int64_t k = 0; k < inner.count; ++k) {
        copy(source, target);
        source += inner.source_stride;
        target += inner.target_stride;
      }
    }
  }
}

}  // namespace

bool Move::source_contiguous() const { return contiguous(*this, &Loop::source_stride); }
bool Move::target_contiguous() const { return contiguous(*this, &Loop::target_stride); }

Move make_move(const Place& source, const Place& target, const Region& region, Bytes element) {
  ISTHMUS_ASSERT(source.box.contains(region) && target.box.contains(region) && !region.empty(),
                 "{} from {} to {}", to_string(region), to_string(source.box), to_string(target.box));
  const Strides from = strides(source.box, element), to = strides(target.box, element);
  Move move;
  move.source = first_byte(source, region, from);
  move.target = first_byte(target, region, to);
  move.run = element.value;
  std::size_t first = move.loops.size();  // the outermost loop so far
  for (std::size_t d = region.dimensions; d-- > 0;) {
    const std::int64_t count = region.end[d] - region.begin[d];
    if (count == 1) continue;
    if (first == move.loops.size() && from[d] == move.run && to[d] == move.run) {
      move.run *= count;
      continue;
    }
    if (first < move.loops.size()) {
      Loop& inside = move.loops[first];
      if (from[d] == inside.count * inside.source_stride && to[d] == inside.count * inside.target_stride) {
        inside.count *= count;
        continue;
      }
    }
    move.loops[--first] = {count, from[d], to[d]};
  }
  return move;
}

void copy_bytes(const Move& move, const std::byte* source, std::byte* target) {
  const auto size = to_size(move.run);
  for_each_run(move,
               [&](std::int64_t from, std::int64_t to) { std::memcpy(target + to, source + from, size); });
}

void pack_bytes(const Move& move, const std::byte* source, std::byte* message) {
  const auto size = to_size(move.run);
  for_each_run(move, [&](std::int64_t from, std::int64_t) {
    std::memcpy(message, source + from, size);
    message += size;
  });
}

void unpack_bytes(const Move& move, const std::byte* message, std::byte* target) {
  const auto size = to_size(move.run);
  for_each_run(move, [&](std::int64_t, std::int64_t to) {
    std::memcpy(target + to, message, size);
    message += size;
  });
}

}  // namespace isthmus::hw

#include "planner/timeline.hpp"

#include <algorithm>

namespace isthmus {

std::vector<std::uint32_t> Timeline::critical_path() const {
  std::uint32_t last = Span::no_cause;
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    if (last == Span::no_cause || spans[i].end > spans[last].end) last = i;
  }
  std::vector<std::uint32_t> path;
  for (; last != Span::no_cause; last = spans[last].cause) path.push_back(last);
  std::reverse(path.begin(), path.end());
  return path;
}

std::uint64_t Timeline::digest() const {
  std::uint64_t hash = 0xCBF29CE484222325ULL;  // FNV-1a over the 64-bit words
  const auto mix = [&hash](std::int64_t word) {
    hash = (hash ^ static_cast<std::uint64_t>(word)) * 0x100000001B3ULL;
    hash ^= hash >> 29U;
  };
  for (const Span& span : spans) {
    mix(span.ready.value);
    mix(span.end.value);
  }
  for (const Bytes bytes : link_bytes) mix(bytes.value);
  return hash;
}

}  // namespace isthmus

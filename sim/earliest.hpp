#pragma once
// The least of many numbers that change often, and where it is. Numbers stand in blocks of 16, blocks in
// areas of 16; each block and area keeps a lower bound of its least number. Writing a number is a few
// instructions; bounds that became too low are repaired only when they are the least.
// Invariant: a bound that is not marked loose is the least number below it.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace isthmus::sim {

class Earliest {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  void resize(std::size_t count) {
    const std::size_t areas = (count + width * width - 1) / (width * width);
    keys_.assign(areas * width * width, never);
    blocks_.assign(areas * width, {});
    areas_.assign(areas, {});
  }

  void set(std::size_t index, std::int64_t key) {
    const std::int64_t before = keys_[index];
    if (before == key) return;
    keys_[index] = key;
    lower_or_loosen(blocks_[index / width], before, key);
    lower_or_loosen(areas_[index / (width * width)], before, key);
  }

  /// The least number; `never` where there is none.
  std::int64_t least() {
    while (true) {
      std::int64_t least = never;
      std::size_t at = 0;
      for (std::size_t a = 0; a < areas_.size(); ++a) {
        if (areas_[a].least >= least) continue;
        least = areas_[a].least;
        at = a;
      }
      if (least == never || !areas_[at].loose) return least;
      tighten(at);
    }
  }

  /// Visits every index with a number <= `limit`, ascending.
  template <class Visit>
  void up_to(std::int64_t limit, Visit&& visit) const {
    for (std::size_t a = 0; a < areas_.size(); ++a) {
      if (areas_[a].least > limit) continue;
      for (std::size_t b = a * width; b < (a + 1) * width; ++b) {
        if (blocks_[b].least > limit) continue;
        for (std::size_t k = b * width; k < (b + 1) * width; ++k) {
          if (keys_[k] <= limit) visit(static_cast<std::uint32_t>(k));
        }
      }
    }
  }

 private:
  static constexpr std::size_t width = 16;
  struct Bound {
    std::int64_t least = never;
    bool loose = false;  // the least number may be greater
  };

  static void lower_or_loosen(Bound& bound, std::int64_t before, std::int64_t key) {
    if (key <= bound.least) {
      bound = {key, false};
    } else if (before == bound.least) {
      bound.loose = true;
    }
  }

  void tighten(std::size_t area) {
    const std::size_t first = area * width;
    while (true) {
      std::size_t at = first;
      for (std::size_t b = first + 1; b < first + width; ++b) {
        if (blocks_[b].least < blocks_[at].least) at = b;
      }
      Bound& block = blocks_[at];
      if (!block.loose) {
        areas_[area] = {block.least, false};
        return;
      }
      std::int64_t least = never;
      for (std::size_t k = at * width; k < (at + 1) * width; ++k) least = std::min(least, keys_[k]);
      block = {least, false};
    }
  }

  std::vector<std::int64_t> keys_;
  std::vector<Bound> blocks_, areas_;
};

}  // namespace isthmus::sim

#include "model/fused_view.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/text.hpp"

namespace isthmus {
namespace {

struct Run {
  std::int64_t begin, end;
  const LocalView* owner;
};

std::int64_t indices_of(const LocalView& local) { return local.extents[to_size(local.view.dimension)]; }

/// Consecutive stretches of the base; blocks that touch are one.
std::int64_t run_count(const LocalView& local) {
  const FusedView& view = local.view;
  const std::int64_t indices = indices_of(local);
  if (indices == 0) return 0;
  return view.stride == view.block ? 1 : (indices - 1) / view.block + 1;
}

void add_runs(const LocalView& local, std::vector<Run>& runs) {
  const FusedView& view = local.view;
  const std::int64_t indices = indices_of(local), count = run_count(local);
  if (count == 1) runs.push_back({view.offset, view.offset + indices, &local});
  if (count <= 1) return;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = view.offset + i * view.stride;
    runs.push_back({begin, begin + std::min(view.block, indices - i * view.block), &local});
  }
}

std::string name_of(const LocalView& local) { return printable(local.tensor); }

/// What the first view and another one say differently about their common base.
void compare(const LocalView& first, const LocalView& other, std::vector<std::string>& found) {
  const auto differ = [&](std::string_view what, const std::string& one, const std::string& two) {
    if (one == two) return;
    found.push_back(fmt::format("base {}: {} has {} {}, {} has {}", printable(first.view.base),
                                name_of(first), what, one, name_of(other), two));
  };
  const auto storage = [](const FusedView& view) {
    return view.storage.empty() ? std::string("canonical") : printable(view.storage);
  };
  differ("dtype", std::string(to_string(first.dtype)), std::string(to_string(other.dtype)));
  differ("storage", storage(first.view), storage(other.view));
  differ("dimension", fmt::format("{}", first.view.dimension), fmt::format("{}", other.view.dimension));
  differ("extent", fmt::format("{}", first.view.extent), fmt::format("{}", other.view.extent));
  if (first.view.dimension != other.view.dimension) return;
  const auto beside = [](const LocalView& local) {
    std::vector<std::int64_t> extents = local.extents;
    extents.erase(extents.begin() + local.view.dimension);
    return fmt::format("[{}]", fmt::join(extents, ", "));
  };
  differ(fmt::format("beside dimension {}", first.view.dimension), beside(first), beside(other));
}

/// The first index that two runs hold and the first one that none holds.
void tile(std::vector<Run> runs, const FusedView& base, std::vector<std::string>& found) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  const std::string what = fmt::format("base {}: index", printable(base.base));
  Run last{0, 0, nullptr};  // the run that reaches furthest so far
  bool overlap = false, gap = false;
  const auto add_gap = [&](const LocalView* next) {
    if (gap) return;
    gap = true;
    found.push_back(fmt::format("{} {} of {} on dimension {} is held by no tensor (between {} and {})", what,
                                last.end, base.extent, base.dimension,
                                last.owner == nullptr ? "the begin" : name_of(*last.owner),
                                next == nullptr ? "the end" : name_of(*next)));
  };
  for (const Run& run : runs) {
    if (run.begin > last.end) add_gap(run.owner);
    if (run.begin < last.end && !overlap) {
      overlap = true;
      found.push_back(fmt::format("{} {} of {} on dimension {} is held by {} and by {}", what, run.begin,
                                  base.extent, base.dimension, name_of(*last.owner), name_of(*run.owner)));
    }
    if (run.end > last.end) last = run;
  }
  if (last.end < base.extent) add_gap(nullptr);
}

}  // namespace

std::string to_string(const FusedView& view, std::int64_t indices) {
  const bool whole_block = indices <= view.block || view.stride == view.block;
  const std::string blocks =
      whole_block ? "" : fmt::format(" in blocks of {} every {}", view.block, view.stride);
  const std::string storage = view.storage.empty() ? "" : fmt::format(", stored as {}", view.storage);
  return fmt::format("{}: {} indices of dimension {}{} from {} on, of {}{}", view.base, indices,
                     view.dimension, blocks, view.offset, view.extent, storage);
}

std::vector<std::string> faults(const FusedView& view, const std::vector<std::int64_t>& extents) {
  std::vector<std::string> found;
  if (view.base.empty()) found.emplace_back("a view of a base without a name");
  if (view.offset < 0) found.push_back(fmt::format("offset {}; at least 0 is needed", view.offset));
  if (view.block < 1) found.push_back(fmt::format("blocks of {}; at least 1 is needed", view.block));
  if (view.stride < 1) found.push_back(fmt::format("a stride of {}; at least 1 is needed", view.stride));
  if (view.extent < 1) found.push_back(fmt::format("a base of {}; at least 1 is needed", view.extent));
  if (view.dimension < 0 || to_size(view.dimension) >= extents.size()) {
    found.push_back(fmt::format("dimension {} of a shard of {} dimensions", view.dimension, extents.size()));
  }
  if (!found.empty()) return found;
  const std::int64_t indices = extents[to_size(view.dimension)];
  if (indices < 1) return found;
  const std::int64_t last = indices - 1;
  if (last / view.block > 0 && view.stride < view.block) {
    found.push_back(fmt::format("blocks of {} every {} overlap", view.block, view.stride));
  }
  const Int128 end = Int128{view.offset} + Int128{last / view.block} * view.stride + last % view.block;
  if (end >= view.extent) {
    found.push_back(fmt::format("local index {} stands at {}, outside the base's {}", last,
                                static_cast<std::int64_t>(std::min<Int128>(end, INT64_MAX)), view.extent));
  }
  return found;
}

std::vector<std::string> fused_faults(std::span<const LocalView> views) {
  std::vector<std::string> found;
  std::int64_t blocks = 0;
  for (const LocalView& local : views) {
    const std::vector<std::string> own = faults(local.view, local.extents);
    for (const std::string& fault : own)
      found.push_back(fmt::format("base {}: {}: {}", printable(local.view.base), name_of(local), fault));
    if (own.empty())
      blocks = std::min(blocks, max_view_blocks + 1) + std::min(run_count(local), max_view_blocks + 1);
  }
  if (blocks > max_view_blocks) {
    found.push_back(
        fmt::format("base {}: more than {} blocks", printable(views.front().view.base), max_view_blocks));
  }
  if (!found.empty() || views.empty()) return found;
  for (const LocalView& local : views.subspan(1)) compare(views.front(), local, found);
  if (!found.empty()) return found;
  std::vector<Run> runs;
  for (const LocalView& local : views) add_runs(local, runs);
  tile(std::move(runs), views.front().view, found);
  return found;
}

}  // namespace isthmus

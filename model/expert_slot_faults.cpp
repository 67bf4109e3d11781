// Which expert lies in which slot of a buffer. The order is the engine's choice, but one slot holds one
// expert, and all projections of an engine's module agree: slot s of gate, up and down is one expert.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus::refit_info {
namespace {

/// Slots [begin, end) hold the experts begin + shift, and so on.
struct Run {
  std::int64_t shift, begin, end;
  friend bool operator==(const Run&, const Run&) = default;
  friend auto operator<=>(const Run&, const Run&) = default;
};

/// Of one tensor in one buffer: its runs by slot, with those that continue each other joined.
std::vector<Run> joined(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end());
  std::vector<Run> result;
  for (const Run& run : runs) {
    if (run.begin == run.end) continue;
    const bool continues =
        !result.empty() && result.back().shift == run.shift && run.begin <= result.back().end;
    if (continues) {
      result.back().end = std::max(result.back().end, run.end);
    } else {
      result.push_back(run);
    }
  }
  std::sort(result.begin(), result.end(), [](const Run& a, const Run& b) { return a.begin < b.begin; });
  return result;
}

struct Projection {
  std::uint32_t tensor = 0;
  std::size_t entry = 0;  // the first one
  std::vector<Run> runs;
};

class SlotJudge {
 public:
  SlotJudge(Judged& judged, const LocalMap& map) : judged_(judged), map_(map) {}

  void add(const std::vector<BaseBox>& boxes) {
    std::map<std::uint32_t, Projection> of_tensor;
    for (const BaseBox& box : boxes) {
      const LocalEntry& entry = map_.entries[box.entry];
      if (!is_expert(judged_.info.tensors[box.tensor].name) || entry.before.dimensions < 3) continue;
      const bool slots = entry.after.dimensions == entry.before.dimensions;
      const std::int64_t begin = slots ? entry.after.begin[0] : 0, end = slots ? entry.after.end[0] : 1;
      Projection& projection =
          of_tensor.try_emplace(box.tensor, Projection{box.tensor, box.entry, {}}).first->second;
      projection.runs.push_back({entry.before.begin[0] - begin, begin, end});
    }
    const Projection* first = nullptr;
    for (auto& [tensor, projection] : of_tensor) {
      projection.runs = joined(std::move(projection.runs));
      if (!judge_mixture(projection)) return;
      if (first != nullptr && !judge_pair(*first, projection)) return;
      if (first == nullptr) first = &projection;
    }
    if (first == nullptr || map_.side == Side::train) return;
    if (map_.entries[first->entry].after.dimensions < 3) return;
    const auto named = projection_of(judged_.info.tensors[first->tensor].name);
    if (!named) return;
    const auto [known, added] = of_module_.emplace(named->module, *first);
    if (!added) judge_pair(known->second, *first);
  }

 private:
  std::string name(const Projection& projection) const {
    return printable(judged_.info.tensors[projection.tensor].name, 200);
  }
  void report(const Projection& projection, std::string found, std::string allowed) {
    judged_.faults.add(fmt::format("slots {} {}", to_string(map_.side), name(projection)),
                       {map_.at(projection.entry), std::move(found), std::move(allowed), ""});
  }

  bool judge_mixture(const Projection& projection) {
    const auto& runs = projection.runs;
    for (std::size_t i = 0; i + 1 < runs.size(); ++i) {
      if (runs[i].end <= runs[i + 1].begin) continue;
      const std::int64_t slot = runs[i + 1].begin;
      report(projection,
             fmt::format("slot {} of {}: parts of experts {} and {} of {}", slot,
                         rank_text(map_.side, map_.rank), slot + runs[i].shift, slot + runs[i + 1].shift,
                         name(projection)),
             "one expert in each slot");
      return false;
    }
    return true;
  }

  bool judge_pair(const Projection& a, const Projection& b) {
    if (a.runs == b.runs) return true;
    const auto [at_a, at_b] = std::mismatch(a.runs.begin(), a.runs.end(), b.runs.begin(), b.runs.end());
    if (at_a == a.runs.end() || at_b == b.runs.end()) return true;  // a gap, which is named as such
    std::int64_t slot = std::max(at_a->begin, at_b->begin);
    if (at_a->begin == at_b->begin && at_a->shift == at_b->shift) slot = std::min(at_a->end, at_b->end);
    const auto expert_in = [slot](const std::vector<Run>& runs) {
      const auto run = std::find_if(runs.begin(), runs.end(),
                                    [slot](const Run& r) { return r.begin <= slot && slot < r.end; });
      return run == runs.end() ? std::nullopt : std::optional(slot + run->shift);
    };
    const auto expert_a = expert_in(a.runs), expert_b = expert_in(b.runs);
    if (!expert_a || !expert_b) return true;
    report(b,
           fmt::format("slot {} of {}: expert {} of {}, expert {} of {}", slot,
                       rank_text(map_.side, map_.rank), *expert_a, name(a), *expert_b, name(b)),
           "one expert in each slot");
    return false;
  }

  Judged& judged_;
  const LocalMap& map_;
  std::map<std::string_view, Projection> of_module_;  // engines: the first buffer of each module
};

}  // namespace

void judge_expert_slots(Judged& judged, const LocalMap& map,
                        const std::vector<std::vector<BaseBox>>& boxes_of_base) {
  SlotJudge judge(judged, map);
  for (const std::vector<BaseBox>& boxes : boxes_of_base) judge.add(boxes);
}

}  // namespace isthmus::refit_info

// The misc tensors: both sides walk them in lockstep, so names and order of every rank must be those of
// misc_meta.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus::refit_info {
namespace {

using Names = std::vector<std::string_view>;

/// Ranks with one order; the first map stands for them. Maps with ties may leave out other names.
struct Walk {
  const LocalMap* first = nullptr;
  std::vector<std::int64_t> ranks;
};

std::string shown(std::string_view name) { return fmt::format("'{}'", printable(name, 200)); }

std::string listed(const Names& names) {
  return names.size() == 1 ? shown(names.front())
                           : fmt::format("{} and {} more", shown(names.front()), names.size() - 1);
}

/// "'b' between 'a' and 'c'"
std::string with_neighbours(const Names& names, std::size_t at) {
  std::string text = shown(names[at]);
  if (at > 0 && at + 1 < names.size())
    return text + fmt::format(" between {} and {}", shown(names[at - 1]), shown(names[at + 1]));
  if (at > 0) return text + fmt::format(" after {}, at the end", shown(names[at - 1]));
  if (at + 1 < names.size()) return text + fmt::format(" before {}, at the start", shown(names[at + 1]));
  return text + " alone";
}

/// What is in sorted `a` and not in sorted `b`.
Names difference(const Names& a, const Names& b) {
  Names result;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(result));
  return result;
}

class OrderJudge {
 public:
  OrderJudge(Judged& judged, const Walk& walk) : judged_(judged), walk_(walk) {
    for (const MiscTensor& tensor : judged.info.misc) expected_.push_back(tensor.name);
    for (const std::string& name : judged.info.local.misc_orders[*walk.first->misc_order]) {
      const auto& ties = walk.first->ties;
      const bool tied =
          std::any_of(ties.begin(), ties.end(), [&](const Tie& tie) { return tie.name == name; });
      if (!tied) found_.push_back(name);
    }
  }

  void judge() {
    if (found_ == expected_) return;
    Names expected = expected_, found = found_;
    std::sort(expected.begin(), expected.end());
    std::sort(found.begin(), found.end());
    const auto twice = std::adjacent_find(found.begin(), found.end());
    if (twice != found.end()) add("twice", fmt::format("{} twice", shown(*twice)), "each name once");
    found.erase(std::unique(found.begin(), found.end()), found.end());
    const Names lacking = difference(expected, found), extra = difference(found, expected);
    if (!lacking.empty()) {
      add("lacking",
          fmt::format("{} of misc_meta not in the order of {}: {}", lacking.size(), ranks(), listed(lacking)),
          "every name of misc_meta");
    }
    if (!extra.empty()) report_extra(extra);
    if (twice == found.end() && lacking.empty() && extra.empty()) report_order();
  }

 private:
  void add(std::string_view kind, std::string found, std::string allowed, std::string change = "") {
    Location place = walk_.first->where;
    place.key += fmt::format("{}misc_order", place.key.empty() ? "" : ".");
    judged_.faults.add(fmt::format("misc {} {} {}", kind, to_string(walk_.first->side), found),
                       {std::move(place), std::move(found), std::move(allowed), std::move(change)});
  }
  std::string ranks() const {
    return fmt::format("{} rank{} {}", to_string(walk_.first->side), walk_.ranks.size() == 1 ? "" : "s",
                       ranks_text(walk_.ranks));
  }

  void report_extra(const Names& extra) {
    const auto output = std::find_if(extra.begin(), extra.end(), [](std::string_view name) {
      return name.ends_with("output_layer.weight") || name.ends_with("lm_head.weight");
    });
    const auto embedding = std::find_if(expected_.begin(), expected_.end(), [](std::string_view name) {
      return name.ends_with("word_embeddings.weight") || name.ends_with("embed_tokens.weight") ||
             name.ends_with("embeddings.weight");
    });
    const bool tied = output != extra.end() && embedding != expected_.end();
    const bool target = walk_.first->side == Side::generate;
    const std::string name = listed(tied ? Names{*output} : extra);
    add("extra",
        target ? fmt::format("target tensor {} on {} has no source of that name: misc_meta lacks it", name,
                             ranks())
               : fmt::format("{} exported by {}, which misc_meta lacks: {}", extra.size(), ranks(), name),
        "the names of misc_meta",
        tied ? fmt::format("if it is tied to {0}, say so: \"ties\": {{\"{1}\": \"{0}\"}}",
                           printable(*embedding, 200), printable(*output, 200))
             : "");
  }

  void report_order() {
    const auto [expected, found] = std::mismatch(expected_.begin(), expected_.end(), found_.begin());
    const auto at = to_size(expected - expected_.begin());
    add("order", fmt::format("{} of {} at position {}", with_neighbours(found_, at), ranks(), at),
        fmt::format("{}, as misc_meta has it", with_neighbours(expected_, at)));
  }

  Judged& judged_;
  const Walk& walk_;
  Names expected_, found_;
};

}  // namespace

void judge_misc_orders(Judged& judged) {
  // Side, order and, for maps with ties, the map itself.
  std::map<std::tuple<Side, std::size_t, const LocalMap*>, Walk> walks;
  std::size_t without = 0;
  for (const LocalMap& map : judged.info.local.maps) {
    if (!map.misc_order) {
      ++without;
      continue;
    }
    Walk& walk = walks[{map.side, *map.misc_order, map.ties.empty() ? nullptr : &map}];
    if (walk.first == nullptr) walk.first = &map;
    walk.ranks.push_back(map.rank);
  }
  for (auto& [key, walk] : walks) {
    std::sort(walk.ranks.begin(), walk.ranks.end());
    OrderJudge(judged, walk).judge();
  }
  if (without > 0 && !judged.info.misc.empty()) {
    judged.notes.add("no order", fmt::format("{} local map{} without misc_order: the order of their misc "
                                             "tensors is not judged",
                                             without, without == 1 ? "" : "s"));
  }
}

}  // namespace isthmus::refit_info

#include "report/plan_step.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/plan_difference.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

std::vector<std::uint32_t> after(const PlanStep& shown) {
  const std::vector<std::uint32_t>& all = shown.file.plan.pattern(shown.bound()).after;
  return {all.begin() + shown.step().after_begin, all.begin() + shown.step().after_end};
}

/// "rank 0 source -> rank 5 target", "rank 3 staging -> target", "rank 0 source -> ranks 0-7 target".
std::string ends_text(const PlanStep& shown) {
  const Step& step = shown.step();
  const std::vector<Rank> ranks = shown.ranks();
  if (step.kind == StepKind::all_gather) {
    return fmt::format("ranks {}, {} -> {}", ranks_text(ranks), to_string(step.from), to_string(step.to));
  }
  const std::uint32_t source = global_rank(shown.bound(), step.source).value;
  if (step.kind == StepKind::broadcast) {
    return fmt::format("rank {} {} -> ranks {} {}", source, to_string(step.from), ranks_text(ranks),
                       to_string(step.to));
  }
  const std::uint32_t target = global_rank(shown.bound(), step.target).value;
  if (is_local(step.kind) && source == target)
    return fmt::format("rank {} {} -> {}", source, to_string(step.from), to_string(step.to));
  return fmt::format("rank {} {} -> rank {} {}", source, to_string(step.from), target, to_string(step.to));
}

}  // namespace

std::vector<Rank> PlanStep::ranks() const {
  const Step& of = step();
  std::vector<Rank> ranks;
  if (is_collective(of.kind)) {
    for (const LocalRank member : file.plan.pattern(bound()).members[of.members])
      ranks.push_back(global_rank(bound(), member));
    return ranks;
  }
  ranks.push_back(global_rank(bound(), of.source));
  const Rank target = global_rank(bound(), of.target);
  if (target != ranks.front()) ranks.push_back(target);
  return ranks;
}

std::string lane_text(const Plan& plan, std::size_t lane) {
  if (lane >= plan.lanes.size()) return fmt::format("{} (of {})", lane, plan.lanes.size());
  const std::string& name = plan.lanes[lane].name;
  return name.empty() ? fmt::format("{}", lane) : name;
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::string text;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1].value == ranks[last].value + 1) ++last;
    text += fmt::format("{}{}", first == 0 ? "" : ", ", ranks[first].value);
    if (last > first) text += fmt::format("-{}", ranks[last].value);
    first = last + 1;
  }
  return text;
}

std::string to_text(const PlanStep& shown) {
  const Step& step = shown.step();
  std::string text = fmt::format(
      "step {}: {} {} {}, {}, lane {}, group {}", shown.index, to_string(step.kind), ends_text(shown),
      to_string(step.region), size_text(step_bytes(shown.file.refit, shown.file.plan, shown.bound(), step)),
      lane_text(shown.file.plan, shown.lane()), shown.group());
  if (step.parts != 1) text += fmt::format(", {} parts", step.parts);
  const std::vector<std::uint32_t> earlier = after(shown);
  if (!earlier.empty()) text += fmt::format(", after {}", fmt::join(earlier, ", "));
  return text;
}

nlohmann::ordered_json to_json(const PlanStep& shown) {
  using Json = nlohmann::ordered_json;
  const Step& step = shown.step();
  Json ranks = Json::array(), region = Json::array();
  for (const Rank rank : shown.ranks()) ranks.push_back(rank.value);
  for (std::size_t d = 0; d < step.region.dimensions; ++d)
    region.push_back({step.region.begin[d], step.region.end[d]});
  Json json{{"tensor", shown.file.refit.tensors[shown.bound().tensor.index()].tensor.name},
            {"instance", shown.instance},
            {"step", shown.index},
            {"kind", to_string(step.kind)}};
  if (step.kind != StepKind::all_gather) json["source"] = global_rank(shown.bound(), step.source).value;
  if (is_collective(step.kind)) {
    json["members"] = std::move(ranks);
  } else {
    json["target"] = global_rank(shown.bound(), step.target).value;
  }
  json["from"] = to_string(step.from);
  json["to"] = to_string(step.to);
  json["region"] = std::move(region);
  json["bytes"] = step_bytes(shown.file.refit, shown.file.plan, shown.bound(), step).value;
  json["lane"] = shown.lane();
  json["group"] = shown.group();
  json["parts"] = step.parts;
  json["after"] = after(shown);
  return json;
}

}  // namespace isthmus::report

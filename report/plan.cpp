#include "report/plan.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/plan_step.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

/// The steps to be shown, in the order of the view.
std::vector<PlanStep> chosen_steps(const PlanFile& file, const PlanView& view) {
  std::vector<std::pair<std::size_t, std::uint32_t>> chosen;
  for (std::size_t i = 0; i < file.plan.instances.size(); ++i) {
    const Instance& instance = file.plan.instances[i];
    if (view.tensor && instance.tensor != *view.tensor) continue;
    const std::size_t steps = file.plan.pattern(instance).steps.size();
    for (std::uint32_t index = 0; index < steps; ++index) {
      if (view.rank) {
        const std::vector<Rank> ranks = PlanStep{file, i, index}.ranks();
        if (std::find(ranks.begin(), ranks.end(), *view.rank) == ranks.end()) continue;
      }
      chosen.emplace_back(i, index);
    }
  }
  if (view.rank) {
    const auto key = [&](const std::pair<std::size_t, std::uint32_t>& at) {
      const PlanStep step{file, at.first, at.second};
      return std::tuple(step.lane(), step.group(), at.first, at.second);
    };
    std::sort(chosen.begin(), chosen.end(), [&](const auto& a, const auto& b) { return key(a) < key(b); });
  }
  std::vector<PlanStep> steps;
  for (const auto& [instance, index] : chosen) steps.push_back({file, instance, index});
  return steps;
}

Json traffic(const PlanTraffic& each) { return {{"steps", each.steps}, {"bytes", each.bytes.value}}; }

Json with(Json first, const Json& more) {
  first.update(more);
  return first;
}

Json to_json(const PlanFile& file, const PlanTotals& totals) {
  const Plan& plan = file.plan;
  Json lanes = Json::array(), buffers = Json::array(), kinds = Json::array();
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    lanes.push_back(with({{"name", lane.name}, {"window", lane.window}, {"coalesce", lane.coalesce}},
                         traffic(totals.by_lane[i])));
  }
  for (const StagingBuffer& buffer : plan.buffers)
    buffers.push_back({{"name", buffer.name}, {"bytes", buffer.size.value}});
  for (const auto& [kind, each] : totals.by_kind)
    kinds.push_back(with({{"kind", to_string(kind)}}, traffic(each)));
  return {{"scenario", file.refit.name},
          {"policy", plan.policy},
          {"refit", plan.version},
          {"tensors", file.refit.tensors.size()},
          {"ranks", file.refit.members()},
          {"relay_ranks", file.refit.relay_ranks},
          {"patterns", plan.patterns.size()},
          {"instances", plan.instances.size()},
          {"steps", totals.all.steps},
          {"bytes", totals.all.bytes.value},
          {"kinds", std::move(kinds)},
          {"lanes", std::move(lanes)},
          {"buffers", std::move(buffers)}};
}

std::string to_text(const PlanFile& file, const PlanTotals& totals) {
  const Plan& plan = file.plan;
  std::string text = fmt::format(
      "{}: plan of policy {} for refit {}: {} tensors, {} ranks\n{} steps move {}; {} patterns, {} "
      "instances\n",
      file.refit.name, plan.policy, plan.version, file.refit.tensors.size(), file.refit.members(),
      totals.all.steps, size_text(totals.all.bytes), plan.patterns.size(), plan.instances.size());
  for (const auto& [kind, each] : totals.by_kind)
    text +=
        fmt::format("  {:<10}  {:>9} steps  {:>12}\n", to_string(kind), each.steps, size_text(each.bytes));
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    text += fmt::format("  lane {}: {} steps, {}, {} groups at a time{}\n", lane_text(plan, i),
                        totals.by_lane[i].steps, size_text(totals.by_lane[i].bytes), lane.window,
                        lane.coalesce ? ", coalescing" : "");
  }
  for (const StagingBuffer& buffer : plan.buffers)
    text += fmt::format("  staging buffer {}: {}\n", buffer.name, size_text(buffer.size));
  return text + "The steps themselves: --tensor NAME, --rank R\n";
}

/// The line above the steps of an instance.
std::string heading(const PlanFile& file, std::size_t index) {
  const Instance& instance = file.plan.instances[index];
  const RefitEntry& entry = file.refit.tensors[instance.tensor.index()];
  std::string text = fmt::format(
      "tensor {}: {} [{}], instance {}, pattern {}, source ranks from {} on, target ranks from {} on",
      entry.tensor.name, to_string(entry.tensor.dtype), fmt::join(entry.tensor.shape, ", "), index,
      instance.pattern.value, instance.source_base.value, instance.target_base.value);
  if (instance.buffer < file.plan.buffers.size()) {
    text += fmt::format(", staged in {} at byte {}", file.plan.buffers[instance.buffer].name,
                        instance.offset.value);
  }
  if (instance.version != file.plan.version) text += fmt::format(", refit {}", instance.version);
  return text + "\n";
}

std::string to_text(const std::vector<PlanStep>& steps, const PlanFile& file, const PlanView& view) {
  std::string text;
  if (view.rank) {
    const std::size_t rank = view.rank->index();
    text = fmt::format("rank {} (GPU {}): {} steps\n", rank, file.refit.gpu(*view.rank).value, steps.size());
    for (const PlanStep& step : steps) {
      text += fmt::format("  {}: {}\n", file.refit.tensors[step.bound().tensor.index()].tensor.name,
                          to_text(step));
    }
    return text;
  }
  for (std::size_t i = 0; i < file.plan.instances.size(); ++i) {
    if (file.plan.instances[i].tensor != *view.tensor) continue;
    text += heading(file, i);
    for (const PlanStep& step : steps) {
      if (step.instance == i) text += fmt::format("  {}\n", to_text(step));
    }
  }
  if (text.empty()) {
    text = fmt::format("tensor {}: no instance carries it\n",
                       file.refit.tensors[view.tensor->index()].tensor.name);
  }
  return text;
}

}  // namespace

std::string plan_document(const PlanFile& file, const PlanView& view) {
  const bool whole_plan = !view.rank && !view.tensor;
  if (whole_plan && !view.json) return to_text(file, plan_totals(file.refit, file.plan));
  const std::vector<PlanStep> steps = whole_plan ? std::vector<PlanStep>{} : chosen_steps(file, view);
  if (!view.json) return to_text(steps, file, view);
  Json document = to_json(file, plan_totals(file.refit, file.plan));
  if (!whole_plan) {
    Json& listed = document["listed_steps"] = Json::array();
    for (const PlanStep& step : steps) listed.push_back(to_json(step));
  }
  return document.dump(2) + "\n";
}

std::string written_plan_document(const Refit& refit, const Plan& plan, const WrittenPlan& written,
                                  bool json) {
  if (json) {
    const Json document{{"scenario", refit.name},
                        {"policy", plan.policy},
                        {"file", written.file},
                        {"file_bytes", written.bytes},
                        {"steps", plan.step_count()},
                        {"patterns", plan.patterns.size()},
                        {"instances", plan.instances.size()},
                        {"plan_wall_seconds", written.plan_seconds},
                        {"write_wall_seconds", written.write_seconds}};
    return document.dump(2) + "\n";
  }
  return fmt::format("{}: {}: {} steps in {} patterns and {} instances, {} in {}\n", refit.name, plan.policy,
                     plan.step_count(), plan.patterns.size(), plan.instances.size(),
                     size_text({static_cast<std::int64_t>(written.bytes)}), written.file);
}

}  // namespace isthmus::report

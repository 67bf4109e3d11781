#include <fmt/format.h>

#include "planner/plan_file.hpp"
#include "planner/plan_file_form.hpp"
#include "planner/plan_file_parts.hpp"

namespace isthmus {
namespace {

using plan_file::json_text;
using plan_file::JsonText;

std::string rank_text(LocalRank rank) {
  const bool target = (rank.value & LocalRank::target_side) != 0;
  return fmt::format("\"{}{}\"", target ? 't' : 's', rank.value & ~LocalRank::target_side);
}

class PlanWriter {
 public:
  PlanWriter(const Refit& refit, const Plan& plan, JsonText& text)
      : refit_(refit), plan_(plan), text_(text) {}

  void write() {
    if (!plan_.splits.empty()) {
      text_.lines("  ", "splits", plan_.splits, [&](const Split& split) { add(split); });
      text_.add(",\n");
    }
    text_.lines("  ", "lanes", plan_.lanes, [&](const Lane& lane) { add(lane); });
    text_.add(",\n");
    if (!plan_.buffers.empty()) {
      text_.lines("  ", "buffers", plan_.buffers, [&](const StagingBuffer& buffer) {
        text_.add("    {{\"name\": {}, \"size\": {}}}", json_text(buffer.name), buffer.size.value);
      });
      text_.add(",\n");
    }
    text_.lines("  ", "patterns", plan_.patterns, [&](const Pattern& pattern) { add(pattern); });
    text_.add(",\n");
    text_.lines("  ", "instances", plan_.instances, [&](const Instance& instance) { add(instance); });
  }

 private:
  void add(const Lane& lane) {
    text_.add("    {{\"name\": {}", json_text(lane.name));
    if (lane.window != 1) text_.add(", \"window\": {}", lane.window);
    if (lane.coalesce) text_.add(", \"coalesce\": true");
    if (lane.split != Split::none) text_.add(", \"split\": {}", lane.split);
    text_.add("}}");
  }

  void add(const Split& split) {
    text_.add("    {{");
    if (split.parent != Split::none) text_.add("\"parent\": {}, ", split.parent);
    if (split.slot != Split::none) text_.add("\"slot\": {}, ", split.slot);
    text_.add("\"callers\": [");
    for (std::size_t i = 0; i < split.callers.size(); ++i) {
      const Split::Caller& caller = split.callers[i];
      text_.add("{}[{}", i == 0 ? "" : ", ", caller.rank.value);
      if (caller.colour != Split::none) text_.add(", {}", caller.colour);
      text_.add("]");
    }
    text_.add("]}}");
  }

  void add(const Pattern& pattern) {
    text_.add("    {{");
    if (!pattern.members.empty()) {
      text_.lines(
          "", "members", pattern.members,
          [&](const std::vector<LocalRank>& ranks) {
            text_.add("      [");
            for (std::size_t i = 0; i < ranks.size(); ++i)
              text_.add("{}{}", i == 0 ? "" : ", ", rank_text(ranks[i]));
            text_.add("]");
          },
          "     ");
      text_.add(",\n     ");
    }
    text_.lines(
        "", "steps", pattern.steps, [&](const Step& step) { add(pattern, step); }, "    ");
    text_.add("}}");
  }

  void add(const Pattern& pattern, const Step& step);
  void add(const Instance& instance);

  const Refit& refit_;
  const Plan& plan_;
  JsonText& text_;
};

void PlanWriter::add(const Pattern& pattern, const Step& step) {
  text_.add("      {{\"kind\": \"{}\"", to_string(step.kind));
  if (step.kind != StepKind::all_gather) text_.add(", \"source\": {}", rank_text(step.source));
  const bool same = is_local(step.kind) && step.source == step.target;
  if (!is_collective(step.kind) && !same) text_.add(", \"target\": {}", rank_text(step.target));
  if (is_collective(step.kind)) text_.add(", \"members\": {}", step.members);
  const plan_file::Buffers usual = plan_file::usual_buffers(step.kind);
  if (step.from != usual.from) text_.add(", \"from\": \"{}\"", to_string(step.from));
  if (step.to != usual.to) text_.add(", \"to\": \"{}\"", to_string(step.to));
  text_.add(", \"region\": [");
  for (std::size_t d = 0; d < step.region.dimensions; ++d) {
    text_.add("{}[{}, {}]", d == 0 ? "" : ", ", step.region.begin[d], step.region.end[d]);
  }
  text_.add("]");
  if (step.lane != 0) text_.add(", \"lane\": {}", step.lane);
  if (step.group != 0) text_.add(", \"group\": {}", step.group);
  if (step.parts != 1) text_.add(", \"parts\": {}", step.parts);
  if (step.after_begin != step.after_end) {
    const auto begin = pattern.after.begin() + step.after_begin;
    text_.add(", \"after\": [{}]", fmt::join(begin, begin + (step.after_end - step.after_begin), ", "));
  }
  text_.add("}}");
}

void PlanWriter::add(const Instance& instance) {
  const RefitEntry& entry = refit_.tensors[instance.tensor.index()];
  text_.add("    {{\"tensor\": {}, \"pattern\": {}", json_text(entry.tensor.name), instance.pattern.value);
  if (instance.source_base != entry.source_base)
    text_.add(", \"source_base\": {}", instance.source_base.value);
  if (instance.target_base != entry.target_base)
    text_.add(", \"target_base\": {}", instance.target_base.value);
  if (instance.lane.value != 0) text_.add(", \"lane\": {}", instance.lane.value);
  if (instance.group != 0) text_.add(", \"group\": {}", instance.group);
  if (instance.buffer != Instance::own_memory) text_.add(", \"buffer\": {}", instance.buffer);
  if (instance.offset.value != 0) text_.add(", \"offset\": {}", instance.offset.value);
  if (instance.version != plan_.version) text_.add(", \"refit\": {}", instance.version);
  if (instance.schedule != Instance::no_schedule) {
    const auto begin = plan_.schedule.begin() + instance.schedule;
    const auto steps = static_cast<std::ptrdiff_t>(plan_.pattern(instance).steps.size());
    text_.add(", \"schedule\": [{}]", fmt::join(begin, begin + steps, ", "));
  }
  text_.add("}}");
}

}  // namespace

std::string to_json(const Scenario& scenario, const Refit& refit, const Plan& plan) {
  JsonText text;
  text.add("{{\n  \"format\": \"{}\",\n  \"version\": {},\n", plan_format, plan_format_version);
  text.add("  \"policy\": {},\n", json_text(plan.policy));
  if (plan.version != 0) text.add("  \"refit\": {},\n", plan.version);
  plan_file::add_subject(scenario, refit, text);
  PlanWriter(refit, plan, text).write();
  text.add("\n}}\n");
  return text.take();
}

}  // namespace isthmus

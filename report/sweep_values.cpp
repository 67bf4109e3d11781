// What CSV and JSON lines say of each candidate of a sweep, and the winner as files.

#include <algorithm>

#include <fmt/format.h>

#include "model/fabric.hpp"
#include "model/recipe_overrides.hpp"
#include "model/scenario_model.hpp"
#include "report/sweep_documents.hpp"
#include "report/sweep_sides.hpp"

namespace isthmus::report {
namespace {

using Kind = SweepValue::Kind;

std::string bulk_text(const BulkRule& rule) {
  if (rule.kind == BulkRule::Kind::match) return "match";
  return rule.kind == BulkRule::Kind::all ? "all" : "ffn";
}

template <class Number>
void number(std::vector<SweepValue>& values, std::string_view key, Number value) {
  values.push_back({std::string(key), fmt::format("{}", value), Kind::number});
}
void word(std::vector<SweepValue>& values, std::string_view key, std::string_view value) {
  values.push_back({std::string(key), std::string(value), Kind::word});
}
void nothing(std::vector<SweepValue>& values, std::string_view key) {
  values.push_back({std::string(key), "", Kind::nothing});
}

void add_layout(const SweepView& view, const SweepLayout& layout, std::vector<SweepValue>& values) {
  const TrainSpec& train = view.candidates.trains[layout.train];
  const GenerateSpec& generate = view.candidates.generates[layout.generate];
  number(values, "gpus", train.gpus + generate.gpus);
  number(values, "train_gpus", train.gpus);
  number(values, "train_tp", train.tp);
  number(values, "train_cp", train.cp);
  number(values, "train_ep", train.ep);
  number(values, "train_etp", train.etp.value_or(train.tp));
  number(values, "train_pp", train.pp);
  number(values, "train_fsdp", train.fsdp);
  layout.layers_first ? number(values, "train_layers_first", *layout.layers_first)
                      : nothing(values, "train_layers_first");
  layout.layers_last ? number(values, "train_layers_last", *layout.layers_last)
                     : nothing(values, "train_layers_last");
  number(values, "generate_gpus", generate.gpus);
  number(values, "generate_tp", generate.tp);
  number(values, "generate_ep", generate.ep);
  number(values, "generate_pp", generate.pp);
  word(values, "placement", to_string(view.space.placements[layout.placement]));
  number(values, "train_memory_bytes", layout.train_memory.value);
  number(values, "generate_memory_bytes", layout.generate_memory.value);
}

const SweepField& field_with(const SweepView& view, const SweepLayout& layout, std::uint32_t calibration) {
  const auto& fields = view.result.fields;
  return *std::find_if(fields.begin(), fields.end(), [&](const SweepField& each) {
    return each.model == layout.model && each.calibration == calibration;
  });
}

void add_outcome(const SweepView& view, std::uint32_t candidate, const SweepField& field,
                 std::vector<SweepValue>& values) {
  const std::optional<SweepOutcome>& outcome = view.result.outcomes[candidate];
  const bool predicted = outcome && outcome->refused.empty();
  word(values, "status", predicted ? "predicted" : outcome ? "refused" : "pruned");
  number(values, "bound_seconds", seconds(view.candidates.list[candidate].bound));
  predicted ? number(values, "seconds", seconds(outcome->time)) : nothing(values, "seconds");
  const bool detailed = view.result.details.contains(candidate);
  const PredictedInterval interval = detailed ? view.result.interval(candidate) : PredictedInterval{};
  detailed ? number(values, "low_seconds", interval.low) : nothing(values, "low_seconds");
  detailed ? number(values, "high_seconds", interval.high) : nothing(values, "high_seconds");
  detailed ? number(values, "lower_bound_seconds", seconds(view.result.details.at(candidate).bound))
           : nothing(values, "lower_bound_seconds");
  const auto rank = std::find(field.best.begin(), field.best.end(), candidate);
  rank != field.best.end() ? number(values, "rank", rank - field.best.begin() + 1) : nothing(values, "rank");
  const bool on_front = std::find(field.pareto.begin(), field.pareto.end(), candidate) != field.pareto.end();
  number(values, "pareto", on_front);
  predicted ? number(values, "staging_bytes", outcome->staging.value) : nothing(values, "staging_bytes");
  outcome && !predicted ? word(values, "reason", outcome->refused) : nothing(values, "reason");
}

}  // namespace

std::vector<SweepValue> sweep_values(const SweepView& view, std::uint32_t candidate) {
  const SweepCandidate& each = view.candidates.list[candidate];
  const SweepLayout& layout = view.candidates.layouts[each.layout];
  std::vector<SweepValue> values;
  number(values, "candidate", candidate);
  number(values, "layout", each.layout);
  word(values, "model", view.space.models[layout.model].config);
  word(values, "dtype", to_string(view.space.models[layout.model].precision));
  word(values, "calibration", view.candidates.calibrations[each.calibration].name);
  word(values, "policy", view.candidates.policies[each.policy]);
  word(values, "bulk", bulk_text(view.space.bulk[each.bulk]));
  number(values, "streams", view.space.streams[each.streams]);
  add_layout(view, layout, values);
  add_outcome(view, candidate, field_with(view, layout, each.calibration), values);
  return values;
}

std::vector<std::size_t> like_the_first(const SweepView& view, const SweepField& field) {
  std::vector<std::size_t> positions;
  if (field.best.empty()) return positions;
  const PredictedInterval first = view.result.interval(field.best.front());
  for (std::size_t i = 1; i < field.best.size(); ++i) {
    const PredictedInterval other = view.result.interval(field.best[i]);
    if (other.low <= first.high && first.low <= other.high) positions.push_back(i);
  }
  return positions;
}

std::string winner_scenario(const SweepView& view, std::uint32_t candidate) {
  return to_yaml(sweep_scenario(view.space, view.candidates, view.candidates.list[candidate]));
}

std::string winner_overrides(const SweepView& view, std::uint32_t candidate) {
  const SweepCandidate& each = view.candidates.list[candidate];
  const Scenario scenario = sweep_scenario(view.space, view.candidates, each);
  const int per_host = static_cast<int>(sweep_fabric(view.space).gpus_on(HostId{0}));
  const bool experts = read_full_inventory(scenario).experts > 0;
  const RecipeOverrides overrides =
      recipe_overrides(scenario, view.candidates.policies[each.policy], per_host, experts);
  std::string text;
  for (const InputFault& reason : overrides.reasons) {
    text += fmt::format("# NeMo RL has no {} of {}; allowed: {}\n", reason.where.key, reason.found,
                        reason.allowed);
  }
  for (const std::string& note : overrides.notes) text += "# " + note + "\n";
  for (const std::string& line : overrides.lines) text += line + "\n";
  return text;
}

}  // namespace isthmus::report

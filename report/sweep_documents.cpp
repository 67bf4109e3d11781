#include "report/sweep_documents.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

std::string side_text(const TrainSpec& train) {
  std::string text = fmt::format("{}: tp{}", train.gpus, train.tp);
  if (train.cp > 1) text += fmt::format(" cp{}", train.cp);
  if (train.ep > 1) text += fmt::format(" ep{}", train.ep);
  if (train.etp && train.ep > 1) text += fmt::format(" etp{}", *train.etp);
  text += fmt::format(" pp{}", train.pp);
  return train.fsdp > 1 ? text + fmt::format(" fsdp{}", train.fsdp) : text;
}

std::string side_text(const GenerateSpec& generate) {
  std::string text = fmt::format("{}: tp{}", generate.gpus, generate.tp);
  if (generate.ep > 1) text += fmt::format(" ep{}", generate.ep);
  return generate.pp > 1 ? text + fmt::format(" pp{}", generate.pp) : text;
}

std::string settings_text(const SweepView& view, const SweepCandidate& candidate) {
  std::string text = view.candidates.policies[candidate.policy];
  if (view.space.bulk.size() > 1) {
    const BulkRule& rule = view.space.bulk[candidate.bulk];
    text += rule.kind == BulkRule::Kind::ffn ? " ffn" : rule.kind == BulkRule::Kind::all ? " all" : " match";
  }
  if (view.space.streams.size() > 1) text += fmt::format(" x{}", view.space.streams[candidate.streams]);
  return text;
}

std::vector<std::string> row_of(const SweepView& view, std::uint32_t number, const std::string& label) {
  const SweepCandidate& candidate = view.candidates.list[number];
  const SweepLayout& layout = view.candidates.layouts[candidate.layout];
  const Duration time = view.result.outcomes[number]->time;
  std::string within = "-", efficiency = "-";
  if (view.result.details.contains(number)) {
    const PredictedInterval interval = view.result.interval(number);
    within = fmt::format("{} - {}", time_text(interval.low), time_text(interval.high));
    const double share = time.value > 0 ? seconds(view.result.details.at(number).bound) / seconds(time) : 1;
    efficiency = fmt::format("{:.1f} %", share * 100);
  }
  return {label,
          time_text(seconds(time)),
          within,
          efficiency,
          side_text(view.candidates.trains[layout.train]),
          side_text(view.candidates.generates[layout.generate]),
          std::string(to_string(view.space.placements[layout.placement])),
          size_text(layout.train_memory),
          size_text(layout.generate_memory),
          settings_text(view, candidate)};
}

std::string rows_text(const SweepView& view, const std::vector<std::uint32_t>& list) {
  std::vector<std::vector<std::string>> rows{{"", "time", "within", "efficiency", "train", "generate",
                                              "placement", "train/GPU", "generate/GPU", "policy"}};
  for (std::size_t i = 0; i < list.size(); ++i) {
    rows.push_back(row_of(view, list[i], fmt::format("{}", i + 1)));
  }
  return columns_text(rows);
}

std::string counts_text(const SweepView& view) {
  const SweepCandidates& candidates = view.candidates;
  const std::size_t predicted = view.result.predicted(), refused = view.result.refused();
  std::string text = fmt::format(
      "{}: {} valid layouts of {}, {} candidates: {} predicted, {} pruned by their bounds, {} refused by "
      "their "
      "policy\n",
      view.space.name, candidates.layouts.size(), view.space.layouts(), candidates.list.size(), predicted,
      candidates.list.size() - predicted - refused, refused);
  std::vector<std::vector<std::string>> rows;
  for (const SweepExclusion& each : candidates.exclusions) {
    rows.push_back({"  " + each.reason, fmt::format("{}", each.layouts), each.example});
  }
  if (!rows.empty()) text += "left out, by the first reason, with an example:\n" + columns_text(rows);
  return text;
}

std::string alike_text(const SweepView& view, const SweepField& field) {
  const std::vector<std::size_t> alike = like_the_first(view, field);
  if (alike.empty()) return "no other of these has an interval that overlaps that of the first\n";
  std::vector<std::string> numbers;
  for (const std::size_t position : alike) numbers.push_back(fmt::format("{}", position + 1));
  return fmt::format("not to be told apart from the first (intervals overlap): {}\n",
                     fmt::join(numbers, ", "));
}

std::string field_text(const SweepView& view, const SweepField& field) {
  std::string text = fmt::format("\n{}, {}, calibration {}\n", view.space.models[field.model].config,
                                 to_string(view.space.models[field.model].precision),
                                 view.candidates.calibrations[field.calibration].name);
  if (field.best.empty()) return text + "no candidate could be predicted\n";
  text += rows_text(view, field.best) + alike_text(view, field);
  text += "\nno other is better in all of time, memory per generation GPU, and GPUs:\n";
  text += rows_text(view, field.pareto);
  const std::uint32_t winner = field.best.front();
  text += fmt::format("\nthe first as a scenario (beside the space's file), for policy {}:\n{}",
                      view.candidates.policies[view.candidates.list[winner].policy],
                      winner_scenario(view, winner));
  return text + "\nand as overrides of a NeMo RL recipe:\n" + winner_overrides(view, winner);
}

std::string csv_cell(const SweepValue& value) {
  if (value.text.find_first_of(",\"\n") == std::string::npos) return value.text;
  std::string quoted = "\"";
  for (const char c : value.text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

Json to_json(const SweepValue& value) {
  if (value.kind == SweepValue::Kind::nothing) return nullptr;
  return value.kind == SweepValue::Kind::word ? Json(value.text) : Json::parse(value.text);
}

Json summary(const SweepView& view) {
  Json left_out = Json::array();
  for (const SweepExclusion& each : view.candidates.exclusions) {
    left_out.push_back({{"reason", each.reason}, {"layouts", each.layouts}, {"example", each.example}});
  }
  Json fields = Json::array();
  for (const SweepField& field : view.result.fields) {
    Json alike = Json::array();
    for (const std::size_t position : like_the_first(view, field)) alike.push_back(field.best[position]);
    Json winner = nullptr;
    if (!field.best.empty()) {
      winner = Json{{"candidate", field.best.front()},
                    {"scenario", winner_scenario(view, field.best.front())},
                    {"nemo_rl_overrides", winner_overrides(view, field.best.front())}};
    }
    fields.push_back({{"model", view.space.models[field.model].config},
                      {"calibration", view.candidates.calibrations[field.calibration].name},
                      {"best", field.best},
                      {"like_the_first", std::move(alike)},
                      {"pareto", field.pareto},
                      {"winner", std::move(winner)}});
  }
  const std::size_t predicted = view.result.predicted(), refused = view.result.refused();
  return {{"sweep", view.space.name},
          {"layouts", view.space.layouts()},
          {"valid_layouts", view.candidates.layouts.size()},
          {"candidates", view.candidates.list.size()},
          {"predicted", predicted},
          {"pruned", view.candidates.list.size() - predicted - refused},
          {"refused", refused},
          {"left_out", std::move(left_out)},
          {"fields", std::move(fields)}};
}

}  // namespace

std::string sweep_table(const SweepView& view) {
  std::string text = counts_text(view);
  for (const SweepField& field : view.result.fields) text += field_text(view, field);
  return text;
}

std::string sweep_csv(const SweepView& view) {
  std::string text;
  for (std::uint32_t c = 0; c < view.candidates.list.size(); ++c) {
    std::string names, line;
    for (const SweepValue& value : sweep_values(view, c)) {
      names += (names.empty() ? "" : ",") + value.key;
      line += (line.empty() ? "" : ",") + csv_cell(value);
    }
    if (c == 0) text += names + "\n";
    text += line + "\n";
  }
  return text;
}

std::string sweep_json_lines(const SweepView& view) {
  std::string text;
  for (std::uint32_t c = 0; c < view.candidates.list.size(); ++c) {
    Json object;
    for (const SweepValue& value : sweep_values(view, c)) object[value.key] = to_json(value);
    text += object.dump() + "\n";
  }
  return text + summary(view).dump() + "\n";
}

}  // namespace isthmus::report

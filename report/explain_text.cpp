#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/explain.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

std::string settings_text(const ChangeRow& row, const std::string& policy) {
  if (row.policy != policy) return fmt::format("--policy {}", row.policy);
  std::string text;
  for (const auto& [key, value] : row.settings) {
    const std::string setting = fmt::format("{}={}", key, value);
    const bool plain = setting.find_first_of(" {}[]'\"") == std::string::npos;
    text += fmt::format("{}--set {}", text.empty() ? "" : " ", plain ? setting : "'" + setting + "'");
  }
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

/// "-0.123 s": less is a gain.
std::string change_text(double seconds) {
  if (seconds == 0) return "0";
  return (seconds < 0 ? "-" : "+") + time_text(seconds < 0 ? -seconds : seconds);
}

std::string path_text(const Explanation& explanation) {
  std::string text = "\nthe critical path, its longest parts in order:\n";
  for (const PathSegment& each : explanation.path) {
    text += fmt::format("  {} to {}: {} {}, {}, mostly into {}\n", time_text(seconds(each.begin)),
                        time_text(seconds(each.end)), each.operations, each.what, size_text(each.bytes),
                        each.mostly);
  }
  text += "\nwhat it consists of: ";
  bool first = true;
  for (const sim::Term& term : explanation.terms) {
    text += fmt::format("{}{} {}", first ? "" : "; ", time_text(seconds(term.total())), in_words(term.kind));
    first = false;
  }
  return text + "\n";
}

std::string costs_text(const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows{{"constant", "cost", "time without"}};
  for (const ConstantCost& each : explanation.constants) {
    rows.push_back({each.key, time_text(explanation.seconds - each.seconds), time_text(each.seconds)});
  }
  rows.push_back({"all of them", time_text(explanation.seconds - explanation.wire_only_seconds),
                  time_text(explanation.wire_only_seconds)});
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (i + 1 < rows.size() && explanation.constants[i - 1].seconds > explanation.seconds)
      rows[i][1] = "-" + time_text(explanation.constants[i - 1].seconds - explanation.seconds);
  }
  std::string text = "\nwhat the constants of the calibration cost, each alone:\n" + columns_text(rows);
  rows = {{"busiest", "busy"}};
  for (const ResourceUse& each : explanation.resources) {
    const double share = explanation.seconds > 0 ? each.busy_seconds / explanation.seconds : 0;
    rows.push_back({each.resource, fmt::format("{} ({:.0f} %)", time_text(each.busy_seconds), share * 100)});
  }
  return text + "\n" + columns_text(rows);
}

std::string changes_text(const Explanation& explanation) {
  std::vector<std::vector<std::string>> rows{{"change", "gain or loss", "time", "with"}};
  for (const ChangeRow& row : explanation.changes) {
    const std::string setting = settings_text(row, explanation.policy);
    if (!row.refused.empty()) {
      rows.push_back({row.what, "-", "-", fmt::format("{} refused: {}", setting, row.refused)});
      continue;
    }
    rows.push_back(
        {row.what, change_text(row.seconds - explanation.seconds), time_text(row.seconds), setting});
  }
  return "\nsingle changes, each simulated:\n" + columns_text(rows);
}

Json changes_json(const Explanation& explanation) {
  Json list = Json::array();
  for (const ChangeRow& row : explanation.changes) {
    Json settings = Json::array();
    for (const auto& [key, value] : row.settings) settings.push_back(key + "=" + value);
    Json change{{"change", row.what}, {"policy", row.policy}, {"set", std::move(settings)}};
    if (row.refused.empty()) {
      change["seconds"] = row.seconds;
      change["change_seconds"] = row.seconds - explanation.seconds;
    } else {
      change["refused"] = row.refused;
    }
    list.push_back(std::move(change));
  }
  return list;
}

std::string to_json(const Explanation& explanation) {
  Json path = Json::array(), terms = Json::array(), constants = Json::array(), resources = Json::array();
  for (const PathSegment& each : explanation.path) {
    path.push_back({{"begin_seconds", seconds(each.begin)},
                    {"end_seconds", seconds(each.end)},
                    {"what", each.what},
                    {"operations", each.operations},
                    {"bytes", each.bytes.value},
                    {"mostly", each.mostly}});
  }
  for (const sim::Term& term : explanation.terms)
    terms.push_back({{"term", to_string(term.kind)}, {"seconds", seconds(term.total())}});
  for (const ConstantCost& each : explanation.constants)
    constants.push_back({{"constant", each.key}, {"seconds_without", each.seconds}});
  for (const ResourceUse& each : explanation.resources)
    resources.push_back({{"resource", each.resource}, {"busy_seconds", each.busy_seconds}});
  const Json document{{"scenario", explanation.scenario},
                      {"policy", explanation.policy},
                      {"calibration", explanation.calibration},
                      {"seconds", explanation.seconds},
                      {"lower_bound_seconds", explanation.lower_bound_seconds},
                      {"lower_bound_binding", explanation.lower_bound_binding},
                      {"binding_resource", explanation.binding_resource},
                      {"wire_only_seconds", explanation.wire_only_seconds},
                      {"path", std::move(path)},
                      {"terms", std::move(terms)},
                      {"constants", std::move(constants)},
                      {"resources", std::move(resources)},
                      {"changes", changes_json(explanation)}};
  return document.dump(2) + "\n";
}

}  // namespace

std::string explanation_document(const Explanation& explanation, bool json) {
  if (json) return to_json(explanation);
  std::string text =
      fmt::format("{}: {} by {}, calibration {}; no plan can be faster than {} ({})\nwhat binds: {}\n",
                  explanation.scenario, time_text(explanation.seconds), explanation.policy,
                  explanation.calibration, time_text(explanation.lower_bound_seconds),
                  explanation.lower_bound_binding, explanation.binding_resource);
  return text + path_text(explanation) + costs_text(explanation) + changes_text(explanation);
}

}  // namespace isthmus::report

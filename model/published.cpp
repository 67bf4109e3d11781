#include "model/published.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::string_view policy_form = "the name of a policy, such as striped or gather-broadcast";

std::string read_policy(const YamlValue& value) {
  std::string name = value.text(policy_form);
  if (!is_name(name)) value.refuse(policy_form);
  return name;
}

void read_seconds(const YamlValue& value, Published& row) {
  constexpr std::string_view form = "seconds above zero as a number, or [low, high] with low at most high";
  if (value.is_list()) {
    const std::vector<YamlValue> ends = value.items(2);
    if (ends.size() != 2) value.refuse("a list of one item", form);
    row.seconds_low = ends[0].number(form);
    row.seconds_high = ends[1].number(form);
  } else {
    row.seconds_low = row.seconds_high = value.number(form);
  }
  if (row.seconds_low <= 0 || row.seconds_high > 1e9) value.refuse(form);
  if (row.seconds_low > row.seconds_high) {
    value.refuse(fmt::format("[{}, {}]", row.seconds_low, row.seconds_high), form);
  }
}

void read_alternatives(const YamlValue& value, Published& row) {
  for (const YamlValue& item : value.items(max_alternatives)) {
    const std::string name = read_policy(item);
    const bool again = std::count(row.alternatives.begin(), row.alternatives.end(), name) > 0;
    if (again || name == row.policy || name == no_policy)
      item.refuse("policies other than the row's own, each once");
    row.alternatives.push_back(name);
  }
}

/// A row that nobody could hold against the model is not evidence, and one that was left out says why.
void read_use(const YamlValue& item, Published& row) {
  const auto counted = item.find("counted"), fit = item.find("used_for_fit");
  row.counted = counted ? counted->flag() : !row.blind();
  if (row.counted && row.blind()) item.refuse("counted: true without seconds", "seconds, or counted: false");
  if (row.counted && row.policy == no_policy)
    item.at("policy").refuse("a policy, or counted: false with policy: none");
  if (!row.counted && !row.blind() && row.remark.empty())
    item.refuse("counted: false without a remark", "a remark that says why the row is not counted");
  if (fit) row.used_for_fit = fit->flag();
  if (row.used_for_fit && row.blind())
    item.refuse("used_for_fit: true without seconds", "seconds, or used_for_fit: false");
}

Published read_row(const YamlValue& item) {
  item.allow_only({"id", "policy", "alternatives", "seconds", "source", "counted", "used_for_fit", "remark",
                   "diagnosis"});
  Published row;
  row.id = item.at("id").text("a short name of this row");
  row.policy = read_policy(item.at("policy"));
  if (const auto value = item.find("alternatives")) read_alternatives(*value, row);
  if (const auto value = item.find("seconds")) read_seconds(*value, row);
  row.source = item.at("source").text("one line that says where the number was published");
  if (const auto value = item.find("remark"))
    row.remark = value->text("one line: what is unknown or assumed");
  if (const auto value = item.find("diagnosis"))
    row.diagnosis = value->text("one line: what the model or the report lacks");
  read_use(item, row);
  return row;
}

}  // namespace

std::vector<Published> read_published_rows(const YamlValue& value) {
  std::vector<Published> rows;
  for (const YamlValue& item : value.items(max_published)) {
    Published row = read_row(item);
    const auto same_id = [&](const Published& other) { return other.id == row.id; };
    if (std::any_of(rows.begin(), rows.end(), same_id)) {
      item.at("id").refuse(fmt::format("'{}' a second time", printable(row.id)), "each id once");
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string published_yaml(const Published& row) {
  std::string text = fmt::format("  - {{id: {}, policy: {}", yaml_text(row.id), yaml_text(row.policy));
  std::vector<std::string> alternatives;
  for (const std::string& name : row.alternatives) alternatives.push_back(yaml_text(name));
  if (!alternatives.empty()) text += fmt::format(", alternatives: [{}]", fmt::join(alternatives, ", "));
  if (!row.blind()) {
    text += row.seconds_low == row.seconds_high
                ? fmt::format(", seconds: {}", row.seconds_low)
                : fmt::format(", seconds: [{}, {}]", row.seconds_low, row.seconds_high);
  }
  text += fmt::format(", source: {}", yaml_text(row.source));
  if (!row.counted && !row.blind()) text += ", counted: false";
  if (row.used_for_fit) text += ", used_for_fit: true";
  if (!row.remark.empty()) text += fmt::format(", remark: {}", yaml_text(row.remark));
  if (!row.diagnosis.empty()) text += fmt::format(", diagnosis: {}", yaml_text(row.diagnosis));
  return text + "}\n";
}

}  // namespace isthmus

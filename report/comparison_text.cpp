#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/comparison.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

std::string published_beside(const Comparison& comparison, const std::string& policy) {
  std::string text;
  for (const Published& row : comparison.published) {
    if (row.policy == policy && !row.blind())
      text += fmt::format("{}{}", text.empty() ? "" : ", ", published_text(row));
  }
  return text.empty() ? "-" : text;
}

std::vector<std::string> cells(const Comparison& comparison, const PolicyRow& row) {
  return {row.policy,
          time_text(row.seconds),
          time_text(row.bulk_seconds),
          time_text(row.misc_seconds),
          time_text(row.other_seconds),
          row.seconds > 0 ? fmt::format("{:.0f} %", 100 * row.software_seconds / row.seconds) : "-",
          fmt::format("{:.1f} %", 100 * row.efficiency),
          size_text(row.network_bytes),
          size_text(row.nvlink_bytes),
          size_text(row.peak_staging_bytes),
          published_beside(comparison, row.policy),
          row.binding_resource};
}

nlohmann::ordered_json to_json(const PolicyRow& row) {
  if (!row.refused.empty()) return {{"policy", row.policy}, {"refused", row.refused}};
  if (!row.proven) {
    return {{"policy", row.policy}, {"proven", false}, {"violation", row.violations.front().message}};
  }
  return {{"policy", row.policy},
          {"seconds", row.seconds},
          {"bulk_seconds", row.bulk_seconds},
          {"misc_seconds", row.misc_seconds},
          {"other_seconds", row.other_seconds},
          {"software_seconds", row.software_seconds},
          {"efficiency", row.efficiency},
          {"network_bytes", row.network_bytes.value},
          {"nvlink_bytes", row.nvlink_bytes.value},
          {"peak_staging_bytes", row.peak_staging_bytes.value},
          {"full_tensor_materialised", row.full_tensor_materialised},
          {"setup_seconds", nullptr},  // communicator set-up is not modelled
          {"binding_resource", row.binding_resource},
          {"proven", row.proven},
          {"digest", fmt::format("{:016x}", row.digest)},
          {"plan_wall_seconds", row.plan_wall_seconds},
          {"check_wall_seconds", row.check_wall_seconds},
          {"simulate_wall_seconds", row.simulate_wall_seconds}};
}

}  // namespace

std::string to_table(const Comparison& comparison) {
  std::string text = fmt::format("{}: {} to move", comparison.scenario, size_text(comparison.payload));
  if (comparison.totals.parameters > 0) {
    text += fmt::format(" ({:.1f} billion parameters, bulk {:.2f} %)",
                        static_cast<double>(comparison.totals.parameters) * 1e-9,
                        100 * comparison.wire.bulk_fraction());
  }
  text += fmt::format(", calibration {}\nno plan can be faster than {} ({})\n\n", comparison.calibration,
                      time_text(seconds(comparison.bound.time)),
                      comparison.bound.binding.empty() ? "nothing has to move" : comparison.bound.binding);
  std::vector<std::vector<std::string>> rows{{"policy", "time", "bulk", "misc", "other", "software",
                                              "efficiency", "network", "NVLink", "staging/GPU", "published",
                                              "what binds"}};
  std::string refusals;
  for (const PolicyRow& row : comparison.policies) {
    if (row.predicted()) {
      rows.push_back(cells(comparison, row));
    } else if (row.refused.empty()) {
      refusals += fmt::format("{}: not proven: {}\n", row.policy, row.violations.front().message);
    } else {
      refusals += fmt::format("{}: refused: {}\n", row.policy, row.refused);
    }
  }
  if (rows.size() > 1) text += columns_text(rows);
  if (!refusals.empty()) text += "\n" + refusals;
  if (!comparison.published.empty()) text += "\npublished:\n";
  for (const Published& row : comparison.published) {
    text += fmt::format("  {}  {}  {}  ({})\n", row.id, row.policy, published_text(row), row.source);
  }
  return text;
}

std::string to_json(const Comparison& comparison) {
  nlohmann::ordered_json published = nlohmann::ordered_json::array();
  for (const Published& row : comparison.published) {
    nlohmann::ordered_json seconds;
    if (!row.blind()) seconds = {row.seconds_low, row.seconds_high};
    published.push_back(
        {{"id", row.id}, {"policy", row.policy}, {"seconds", std::move(seconds)}, {"source", row.source}});
  }
  nlohmann::ordered_json policies = nlohmann::ordered_json::array();
  for (const PolicyRow& row : comparison.policies) policies.push_back(to_json(row));
  const nlohmann::ordered_json document{
      {"scenario", comparison.scenario},
      {"calibration", comparison.calibration},
      {"parameters", comparison.totals.parameters},
      {"bytes", comparison.totals.bytes.value},
      {"payload_bytes", comparison.payload.value},
      {"target_live_bytes", comparison.live_bytes.value},
      {"lower_bound_seconds", seconds(comparison.bound.time)},
      {"lower_bound_any_route_seconds", seconds(comparison.bound.any_route)},
      {"lower_bound_binding", comparison.bound.binding},
      {"published", std::move(published)},
      {"policies", std::move(policies)}};
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report

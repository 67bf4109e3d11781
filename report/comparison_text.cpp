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

using Json = nlohmann::ordered_json;

/// "striped: 0.900 s network wire (bulk); ..." - terms from the longest to those below 1 % of the time.
std::string terms_text(const PolicyRow& row) {
  std::vector<std::pair<std::int64_t, std::string>> parts;
  for (const sim::Term& term : row.terms) {
    const auto add = [&](Duration time, std::string_view of) {
      if (seconds(time) < 0.01 * row.seconds) return;
      parts.emplace_back(time.value,
                         fmt::format("{} {}{}", time_text(seconds(time)), sim::in_words(term.kind), of));
    };
    add(term.bulk, " (bulk)");
    add(term.misc, " (misc)");
    add(term.other, "");
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& part : parts) text += fmt::format("{}{}", text.empty() ? "" : "; ", part.second);
  return fmt::format("  {}: {}\n", row.policy, text.empty() ? "-" : text);
}

/// What a row that quantises first is measured by.
std::string variant_text(const PolicyRow& row) {
  if (!row.quantised || !row.predicted()) return "";
  return fmt::format(
      "\n{}: {} to move, quantised at the source; no plan for that can be faster than {} ({})\n", row.policy,
      size_text(row.quantised->payload), time_text(seconds(row.quantised->bound.time)),
      row.quantised->bound.binding);
}

Json terms_json(const std::vector<sim::Term>& terms) {
  Json list = Json::array();
  for (const sim::Term& term : terms) {
    list.push_back({{"term", sim::to_string(term.kind)},
                    {"seconds", seconds(term.total())},
                    {"bulk_seconds", seconds(term.bulk)},
                    {"misc_seconds", seconds(term.misc)},
                    {"other_seconds", seconds(term.other)}});
  }
  return list;
}

Json links_json(const LinkUse& use, const std::vector<Link>& names) {
  Json links = Json::array(), ranks = Json::array(), resources = Json::array();
  for (const sim::LinkActivity& link : use.activity.links) {
    const Link& made = names[link.link.index()];
    links.push_back({{"link", made.name},
                     {"class", to_string(made.link_class)},
                     {"bytes", link.bytes.value},
                     {"bytes_per_second", link.rate.value},
                     {"busy_seconds", seconds(link.busy)},
                     {"load", link.load}});
  }
  for (const sim::RankActivity& rank : use.activity.ranks) {
    ranks.push_back({{"rank", rank.rank.value},
                     {"operations", rank.operations},
                     {"active_seconds", seconds(rank.active)},
                     {"active", rank.share}});
  }
  for (const sim::Work& work : use.work)
    resources.push_back({{"resource", work.resource}, {"busy_seconds", seconds(work.busy)}});
  return {{"step_seconds", seconds(use.activity.step)},
          {"links", std::move(links)},
          {"ranks", std::move(ranks)},
          {"resources", std::move(resources)}};
}

Json to_json(const PolicyRow& row, const std::vector<Link>& links) {
  if (!row.refused.empty()) return {{"policy", row.policy}, {"refused", row.refused}};
  if (!row.proven) {
    return {{"policy", row.policy}, {"proven", false}, {"violation", row.violations.front().message}};
  }
  if (!row.stopped.empty()) return {{"policy", row.policy}, {"proven", true}, {"stopped", row.stopped}};
  Json json{{"policy", row.policy},
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
            {"terms", terms_json(row.terms)},
            {"binding_resource", row.binding_resource},
            {"proven", row.proven},
            {"digest", fmt::format("{:016x}", row.digest)},
            {"plan_wall_seconds", row.plan_wall_seconds},
            {"check_wall_seconds", row.check_wall_seconds},
            {"simulate_wall_seconds", row.simulate_wall_seconds}};
  if (row.quantised) {
    json["quantized"] = to_string(Quantised::source);
    json["payload_bytes"] = row.quantised->payload.value;
    json["lower_bound_seconds"] = seconds(row.quantised->bound.time);
  }
  if (row.links) json["activity"] = links_json(*row.links, links);
  return json;
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
    } else if (!row.stopped.empty()) {
      refusals += fmt::format("{}: {}\n", row.policy, row.stopped);
    } else if (row.refused.empty()) {
      refusals += fmt::format("{}: not proven: {}\n", row.policy, row.violations.front().message);
    } else {
      refusals += fmt::format("{}: refused: {}\n", row.policy, row.refused);
    }
  }
  if (rows.size() > 1) text += columns_text(rows);
  for (const PolicyRow& row : comparison.policies) text += variant_text(row);
  if (rows.size() > 1) text += "\nwhat the time consists of, along the critical path:\n";
  for (const PolicyRow& row : comparison.policies) {
    if (row.predicted()) text += terms_text(row);
  }
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
  for (const PolicyRow& row : comparison.policies) policies.push_back(to_json(row, comparison.links));
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
      {"quantized", to_string(comparison.quantised)},
      {"published", std::move(published)},
      {"policies", std::move(policies)}};
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report

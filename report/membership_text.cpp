// A change of membership as text and JSON.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/membership.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using MembershipJson = nlohmann::ordered_json;

std::string headline(const MembershipReport& report) {
  const MembershipChange& change = report.question.change;
  std::string text = report.scenario + ":";
  if (change.empty()) text += " nobody leaves, nobody joins";
  std::string_view separator;
  const auto say = [&](std::string_view what, const std::vector<int>& hosts) {
    if (hosts.empty()) return;
    text += fmt::format("{} hosts {} {}", separator, host_list(hosts), what);
    separator = ",";
  };
  say("leave", change.leave);
  say("join generation", change.join_generate);
  say("join training", change.join_train);
  text +=
      fmt::format("\ntraining {} -> {} GPUs, generation {} -> {} GPUs, calibration {}\n", report.train_before,
                  report.train_after, report.generate_before, report.generate_after, report.calibration);
  if (!report.idle.empty())
    text += fmt::format("hosts {} stay, but no whole replica is left for them\n", host_list(report.idle));
  if (!report.spares.empty()) text += fmt::format("spares: hosts {}\n", host_list(report.spares));
  return text;
}

std::string share_of(Bytes part, Bytes all) {
  if (all.value == 0) return "-";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part.value) / static_cast<double>(all.value));
}

std::string catch_ups_text(const MembershipReport& report) {
  const CatchUpRow& first = report.catch_ups.front();
  if (first.refused.empty() && first.tensors == 0) {
    return fmt::format(
        "\nnothing moves before the next refit: all {} of the new membership stay where they are\n",
        size_text(first.needed));
  }
  std::vector<std::vector<std::string>> rows{
      {"copies from", "moves", "of a full refit", "stays", "boxes", "fastest by", "time"}};
  std::string refusals;
  for (const CatchUpRow& row : report.catch_ups) {
    const PlannedMove* const plan = row.fastest();
    if (plan == nullptr) {
      refusals += fmt::format("from the {}: refused: {}\n", to_string(row.from), row.refused);
      continue;
    }
    rows.push_back({std::string(to_string(row.from)), size_text(row.moved),
                    share_of(row.moved, report.full_bytes), size_text(row.kept),
                    fmt::format("{}", row.tensors), plan->policy, time_text(plan->seconds)});
  }
  std::string text =
      fmt::format("\nwhat moves so that everybody has the current weights (a full refit brings {}):\n",
                  size_text(report.full_bytes));
  return (rows.size() > 1 ? text + columns_text(rows) : text) + refusals;
}

std::string phases_text(const WayRow& row) {
  std::string text;
  for (const MembershipPhase& phase : row.phases)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", phase.what, time_text(phase.end - phase.begin));
  return text;
}

std::string ways_text(const MembershipReport& report) {
  std::vector<std::vector<std::string>> rows{{"way", "policy", "first refit ended", "within", "capacity lost",
                                              "later refits", "one after the other"}};
  std::string refusals;
  for (const WayRow& row : report.ways) {
    if (!row.refused.empty()) {
      refusals += fmt::format("{}{}{}: refused: {}\n", to_string(row.way), row.policy.empty() ? "" : " ",
                              row.policy, row.refused);
      continue;
    }
    rows.push_back({std::string(to_string(row.way)), row.policy, time_text(row.seconds),
                    fmt::format("{} - {}", time_text(row.low), time_text(row.high)),
                    fmt::format("{:.1f} GPU s", row.lost_gpu_seconds), time_text(row.refit_seconds),
                    phases_text(row)});
  }
  std::string text = "\n";
  if (rows.size() > 1) text += columns_text(rows);
  if (!refusals.empty()) text += (rows.size() > 1 ? "\n" : "") + refusals;
  return text;
}

std::string verdict(const MembershipReport& report) {
  const WayRow* const best = report.fastest();
  if (best == nullptr) return "\nno way can be done\n";
  const WayRow* least = best;
  for (const WayRow& row : report.ways)
    if (row.refused.empty() && row.lost_gpu_seconds < least->lost_gpu_seconds) least = &row;
  std::string text = fmt::format("\nfastest: {} with {}, {} until the first refit has ended\n",
                                 to_string(best->way), best->policy, time_text(best->seconds));
  std::string alike;
  for (const Way way : {Way::recreate, Way::shrink_grow, Way::spares}) {
    if (way == best->way) continue;
    for (const WayRow& row : report.ways) {
      if (row.way != way || !row.refused.empty() || row.low > best->high) continue;
      alike += fmt::format("{}{}", alike.empty() ? "" : ", ", to_string(way));
      break;
    }
  }
  if (!alike.empty()) text += fmt::format("not to be told apart from it (intervals overlap): {}\n", alike);
  if (least != best) {
    text += fmt::format("least capacity lost: {} with {}, {:.1f} GPU s\n", to_string(least->way),
                        least->policy, least->lost_gpu_seconds);
  }
  return text;
}

MembershipJson catch_up_json(const CatchUpRow& row) {
  MembershipJson json{{"copies_from", to_string(row.from)},
                      {"moved_bytes", row.moved.value},
                      {"kept_bytes", row.kept.value},
                      {"needed_bytes", row.needed.value},
                      {"boxes", row.tensors}};
  if (!row.refused.empty()) {
    json["refused"] = row.refused;
    return json;
  }
  MembershipJson plans = MembershipJson::array();
  for (const PlannedMove& plan : row.plans) {
    MembershipJson each{{"policy", plan.policy}};
    if (plan.refused.empty()) {
      each["seconds"] = plan.seconds;
    } else {
      each["refused"] = plan.refused;
    }
    plans.push_back(std::move(each));
  }
  json["plans"] = std::move(plans);
  return json;
}

MembershipJson way_json(const WayRow& row) {
  MembershipJson json{{"way", to_string(row.way)}, {"policy", row.policy}};
  if (!row.refused.empty()) {
    json["refused"] = row.refused;
    return json;
  }
  json["seconds"] = row.seconds;
  json["low_seconds"] = row.low;
  json["high_seconds"] = row.high;
  json["refit_seconds"] = row.refit_seconds;
  json["lost_gpu_seconds"] = row.lost_gpu_seconds;
  MembershipJson phases = MembershipJson::array();
  for (const MembershipPhase& phase : row.phases) {
    phases.push_back({{"what", phase.what},
                      {"begin_seconds", phase.begin},
                      {"end_seconds", phase.end},
                      {"serving_gpus", phase.serving}});
  }
  json["phases"] = std::move(phases);
  return json;
}

}  // namespace

std::string to_text(const MembershipReport& report) {
  return headline(report) + catch_ups_text(report) + ways_text(report) + verdict(report);
}

std::string to_json(const MembershipReport& report) {
  const MembershipChange& change = report.question.change;
  MembershipJson catch_ups = MembershipJson::array(), ways = MembershipJson::array();
  for (const CatchUpRow& row : report.catch_ups) catch_ups.push_back(catch_up_json(row));
  for (const WayRow& row : report.ways) ways.push_back(way_json(row));
  MembershipJson fastest = nullptr;
  if (const WayRow* const best = report.fastest())
    fastest = {{"way", to_string(best->way)}, {"policy", best->policy}, {"seconds", best->seconds}};
  const MembershipJson document{
      {"scenario", report.scenario},
      {"calibration", report.calibration},
      {"leave", change.leave},
      {"join_generate", change.join_generate},
      {"join_train", change.join_train},
      {"next_refit_seconds", report.question.next_refit},
      {"train_gpus", {{"before", report.train_before}, {"after", report.train_after}}},
      {"generate_gpus", {{"before", report.generate_before}, {"after", report.generate_after}}},
      {"idle_hosts", report.idle},
      {"spare_hosts", report.spares},
      {"full_refit_bytes", report.full_bytes.value},
      {"catch_ups", std::move(catch_ups)},
      {"ways", std::move(ways)},
      {"fastest", std::move(fastest)}};
  return document.dump(2) + "\n";
}

}  // namespace isthmus::report

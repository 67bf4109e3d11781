// isthmus membership: hosts leave and join between two refits.

#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/output.hpp"
#include "cli/scenario_input.hpp"
#include "model/calibration.hpp"
#include "model/input_fault.hpp"
#include "model/quantity.hpp"
#include "model/scenario_model.hpp"
#include "model/text.hpp"
#include "report/membership.hpp"

namespace isthmus::cli {
namespace {

constexpr std::string_view hosts_form = "hosts, such as 3, 0-3 or 0-3,7";
constexpr int most_hosts = 65'536;

/// "3" or "0-3", added to `hosts`.
bool add_hosts(std::string_view text, std::vector<int>& hosts) {
  const auto number = [&text](int& into) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), into);
    if (code != std::errc{} || into < 0 || into >= most_hosts) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return true;
  };
  int first = 0, last = 0;
  if (!number(first)) return false;
  last = first;
  if (text.starts_with('-')) {
    text.remove_prefix(1);
    if (!number(last)) return false;
  }
  if (!text.empty() || last < first) return false;
  for (int host = first; host <= last; ++host) hosts.push_back(host);
  return true;
}

void read_hosts(std::string_view option, std::string_view text, std::vector<int>& hosts) {
  const std::string_view all = text;
  while (true) {
    const std::size_t comma = std::min(text.find(','), text.size());
    if (!add_hosts(text.substr(0, comma), hosts)) {
      throw InputError({std::string(option), 0, ""}, fmt::format("'{}'", printable(all)), hosts_form);
    }
    if (comma == text.size()) break;
    text.remove_prefix(comma + 1);
  }
  std::sort(hosts.begin(), hosts.end());
  if (std::adjacent_find(hosts.begin(), hosts.end()) != hosts.end()) {
    throw InputError({std::string(option), 0, ""}, fmt::format("'{}'", printable(all)), "each host once");
  }
}

MembershipChange change_of(const MembershipOptions& options) {
  MembershipChange change;
  for (const std::string& text : options.leave) read_hosts("--leave", text, change.leave);
  for (const std::string& text : options.join) {
    constexpr std::string_view train = "train:", generate = "generate:";
    std::string_view rest = text;
    const bool trains = rest.starts_with(train);
    if (trains) rest.remove_prefix(train.size());
    if (rest.starts_with(generate)) rest.remove_prefix(generate.size());
    read_hosts("--join", rest, trains ? change.join_train : change.join_generate);
  }
  return change;
}

}  // namespace

int membership(const MembershipOptions& options) {
  report::MembershipQuestion question;
  question.policies = chosen_policies(options.policies);
  question.change = change_of(options);
  const std::optional<Duration> next = parse_duration(options.next_refit);
  if (!next) {
    throw InputError({"--next-refit", 0, ""}, fmt::format("'{}'", printable(options.next_refit)), time_form);
  }
  question.next_refit = seconds(*next);
  Scenario scenario = read_any(options.scenario, options.overrides, options.model);
  if (!scenario.model) {
    throw InputError(scenario.at(scenario.traffic ? "traffic" : "tensors"), "no whole refit",
                     "a scenario with model, train and generate");
  }
  if (sources_quantise(scenario)) {
    throw InputError(scenario.at("refit.quantize_at"), "source",
                     "target: catching up moves what is there, and quantises nothing");
  }
  scenario.disturbances.faults.clear();  // isthmus fail asks for those
  const Calibration calibration =
      read_calibration(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const MembershipCosts costs =
      read_membership_costs(scenario.calibration, scenario.file.parent_path(), scenario.at("calibration"));
  const Refit before = resolve(scenario);
  raise_all(membership_faults(scenario, before, question.change));
  const report::MembershipReport report =
      report::judge_membership(scenario, before, calibration, costs, question);
  print(options.json ? report::to_json(report) : report::to_text(report));
  return report.fastest() == nullptr ? 1 : 0;
}

}  // namespace isthmus::cli

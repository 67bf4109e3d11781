// Where two plans differ, in words: what they are for, what they carry, how much by kind, lane and pair, and
// the first step of each tensor that is not the same.

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/topology/topology.hpp"
#include "report/plan.hpp"
#include "report/plan_step.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_listed = 10;  // of tensors, pairs and steps each

class DifferenceWords {
 public:
  DifferenceWords(const ComparedPlans& plans, const PlanDifference& difference)
      : plans_(plans),
        difference_(difference),
        first_(plan_totals(plans.first.refit, plans.first.plan)),
        second_(plan_totals(plans.second.refit, plans.second.plan)) {}

  std::vector<Finding> find() {
    for (const Violation& violation : difference_.identity) limited("refit", violation.message);
    more("refit", "tensors that the plans are for differ");
    if (difference_.lanes) add("lanes", fmt::format("{}; {}", lanes(plans_.first), lanes(plans_.second)));
    if (difference_.buffers) add("buffers", buffers());
    for (const std::string& tensor : difference_.only_first) only("first", tensor);
    for (const std::string& tensor : difference_.only_second) only("second", tensor);
    more("tensor", "tensors are carried by one plan only");
    add_traffic("steps", "in all", first_.all, second_.all);
    add_kinds();
    add_lanes();
    add_pairs();
    for (const StepDifference& step : difference_.steps) limited("step", words(step));
    more("step", "tensors have other steps");
    return std::move(found_);
  }

 private:
  void add(const std::string& code, const std::string& text) { found_.push_back({code, text}); }
  void limited(const std::string& code, const std::string& text) {
    if (++listed_ <= most_listed) add(code, text);
  }
  void more(const std::string& code, std::string_view what) {
    if (listed_ > most_listed) add(code, fmt::format("{} further {}", listed_ - most_listed, what));
    listed_ = 0;
  }
  void only(std::string_view which, const std::string& tensor) {
    limited("tensor", fmt::format("tensor {}: carried by the {} plan only", tensor, which));
  }

  void add_traffic(const std::string& code, std::string_view what, const PlanTraffic& a,
                   const PlanTraffic& b) {
    if (a == b) return;
    add(code, fmt::format("{}: {} steps, {} bytes; {} steps, {} bytes", what, a.steps, a.bytes.value, b.steps,
                          b.bytes.value));
  }
  void add_kinds();
  void add_lanes();
  void add_pairs();
  std::string lanes(const PlanFile& file) const;
  std::string buffers() const;
  std::string words(const StepDifference& step) const;

  const ComparedPlans& plans_;
  const PlanDifference& difference_;
  PlanTotals first_, second_;
  std::vector<Finding> found_;
  std::size_t listed_ = 0;
};

void DifferenceWords::add_kinds() {
  for (auto i = static_cast<int>(StepKind::send); i <= static_cast<int>(last_step_kind); ++i) {
    const auto kind = static_cast<StepKind>(i);
    const auto a = first_.by_kind.find(kind), b = second_.by_kind.find(kind);
    add_traffic("kind", to_string(kind), a == first_.by_kind.end() ? PlanTraffic{} : a->second,
                b == second_.by_kind.end() ? PlanTraffic{} : b->second);
  }
}

void DifferenceWords::add_lanes() {
  const std::size_t lanes = std::max(first_.by_lane.size(), second_.by_lane.size());
  for (std::size_t i = 0; i < lanes; ++i) {
    add_traffic("lane", fmt::format("lane {}", i),
                i < first_.by_lane.size() ? first_.by_lane[i] : PlanTraffic{},
                i < second_.by_lane.size() ? second_.by_lane[i] : PlanTraffic{});
  }
}

void DifferenceWords::add_pairs() {
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto& [pair, bytes] : first_.by_pair) pairs.insert(pair);
  for (const auto& [pair, bytes] : second_.by_pair) pairs.insert(pair);
  for (const auto& pair : pairs) {
    const auto a = first_.by_pair.find(pair), b = second_.by_pair.find(pair);
    const Bytes first = a == first_.by_pair.end() ? Bytes{} : a->second;
    const Bytes second = b == second_.by_pair.end() ? Bytes{} : b->second;
    if (first == second) continue;
    limited("pair", fmt::format("rank {} to rank {}: {} bytes; {} bytes", pair.first.value, pair.second.value,
                                first.value, second.value));
  }
  more("pair", "pairs of ranks exchange other amounts");
}

std::string DifferenceWords::lanes(const PlanFile& file) const {
  std::string text = fmt::format("{} lanes", file.plan.lanes.size());
  for (std::size_t i = 0; i < std::min(file.plan.lanes.size(), most_listed); ++i) {
    const Lane& lane = file.plan.lanes[i];
    text += fmt::format("{}{} (window {}{})", i == 0 ? ": " : ", ", lane_text(file.plan, i), lane.window,
                        lane.coalesce ? ", coalescing" : "");
  }
  return text;
}

std::string DifferenceWords::buffers() const {
  const auto sum = [](const Plan& plan) {
    std::string text = fmt::format("{} staging buffers", plan.buffers.size());
    for (std::size_t i = 0; i < std::min(plan.buffers.size(), most_listed); ++i) {
      text += fmt::format("{}{} of {} bytes", i == 0 ? ": " : ", ", plan.buffers[i].name,
                          plan.buffers[i].size.value);
    }
    return text;
  };
  return fmt::format("{}; {}", sum(plans_.first.plan), sum(plans_.second.plan));
}

std::string DifferenceWords::words(const StepDifference& step) const {
  if (step.staging) return fmt::format("tensor {}: staged elsewhere, or for another refit", step.tensor);
  const auto side = [&](const PlanFile& file, std::size_t instance) {
    const std::size_t steps = file.plan.pattern(file.plan.instances[instance]).steps.size();
    return step.step < steps ? to_text(PlanStep{file, instance, step.step})
                             : fmt::format("no step {}", step.step);
  };
  return fmt::format("tensor {}: {}; {}", step.tensor, side(plans_.first, step.first),
                     side(plans_.second, step.second));
}

}  // namespace

std::string plan_difference_document(const ComparedPlans& plans, const PlanDifference& difference,
                                     bool json) {
  std::vector<Finding> found;
  if (!difference.equal()) found = DifferenceWords(plans, difference).find();
  if (json) {
    Json differences = Json::array();
    for (const Finding& each : found) differences.push_back({{"code", each.code}, {"text", each.text}});
    const Json document{{"first", plans.first_name},
                        {"second", plans.second_name},
                        {"first_policy", plans.first.plan.policy},
                        {"second_policy", plans.second.plan.policy},
                        {"equal", difference.equal()},
                        {"tensors_with_other_steps", difference.steps.size()},
                        {"differences", std::move(differences)}};
    return document.dump(2) + "\n";
  }
  if (difference.equal()) {
    return fmt::format("{} and {}: the same steps for each of {} tensors\n", plans.first_name,
                       plans.second_name, plans.first.refit.tensors.size());
  }
  std::string text = fmt::format("{}; {}:\n", plans.first_name, plans.second_name);
  for (const Finding& each : found) text += fmt::format("  {}: {}\n", each.code, each.text);
  return text;
}

}  // namespace isthmus::report

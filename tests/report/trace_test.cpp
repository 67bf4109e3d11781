#include "report/trace.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "hw/host.hpp"
#include "planner/policy.hpp"
#include "sim/simulation.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::report::trace_test {
namespace {

using Json = nlohmann::json;
using Lane = std::pair<std::int64_t, std::int64_t>;  // process, row

struct WrittenTrace {
  std::string text;
  TraceSummary summary;
  std::size_t pieces = 0;
};

template <class Write>
WrittenTrace collect(Write&& write) {
  WrittenTrace trace;
  trace.summary = write([&trace](std::string_view piece) {
    trace.text += piece;
    ++trace.pieces;
  });
  return trace;
}

std::int64_t picoseconds(const Json& microseconds) { return std::llround(microseconds.get<double>() * 1e6); }

/// The trace read again, judged as far as it can be without knowing what it is of.
struct ReadTrace {
  explicit ReadTrace(const std::string& text) : document(Json::parse(text)) {
    for (const Json& event : document["traceEvents"]) {
      const Lane lane{event["pid"], event["tid"]};
      if (event["ph"] == "X") spans[lane].push_back(event);
      if (event["ph"] == "C") counters[event["name"]].push_back(event);
      if (event["name"] == "process_name") processes[lane.first] = event["args"]["name"];
      if (event["name"] == "thread_name") rows[lane] = event["args"]["name"];
    }
  }

  /// What is wrong, or nothing.
  std::string fault() const {
    for (const auto& [lane, events] : spans) {
      if (rows.count(lane) == 0 || processes.count(lane.first) == 0) return "a lane without a name";
      std::int64_t before = 0;
      for (const Json& event : events) {
        const std::int64_t begin = picoseconds(event["ts"]), time = picoseconds(event["dur"]);
        if (begin < before || time < 0) return "overlapping: " + event.dump();
        before = begin + time;
      }
      if (before > end()) return "after the end";
    }
    if (spans.size() != rows.size()) return "an empty row";
    for (const auto& [name, events] : counters) {
      if (events.size() != trace_steps + 1) return "steps of " + name;
    }
    return "";
  }

  std::int64_t end() const { return std::llround(document["otherData"]["seconds"].get<double>() * 1e12); }

  /// Spans by operation.
  std::map<std::int64_t, Json> of_category(const std::string& category) const {
    std::map<std::int64_t, Json> found;
    for (const auto& [lane, events] : spans) {
      for (const Json& event : events) {
        if (event["cat"] != category) continue;
        EXPECT_TRUE(found.emplace(event["args"]["operation"], event).second) << "twice";
      }
    }
    return found;
  }

  Json document;
  std::map<Lane, std::vector<Json>> spans;
  std::map<Lane, std::string> rows;
  std::map<std::int64_t, std::string> processes;
  std::map<std::string, std::vector<Json>> counters;
};

Calibration h100() { return read_calibration("h100-ib400", project_folder() / "scenarios"); }

/// On every fifth GPU of two hosts.
Refit random_refit() {
  Refit refit = test::make_refit(*test::refit_cases());
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * 5 % 16};
  return refit;
}

/// Of one policy that serves the layout.
Plan plan_of(const Refit& refit) { return *rc::gen::elementOf(test::plans_of(refit)); }

WrittenTrace predicted(const Refit& refit, const Plan& plan, std::size_t limit) {
  return collect([&](const TraceSink& sink) { return trace_prediction(refit, plan, h100(), limit, sink); });
}

RC_GTEST_PROP(Trace, has_named_lanes_without_overlaps_and_every_byte_within_its_bound, ()) {
  const Refit refit = random_refit();
  const auto limit = *rc::gen::inRange<std::size_t>(1, 60);
  const Plan plan = plan_of(refit);
  const WrittenTrace written = predicted(refit, plan, limit);
  const ReadTrace trace(written.text);
  RC_ASSERT(trace.fault() == "");
  const auto operations = trace.of_category("operation");
  std::int64_t bytes = written.summary.dropped_bytes.value, all_bytes = 0;
  for (const auto& [unused, event] : operations) bytes += event["args"]["bytes"].get<std::int64_t>();
  const Operations expanded = expand(refit, plan);
  for (const Operation& operation : expanded.list) all_bytes += operation.bytes.value;
  RC_ASSERT(bytes == all_bytes);
  RC_ASSERT(operations.size() == written.summary.operations);
  RC_ASSERT(operations.size() == std::min(limit, expanded.list.size()));
  RC_ASSERT(operations.size() + written.summary.dropped_operations == expanded.list.size());
  RC_ASSERT(trace.document["otherData"]["dropped_operations"] == written.summary.dropped_operations);
}

RC_GTEST_PROP(Trace, keeps_the_critical_path_and_then_the_longest, ()) {
  const Refit refit = random_refit();
  const auto limit = *rc::gen::inRange<std::size_t>(1, 60);
  const Plan plan = plan_of(refit);
  const ReadTrace trace(predicted(refit, plan, limit).text);
  const Operations expanded = expand(refit, plan);
  const Timeline timeline = sim::simulate(refit, expanded, h100()).timeline;
  const auto kept = trace.of_category("operation");
  const std::vector<std::uint32_t> path = timeline.critical_path();
  const std::set<std::uint32_t> critical(path.begin(), path.end());
  std::size_t kept_of_path = 0;
  Duration shortest{std::numeric_limits<std::int64_t>::max()}, longest_dropped;
  for (std::uint32_t i = 0; i < timeline.spans.size(); ++i) {
    const Duration time = timeline.spans[i].end - timeline.spans[i].ready;
    const bool is_kept = kept.count(i) > 0;
    if (is_kept && critical.count(i) > 0) {
      ++kept_of_path;
      continue;
    }
    Duration& bound = is_kept ? shortest : longest_dropped;
    bound = is_kept ? std::min(bound, time) : std::max(bound, critical.count(i) > 0 ? Duration{} : time);
  }
  RC_ASSERT(kept_of_path == std::min(limit, path.size()));
  RC_ASSERT(shortest >= longest_dropped);
  const auto shown = trace.of_category("path");
  RC_ASSERT(shown.size() == kept_of_path);
  if (kept_of_path < path.size()) return;
  std::int64_t time = 0;
  for (const auto& [unused, event] : shown) time += picoseconds(event["dur"]);
  RC_ASSERT(time == timeline.end.value);
}

RC_GTEST_PROP(Trace, shows_flows_within_their_operations, ()) {
  const Refit refit = random_refit();
  const Plan plan = plan_of(refit);
  const ReadTrace trace(predicted(refit, plan, 100'000).text);
  const auto operations = trace.of_category("operation");
  for (const auto& [operation, flow] : trace.of_category("flow")) {
    const Json& whole = operations.at(operation);
    RC_ASSERT(picoseconds(flow["ts"]) >= picoseconds(whole["ts"]));
    RC_ASSERT(picoseconds(flow["ts"]) + picoseconds(flow["dur"]) ==
              picoseconds(whole["ts"]) + picoseconds(whole["dur"]));
    RC_ASSERT(flow["pid"] == whole["pid"] && flow["args"] == whole["args"]);
  }
}

RC_GTEST_PROP(Trace, counts_what_links_carry, ()) {
  const Refit refit = random_refit();
  const Plan plan = plan_of(refit);
  const ReadTrace trace(predicted(refit, plan, 1).text);
  const Calibration calibration = h100();
  const Operations expanded = expand(refit, plan);
  const Timeline timeline = sim::simulate(refit, expanded, h100()).timeline;
  for (std::uint32_t l = 0; l < timeline.link_bytes.size(); ++l) {
    const Link& link = refit.fabric.links()[l];
    const auto counter = trace.counters.find(link.name);
    RC_ASSERT((counter != trace.counters.end()) == (timeline.link_bytes[l].value > 0));
    if (counter == trace.counters.end()) continue;
    double share = 0;  // of steps
    for (const Json& event : counter->second) share += event["args"]["percent"].get<double>() / 100;
    const double step = counter->second[1]["ts"].get<double>() * 1e-6;
    const double carried = share * step * static_cast<double>(calibration.achieved(link).value);
    const auto bytes = static_cast<double>(timeline.link_bytes[l].value);
    const double rounding = 1e-5 * trace_steps * step * static_cast<double>(calibration.achieved(link).value);
    RC_ASSERT(std::abs(carried - bytes) <= 1e-6 * bytes + 1e3 + rounding);
  }
}

RC_GTEST_PROP(Trace, is_equal_for_equal_runs, ()) {
  const Refit refit = random_refit();
  const Plan plan = plan_of(refit);
  RC_ASSERT(predicted(refit, plan, 20).text == predicted(refit, plan, 20).text);
}

TEST(Trace, of_a_measured_run_has_the_same_form) {
  const Refit refit = resolve(read_scenario(project_folder() / "scenarios/cases/uneven-ceil.yaml"));
  for (const Plan& plan : test::plans_of(refit)) {
    const hw::Program program(refit, plan);
    const hw::Measurement measurement = hw::HostExecutor().run(program, {});
    const WrittenTrace written = collect(
        [&](const TraceSink& sink) { return trace_measurement(refit, plan, measurement, 100'000, sink); });
    const ReadTrace trace(written.text);
    EXPECT_EQ(trace.fault(), "");
    EXPECT_EQ(trace.of_category("operation").size(), program.operations().list.size());
    EXPECT_EQ(trace.end(), measurement.timeline.end.value);
    EXPECT_EQ(trace.document["otherData"]["policy"], plan.policy);
  }
}

TEST(Trace, is_written_in_pieces_and_stays_as_small_as_asked) {
  const Refit refit = resolve(read_scenario(project_folder() / "scenarios/qwen3-30b-a3b-h100.yaml"));
  const Plan plan = std::get<Plan>(plan_p2p(refit));
  const WrittenTrace small = predicted(refit, plan, 10), large = predicted(refit, plan, 2000);
  EXPECT_GT(large.pieces, 5U);
  EXPECT_GT(large.summary.dropped_operations, 0U);
  EXPECT_EQ(large.summary.operations, 2000U);
  EXPECT_LE(small.summary.links, trace_most_links);
  EXPECT_LT(large.text.size() - small.text.size(), 1990 * 7 * 250U);
  EXPECT_EQ(ReadTrace(large.text).fault(), "");
}

TEST(Trace, names_what_runs_where) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{1000}, Dtype::u8, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{1000}, Dtype::u8, contiguous_mesh({2}, Rank{7}), {{}}, ChunkRule::even};
  Refit refit = test::make_refit({{spec}, 9});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  const ReadTrace trace(predicted(refit, std::get<Plan>(plan_p2p(refit)), 10).text);
  std::set<std::string> rows;
  for (const auto& [lane, name] : trace.rows) rows.insert(trace.processes.at(lane.first) + ": " + name);
  EXPECT_EQ(rows.count("NVLink domain 0: GPU 0"), 1U);
  EXPECT_EQ(rows.count("NVLink domain 0: NIC of GPU 0"), 1U);
  EXPECT_EQ(rows.count("NVLink domain 0: NVLink of domain 0"), 1U);
  EXPECT_EQ(rows.count("critical path of p2p (predicted under h100-ib400): critical path"), 1U);
  EXPECT_EQ(trace.counters.count("NIC out of GPU 0 on host 0"), 1U);
  std::set<std::string> names;
  for (const auto& [unused, event] : trace.of_category("operation")) names.insert(event["name"]);
  EXPECT_EQ(names, (std::set<std::string>{"send 0 to 7", "send 0 to 8"}));
}

}  // namespace
}  // namespace isthmus::report::trace_test

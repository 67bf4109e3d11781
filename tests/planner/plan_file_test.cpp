#include "planner/plan_file.hpp"

#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/json_schema.hpp"
#include "tests/support/plan_builder.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/scenario_texts.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::plan_file_test {
namespace {

using ::testing::HasSubstr;

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  EXPECT_TRUE(stream) << file;
  return {std::istreambuf_iterator<char>(stream), {}};
}

std::vector<std::uint32_t> after(const Pattern& pattern, const Step& step) {
  return {pattern.after.begin() + step.after_begin, pattern.after.begin() + step.after_end};
}

/// What both steps' kind uses.
bool same_step(const Pattern& a, const Step& x, const Pattern& b, const Step& y) {
  const auto plain = [](const Step& step) {
    return std::tuple(step.kind, step.from, step.to, step.lane, step.group, step.parts, step.region);
  };
  if (plain(x) != plain(y) || after(a, x) != after(b, y)) return false;
  if (x.kind != StepKind::all_gather && x.source != y.source) return false;
  return is_collective(x.kind) ? x.members == y.members : x.target == y.target;
}

/// Empty when both plans are the same.
std::string plan_fault(const Plan& a, const Plan& b) {
  const auto lane = [](const Lane& each) {
    return std::tuple(each.name, each.window, each.coalesce, each.split);
  };
  if (a.splits != b.splits) return "splits";
  if (a.policy != b.policy || a.version != b.version) return "policy or refit";
  if (!std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(),
                  [&](const Lane& x, const Lane& y) { return lane(x) == lane(y); }))
    return "lanes";
  if (!std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                  [](const auto& x, const auto& y) { return x.name == y.name && x.size == y.size; }))
    return "buffers";
  if (a.patterns.size() != b.patterns.size() || a.instances.size() != b.instances.size()) return "counts";
  for (std::size_t p = 0; p < a.patterns.size(); ++p) {
    const Pattern &x = a.patterns[p], &y = b.patterns[p];
    if (x.members != y.members || x.steps.size() != y.steps.size()) return fmt::format("pattern {}", p);
    for (std::size_t i = 0; i < x.steps.size(); ++i) {
      if (!same_step(x, x.steps[i], y, y.steps[i])) return fmt::format("pattern {} step {}", p, i);
    }
  }
  for (std::size_t i = 0; i < a.instances.size(); ++i) {
    const auto key = [](const Instance& each) {
      return std::tuple(each.pattern, each.tensor, each.source_base, each.target_base, each.lane, each.buffer,
                        each.offset, each.version, each.schedule == Instance::no_schedule ? each.group : 0);
    };
    const Instance &x = a.instances[i], &y = b.instances[i];
    bool same = key(x) == key(y);
    for (std::size_t s = 0; same && s < a.pattern(x).steps.size(); ++s)
      same = a.group_of(x, s) == b.group_of(y, s);
    if (!same) return fmt::format("instance {}", i);
  }
  return {};
}

/// Writes, reads, compares, and writes again.
std::string round_trip_fault(const Scenario& scenario, const Refit& refit, const Plan& plan) {
  const std::string text = to_json(scenario, refit, plan);
  const PlanFile back = plan_from_json(text, scenario.file.parent_path() / "plan.json");
  if (const std::string fault = plan_fault(plan, back.plan); !fault.empty()) return fault + " of " + text;
  if (!same_content(scenario, back.scenario)) return "other scenario: " + text;
  if (to_json(back.scenario, back.refit, back.plan) != text) return "other bytes: " + text;
  if (refit.geometries != back.refit.geometries) return "other geometries: " + text;
  for (std::size_t i = 0; i < refit.tensors.size(); ++i) {
    const auto key = [](const RefitEntry& entry) {
      return std::tuple(entry.tensor.name, entry.tensor.shape, entry.tensor.dtype, entry.tensor.role,
                        entry.tensor.copy, entry.geometry, entry.source_base, entry.target_base);
    };
    if (key(refit.tensors[i]) != key(back.refit.tensors[i])) return "other tensors: " + text;
  }
  return refit.gpu_of_rank == back.refit.gpu_of_rank ? "" : "other GPUs: " + text;
}

Scenario scenario_of(const test::RefitCase& refit_case) {
  std::ostringstream yaml;
  showValue(refit_case, yaml);
  return parsed(yaml.str());
}

RC_GTEST_PROP(PlanFile, gives_back_every_plan_and_the_same_bytes, ()) {
  const Scenario scenario = scenario_of(*test::refit_cases());
  const Refit refit = resolve(scenario);
  Plan plan = test::build_plan(refit, test::options_of(*rc::gen::inRange<std::uint64_t>(0, 100'000)));
  if (*rc::gen::arbitrary<bool>()) {
    plan.version = 7;
    for (Instance& instance : plan.instances) instance.version = *rc::gen::inRange<std::uint32_t>(6, 8);
    plan.buffers = {{"shared \"pool\"", Bytes{4096}}, {"", Bytes{0}}};
    plan.instances[0].buffer = 1;
    plan.instances[0].offset = Bytes{512};
    plan.splits = {{Split::none, 3, {{Rank{0}, 1}, {Rank{1}}}}, {0, Split::none, {}}};
    plan.lanes[0].split = 1;
  }
  const std::string fault = round_trip_fault(scenario, refit, plan);
  if (!fault.empty()) RC_FAIL(fault);
}

RC_GTEST_PROP(PlanFile, gives_back_the_plans_of_every_policy, ()) {
  const Scenario scenario = scenario_of(*test::refit_cases());
  const Refit refit = resolve(scenario);
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    if (std::holds_alternative<Refused>(result)) continue;
    const std::string fault = round_trip_fault(scenario, refit, std::get<Plan>(result));
    if (!fault.empty()) RC_FAIL(fmt::format("{}: {}", policy.name, fault));
  }
}

TEST(PlanFile, of_a_whole_model_is_proven_without_the_models_configuration) {
  const auto file = project_folder() / "scenarios/qwen3-4b-h100.yaml";
  const Scenario scenario = read_scenario(file, {{"model.layers", "2"}});
  const Refit refit = resolve(scenario);
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    if (std::holds_alternative<Refused>(result)) continue;
    EXPECT_EQ(round_trip_fault(scenario, refit, std::get<Plan>(result)), "") << policy.name;
    const std::string text = to_json(scenario, refit, std::get<Plan>(result));
    const PlanFile elsewhere = plan_from_json(text, "/nowhere/plan.json");
    EXPECT_TRUE(check(elsewhere.refit, elsewhere.plan).proven()) << policy.name;
  }
}

TEST(PlanFile, of_a_model_without_tensors_reads_the_configuration_beside_the_plan) {
  const auto models = project_folder() / "scenarios";
  const Scenario scenario = read_scenario(models / "qwen3-4b-h100.yaml", {{"model.layers", "1"}});
  const Refit refit = resolve(scenario);
  nlohmann::json document = nlohmann::json::parse(to_json(scenario, refit, std::get<Plan>(plan_p2p(refit))));
  document.erase("tensors");
  document.erase("geometries");
  const PlanFile file = plan_from_json(document.dump(), models / "plan.json");
  EXPECT_TRUE(check(file.refit, file.plan).proven());
  EXPECT_THROW(plan_from_json(document.dump(), "/nowhere/plan.json"), InputError);
}

/// The first block of JSON in the documentation.
std::string worked_example() {
  const std::string page = content_of(project_folder() / "docs/plan-format.md");
  const std::size_t begin = page.find("```json\n") + 8;
  return page.substr(begin, page.find("```", begin) - begin);
}

TEST(PlanFile, reads_and_proves_the_documented_example) {
  const PlanFile file = plan_from_json(worked_example(), "plan.json");
  EXPECT_EQ(file.plan.policy, "by-hand");
  EXPECT_EQ(file.plan.step_count(), 3U);
  const Proof proof = check(file.refit, file.plan);
  EXPECT_TRUE(proof.proven());
  EXPECT_EQ(proof.target_bytes, Bytes{32});
}

TEST(PlanFile, is_known_by_its_content) {
  EXPECT_TRUE(is_plan_text(worked_example()));
  EXPECT_TRUE(is_plan_text("\n {\"format\": \"other\", \"patterns\": [], \"instances\": []"));
  EXPECT_FALSE(is_plan_text(bare_tensor));
  EXPECT_FALSE(is_plan_text(R"({"train": {"num_gpus": 8}})"));
  EXPECT_FALSE(is_plan_text(""));
}

TEST(PlanFile, has_the_form_of_its_schema) {
  const auto schema = nlohmann::json::parse(content_of(project_folder() / "docs/plan.schema.json"));
  const auto fault = [&](const std::string& text) {
    return test::schema_fault(schema, nlohmann::json::parse(text));
  };
  EXPECT_EQ(fault(worked_example()), "");
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Scenario scenario = scenario_of(test::sample_case(seed));
    const Refit refit = resolve(scenario);
    EXPECT_EQ(fault(to_json(scenario, refit, test::build_plan(refit, test::options_of(seed)))), "") << seed;
  }
  const Scenario scenario = scenario_of(test::sample_case(0));
  const Refit with_splits = resolve(scenario);
  Plan divided = std::get<Plan>(plan_p2p(with_splits));
  divided.splits = {{Split::none, 3, {{Rank{0}, 1}, {Rank{1}}}}, {0, Split::none, {}}};
  divided.lanes[0].split = 1;
  EXPECT_EQ(fault(to_json(scenario, with_splits, divided)), "");
  const Scenario model =
      read_scenario(project_folder() / "scenarios/qwen3-4b-h100.yaml", {{"model.layers", "1"}});
  const Refit refit = resolve(model);
  for (const Policy& policy : policies()) {
    const PlanResult result = policy.make(refit);
    if (const Plan* plan = std::get_if<Plan>(&result)) {
      EXPECT_EQ(fault(to_json(model, refit, *plan)), "") << policy.name;
    }
  }
  // The schema is no rubber stamp, and refuses nothing that the reader accepts.
  const std::vector<std::pair<std::string, std::string>> damages{
      {"\"version\": 1", "\"version\": 2"},        {"\"s1\"", "\"q1\""},
      {"\"kind\": \"send\"", "\"kind\": \"fax\""}, {"\"group\": 1", "\"group\": -1"},
      {"[[0, 2], [0, 2]]", "[[0], [0, 2]]"},       {"\"lanes\"", "\"lane\""},
      {"\"pattern\": 0", "\"pattern\": \"0\""}};
  for (const auto& [from, to] : damages) {
    const std::string damaged = replaced(worked_example(), from, to);
    EXPECT_NE(fault(damaged), "") << to;
    EXPECT_THROW(plan_from_json(damaged, "plan.json"), InputError) << to;
  }
}

TEST(PlanFile, names_files_as_seen_from_its_own_folder) {
  const TemporaryFolder folder;
  folder.write("scenarios/models/m.json", "{}");
  Scenario scenario = parsed(whole_refit);
  scenario.file = folder.path() / "scenarios/s.yaml";
  scenario.model->config = "models/m.json";
  scenario.fabric.parts.push_back({});
  scenario.fabric.parts[0].import_file = "host.xml";
  const Scenario seen = seen_from(scenario, folder.path() / "plans/new");
  EXPECT_EQ(seen.model->config, "../../scenarios/models/m.json");
  EXPECT_EQ(seen.fabric.parts[0].import_file, "../../scenarios/host.xml");
  EXPECT_EQ(seen_from(scenario, folder.path() / "scenarios").model->config, "models/m.json");
}

TEST(PlanFile, is_read_from_a_file_and_a_missing_one_is_named) {
  const TemporaryFolder folder;
  const PlanFile file = read_plan(folder.write("plan.json", worked_example()));
  EXPECT_EQ(file.scenario.name, "plan");  // the file's stem
  try {
    read_plan(folder.path() / "none.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("none.json: cannot be read"));
  }
}

}  // namespace
}  // namespace isthmus::plan_file_test

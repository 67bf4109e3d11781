// A sweep's result is that of a run that prunes nothing, whatever the number of threads and wherever it was
// interrupted.

#include "report/sweep.hpp"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "model/input.hpp"
#include "model/validation.hpp"
#include "report/sweep_crew.hpp"
#include "report/sweep_documents.hpp"
#include "report/sweep_journal.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/test_scale.hpp"

namespace isthmus::report {
namespace {

/// A model of one or two layers on two to four hosts.
struct SpaceText {
  int layers = 1;
  std::string train_tp = "[1, 2]", train_ep = "[2, 4, 3]", train_pp = "[1, 2]", generate_gpus = "8",
              generate_tp = "[2, 8]", generate_ep = "[1, 8]";
  std::string placements = "[contiguous, interleaved]", policies = "[balanced, striped, gather-broadcast]";
  std::string bulk = "[ffn, all]", calibrations = "h100-ib400";
  int hosts = 3;

  std::string yaml() const {
    return fmt::format(
        "name: small\n"
        "model: {{config: models/qwen3-30b-a3b.json, layers: {}}}\n"
        "fabric: {{preset: dgx-h100, hosts: {}}}\n"
        "train: {{gpus: 8, tp: {}, ep: {}, etp: 1, pp: {}}}\n"
        "generate: {{gpus: {}, tp: {}, ep: {}}}\n"
        "placements: {}\npolicies: {}\nrefit: {{bulk: {}, streams: [1, 2]}}\ncalibrations: {}\n"
        "memory: {{gpu: 24 GB, kv_cache: 16 GB, activations: 16 GB}}\n",
        layers, hosts, train_tp, train_ep, train_pp, generate_gpus, generate_tp, generate_ep, placements,
        policies, bulk, calibrations);
  }
};

SpaceText sample_space(std::uint64_t seed) {
  const rc::Gen<SpaceText> spaces = rc::gen::exec([] {
    const auto pick = [](std::vector<std::string> texts) { return *rc::gen::elementOf(std::move(texts)); };
    SpaceText text;
    text.train_tp = pick({"1", "[1, 2]", "[2, 4]"});
    text.train_ep = pick({"[2, 4]", "8", "[1, 3]"});
    text.train_pp = pick({"1", "2"});
    text.generate_gpus = pick({"8", "[8, 16]"});
    text.generate_tp = pick({"[2, 8]", "[1, 4]", "[8, 16]"});
    text.generate_ep = pick({"1", "[1, 8]"});
    text.placements = pick({"contiguous", "[contiguous, interleaved]", "[rail-aligned, co-racked]"});
    text.policies = pick({"[balanced, p2p]", "[striped, golden]", "[m2n-uniform, gather-broadcast, balanced]",
                          "[p2p, m2n-node-aware]"});
    text.bulk = pick({"ffn", "[ffn, all]"});
    text.calibrations = pick({"h100-ib400", "wire-only", "[h100-ib400, wire-only]"});
    text.layers = *rc::gen::inRange(1, 3);
    return text;
  });
  return spaces(rc::Random(seed), 20).value();
}

/// Whole sweeps take too long for a hundred cases each.
constexpr std::uint64_t sweeps = 4 * test::shards;

/// A sweep with all that it needs.
class SmallSweep {
 public:
  explicit SmallSweep(const SpaceText& text)
      : space_(parse_sweep_space(text.yaml(), project_folder() / "scenarios/small.yaml")),
        candidates_(sweep_candidates(space_, names())) {}

  const SweepSpace& space() const { return space_; }
  const SweepCandidates& candidates() const { return candidates_; }

  SweepResult run(bool prune, std::size_t threads, SweepJournal* journal = nullptr) const {
    SweepSettings settings;
    settings.top = 3;
    settings.prune = prune;
    settings.journal = journal;
    ThreadCrew crew(threads);
    return run_sweep(space_, candidates_, settings, crew);
  }
  std::string documents(const SweepResult& result) const {
    const SweepView view{space_, candidates_, result};
    return sweep_table(view) + sweep_csv(view) + sweep_json_lines(view);
  }

 private:
  std::vector<std::string> names() const { return space_.policies; }

  SweepSpace space_;
  SweepCandidates candidates_;
};

TEST(Sweep, finds_what_a_run_without_pruning_finds) {
  const test::SeedRange seeds = test::seeds_of_shard(0, sweeps);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const SpaceText text = sample_space(seed);
    const SmallSweep sweep(text);
    const SweepResult pruned = sweep.run(true, 1), full = sweep.run(false, 1);
    ASSERT_EQ(pruned.fields.size(), full.fields.size());
    for (std::size_t f = 0; f < full.fields.size(); ++f) {
      EXPECT_EQ(pruned.fields[f].best, full.fields[f].best) << text.yaml();
      EXPECT_EQ(pruned.fields[f].pareto, full.fields[f].pareto) << text.yaml();
    }
  }
}

TEST(Sweep, leaves_out_what_cannot_be_among_the_best) {
  SpaceText text;
  text.generate_tp = "[1, 8]";
  const SmallSweep sweep(text);
  EXPECT_LT(sweep.run(true, 1).predicted(), sweep.candidates().list.size() * 3 / 4);
}

TEST(Sweep, bounds_every_prediction_from_below) {
  const test::SeedRange seeds = test::seeds_of_shard(1, sweeps);
  for (std::uint64_t seed = seeds.begin; seed < seeds.end; ++seed) {
    const SpaceText text = sample_space(seed);
    const SmallSweep sweep(text);
    const SweepResult full = sweep.run(false, 1);
    for (std::size_t c = 0; c < full.outcomes.size(); ++c) {
      if (!full.outcomes[c]->refused.empty()) continue;
      EXPECT_GE(full.outcomes[c]->time, sweep.candidates().list[c].bound) << text.yaml();
      EXPECT_GT(sweep.candidates().list[c].bound.value, 0) << text.yaml();
    }
  }
}

TEST(Sweep, gives_the_same_bytes_with_any_number_of_threads) {
  const SmallSweep sweep{SpaceText{}};
  const std::string one = sweep.documents(sweep.run(true, 1));
  EXPECT_EQ(one, sweep.documents(sweep.run(true, 2)));
  EXPECT_EQ(one, sweep.documents(sweep.run(true, 7)));
}

/// A crew that is killed after some jobs.
class KilledCrew : public SweepCrew {
 public:
  explicit KilledCrew(int jobs) : jobs_(jobs) {}
  void run(SweepDesk& desk) override {
    for (; jobs_ > 0; --jobs_) {
      const std::optional<std::uint32_t> job = desk.take();
      if (!job) return;
      desk.work(*job);
    }
    throw SystemError("killed");
  }

 private:
  int jobs_;
};

TEST(Sweep, resumed_after_a_kill_gives_the_same_bytes) {
  const SmallSweep sweep{SpaceText{}};
  const std::string whole = sweep.documents(sweep.run(true, 1));
  const TemporaryFolder folder;
  for (const int jobs : {1, 3, 9}) {  // each kill leaves a line that was cut off
    FileJournal journal(folder.path(), sweep.candidates());
    SweepSettings settings;
    settings.top = 3;
    settings.journal = &journal;
    KilledCrew crew(jobs);
    EXPECT_THROW(run_sweep(sweep.space(), sweep.candidates(), settings, crew), SystemError);
    std::ofstream(folder.path() / "finished", std::ios::app) << "{\"candidate\": 1, \"ti";
  }
  FileJournal journal(folder.path(), sweep.candidates());
  EXPECT_EQ(journal.outcomes.size(), 13U);
  EXPECT_EQ(whole, sweep.documents(sweep.run(true, 2, &journal)));
  FileJournal again(folder.path(), sweep.candidates());
  EXPECT_EQ(whole, sweep.documents(sweep.run(true, 1, &again)));
}

TEST(Sweep, refuses_the_folder_of_another_sweep) {
  const TemporaryFolder folder;
  const SmallSweep sweep{SpaceText{}};
  { const FileJournal begun(folder.path(), sweep.candidates()); }
  SpaceText text;
  text.generate_tp = "[2, 4]";
  const SmallSweep other(text);
  EXPECT_THROW(FileJournal(folder.path(), other.candidates()), InputError);
  EXPECT_NO_THROW(FileJournal(folder.path(), sweep.candidates()));
}

std::vector<std::string> violated_keys(const Scenario& scenario) {
  Input input;
  input.scenario = scenario;
  std::vector<std::string> keys;
  for (const InputFault& fault : validate(input).violations) keys.push_back(fault.where.key);
  return keys;
}

TEST(Sweep, offers_only_valid_scenarios_and_leaves_out_only_what_validate_refuses_for_that_reason) {
  SpaceText text;
  text.generate_tp = "[2, 8, 3, 64]";
  text.train_pp = "[1, 2, 16]";
  text.placements = "[contiguous, interleaved, co-racked]";
  text.hosts = 2;
  const SweepSpace space = parse_sweep_space(text.yaml(), project_folder() / "scenarios/small.yaml");
  std::map<std::string, int> reasons;
  const SweepCandidates candidates =
      sweep_candidates(space, {"balanced"}, [&](const Scenario& scenario, const std::string& reason) {
        if (++reasons[reason] > 3) return;
        const std::vector<std::string> keys = violated_keys(scenario);
        const bool own = reason == "placements" || reason.starts_with("memory.");
        EXPECT_EQ(own, keys.empty()) << reason << "\n" << to_yaml(scenario);
        if (!own) {
          EXPECT_NE(std::find(keys.begin(), keys.end(), reason), keys.end()) << reason;
        }
      });
  EXPECT_EQ(static_cast<std::int64_t>(candidates.layouts.size()) + candidates.excluded(), space.layouts());
  EXPECT_GE(reasons.size(), 4U);
  for (std::size_t c = 0; c < candidates.list.size(); c += 7) {
    const Scenario scenario = sweep_scenario(space, candidates, candidates.list[c]);
    EXPECT_TRUE(violated_keys(scenario).empty()) << to_yaml(scenario);
    EXPECT_TRUE(same_content(parse_scenario(to_yaml(scenario), space.file), scenario));
  }
}

}  // namespace
}  // namespace isthmus::report

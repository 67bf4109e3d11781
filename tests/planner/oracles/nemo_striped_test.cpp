// `striped` against recordings of NeMo RL's python reshard. What a plan can say is read from the plan's
// steps; why striping was given up, and the exact plan that a striped one replaces, come from the rules. It
// cuts by the ceil rule, so the layouts are read with that rule.

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "planner/check.hpp"
#include "planner/policies/striped_rules.hpp"
#include "planner/policy.hpp"
#include "tests/support/nemo_oracle.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

/// A recording and the plan made of its input.
struct Replanned {
  nlohmann::json oracle;
  test::RefitCase refit_case;
  Refit refit;
  Plan plan;

  const nlohmann::json& output() const { return oracle.at("output"); }
  const std::vector<Step>& steps() const { return plan.patterns.front().steps; }
  std::uint32_t rank(LocalRank local) const { return global_rank(plan.instances.front(), local).value; }
  std::int64_t bytes(const Region& box) const { return refit.geometries[0].source.bytes(box).value; }
};

class NemoStripedOracle : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<nlohmann::json> oracles = test::nemo_oracles("nemo-striped");
    if (oracles.empty()) GTEST_SKIP() << "no published data";
    ASSERT_GE(oracles.size(), 42U);
    for (const nlohmann::json& oracle : oracles) {
      test::RefitCase refit_case = test::nemo_case(oracle, ChunkRule::ceil);
      Refit refit = test::make_refit(refit_case);
      Plan plan = std::get<Plan>(plan_striped(refit));
      replanned.push_back({oracle, std::move(refit_case), std::move(refit), std::move(plan)});
    }
  }

  template <class Judge>
  void each(Judge judge) const {
    for (const Replanned& made : replanned) {
      SCOPED_TRACE(made.oracle["case"].get<std::string>());
      judge(made);
    }
  }

  std::vector<Replanned> replanned;
};

nlohmann::json transfers_json(const Replanned& made) {
  nlohmann::json transfers = nlohmann::json::array();
  for (const Step& step : made.steps()) {
    if (step.kind != StepKind::send && step.kind != StepKind::copy) continue;
    transfers.push_back({{"src", made.rank(step.source)},
                         {"dst", made.rank(step.target)},
                         {"box", test::box_json(step.region)},
                         {"bytes", made.bytes(step.region)},
                         {"local", step.kind == StepKind::copy},
                         {"send_packed", step.from == Buffer::staging},
                         {"receive_staged", step.to == Buffer::staging}});
  }
  return transfers;
}

/// The exchanges inside replica groups, in the words of the recorded groups.
nlohmann::json exchanges_json(const Replanned& made) {
  nlohmann::json exchanges = nlohmann::json::array();
  for (const Step& step : made.steps()) {
    if (!is_collective(step.kind)) continue;
    nlohmann::json members = nlohmann::json::array();
    for (const LocalRank member : made.plan.patterns.front().members[step.members])
      members.push_back(made.rank(member));
    const bool gather = step.kind == StepKind::all_gather;
    const nlohmann::json root = gather ? members.front() : nlohmann::json(made.rank(step.source));
    exchanges.push_back({{"region", test::box_json(step.region)},
                         {"members", members},
                         {"representative", root},
                         {"exchange", gather ? "all-gather" : "broadcast"}});
  }
  return exchanges;
}

/// What each target rank gets by itself, in one box: the smallest around the pieces that bring it.
std::map<std::uint32_t, Region> own_parts(const Replanned& made) {
  std::map<std::uint32_t, Region> parts;
  std::map<std::uint32_t, std::int64_t> volume;
  for (const Step& step : made.steps()) {
    if (step.to != Buffer::target || is_collective(step.kind)) continue;
    const std::uint32_t rank = made.rank(step.target);
    Region& part = parts.try_emplace(rank, step.region).first->second;
    for (std::size_t d = 0; d < part.dimensions; ++d) {
      part.begin[d] = std::min(part.begin[d], step.region.begin[d]);
      part.end[d] = std::max(part.end[d], step.region.end[d]);
    }
    volume[rank] += step.region.volume();
  }
  for (const auto& [rank, part] : parts) EXPECT_EQ(part.volume(), volume[rank]) << "rank " << rank;
  return parts;
}

TEST_F(NemoStripedOracle, sends_the_recorded_transfers_in_the_recorded_order) {
  each([](const Replanned& made) {
    // A plan copies before it sends; the recordings list both by sender.
    nlohmann::json planned = transfers_json(made), recorded = made.output()["transfers"];
    const auto sends_last = [](const nlohmann::json& a, const nlohmann::json& b) {
      return a["local"].get<bool>() && !b["local"].get<bool>();
    };
    std::stable_sort(recorded.begin(), recorded.end(), sends_last);
    EXPECT_EQ(planned, recorded);
  });
}

TEST_F(NemoStripedOracle, exchanges_inside_the_recorded_groups_and_in_no_others) {
  int gathers = 0, broadcasts = 0;
  each([&](const Replanned& made) {
    nlohmann::json recorded = nlohmann::json::array();
    for (const nlohmann::json& group : made.output()["groups"])
      if (group["exchange"] != "none") recorded.push_back(group);
    EXPECT_EQ(exchanges_json(made), recorded);
    for (const nlohmann::json& group : recorded) ++(group["exchange"] == "broadcast" ? broadcasts : gathers);
  });
  EXPECT_GT(gathers, 0);
  EXPECT_GT(broadcasts, 0);
}

TEST_F(NemoStripedOracle, brings_every_member_its_recorded_stripe) {
  each([](const Replanned& made) {
    nlohmann::json parts = nlohmann::json::object(), recorded = nlohmann::json::object();
    for (const auto& [rank, part] : own_parts(made)) parts[std::to_string(rank)] = test::box_json(part);
    if (made.output().contains("stripes")) {
      recorded = made.output()["stripes"];
    } else {
      for (const nlohmann::json& group : made.output()["groups"])
        if (!test::is_empty(group["region"]))
          recorded[std::to_string(group["representative"].get<int>())] = group["region"];
    }
    EXPECT_EQ(parts, recorded);
  });
}

TEST_F(NemoStripedOracle, cuts_the_recorded_regions) {
  each([](const Replanned& made) {
    const TensorSpec& spec = made.refit_case.tensors[0];
    const nlohmann::json sources = test::regions_json(spec.source);
    const nlohmann::json targets = test::regions_json(spec.target);
    EXPECT_TRUE(test::same_regions(sources, made.output()["source_regions"])) << sources;
    EXPECT_TRUE(test::same_regions(targets, made.output()["destination_regions"])) << targets;
  });
}

TEST_F(NemoStripedOracle, takes_the_recorded_path_for_the_recorded_reason) {
  const std::map<std::string, ReshardPath> paths{
      {"", ReshardPath::striped},
      {"no destination group has more than one member", ReshardPath::no_replicas},
      {"the first extent of a replica group is not divisible by its size", ReshardPath::stripes_uneven}};
  std::map<ReshardPath, int> seen;
  each([&](const Replanned& made) {
    const RefitEntry& entry = made.refit.tensors[0];
    const ReshardRules rules = striped_rules(made.refit.geometries[0], entry.source_base, entry.target_base);
    EXPECT_EQ(rules.path, paths.at(made.output().value("fallback_reason", "")));
    EXPECT_EQ(rules.striped(), made.output()["path"] == "striped");
    ++seen[rules.path];
  });
  EXPECT_EQ(seen.size(), paths.size());
}

TEST_F(NemoStripedOracle, knows_the_exact_transfers_that_striping_replaces) {
  int compared = 0;
  each([&](const Replanned& made) {
    if (!made.output().contains("exact_transfers")) return;
    const RefitEntry& entry = made.refit.tensors[0];
    nlohmann::json exact = nlohmann::json::array();
    for (const ReshardTransfer& transfer :
         exact_transfers(made.refit.geometries[0], entry.source_base, entry.target_base)) {
      exact.push_back({{"src", entry.source_base.value + transfer.sender},
                       {"dst", entry.target_base.value + transfer.receiver},
                       {"box", test::box_json(transfer.box)},
                       {"bytes", made.bytes(transfer.box)},
                       {"local", transfer.local}});
    }
    EXPECT_EQ(exact, made.output()["exact_transfers"]);
    ++compared;
  });
  EXPECT_GT(compared, 0);
}

TEST_F(NemoStripedOracle, is_proven_for_every_recorded_layout) {
  each([](const Replanned& made) {
    EXPECT_TRUE(check(made.refit, made.plan).proven());
    if (whole(made.refit.geometries[0].source.shape).volume() > 4096) return;
    EXPECT_TRUE(test::Twin(made.refit).run(made.plan).correct());
  });
}

}  // namespace
}  // namespace isthmus

#include "model/refit_info_input.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "model/refit.hpp"
#include "model/validation.hpp"
#include "tests/support/project_files.hpp"
#include "tests/support/refit_info_generator.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus {
namespace {

using test::OrderedJson;
using test::RefitInfoShape;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two stages of 2 ranks to two engines of 2.
RefitInfoShape small() {
  RefitInfoShape shape;
  shape.tp = shape.ep = shape.pp = shape.generate_tp = shape.engines = 2;
  shape.layers = {1, 1};
  return shape;
}

/// DeepSeek-V3 as NeMo RL runs it on H100: PP16 EP16 to engines of TP32.
RefitInfoShape deepseek() {
  RefitInfoShape shape;
  shape.ep = shape.pp = 16;
  shape.generate_tp = 32;
  shape.engines = 8;
  shape.layers = std::vector<std::int64_t>(16, 4);
  shape.layers.front() = 3;
  shape.layers.back() = 2;
  shape.dense_layers = 3;
  shape.experts = 256;
  shape.inner = 18432;
  shape.expert_inner = 2048;
  shape.hidden = 7168;
  return shape;
}

Input read(const OrderedJson& document, const std::vector<Override>& overrides = {}) {
  const TemporaryFolder folder;
  return read_input(folder.write("info.json", document.dump()), overrides);
}

TEST(RefitInfoInput, becomes_bare_tensors_of_global_ranks) {
  const Input input = read(test::make_refit_info(small()));
  EXPECT_EQ(input.kind, InputKind::refit_info);
  EXPECT_THAT(input.obstacles, IsEmpty());
  const Scenario& scenario = require_scenario(input);
  EXPECT_EQ(scenario.name, "info");
  ASSERT_EQ(scenario.tensors.size(), 6U);
  const TensorSpec& last = scenario.tensors.back();  // on stage 1
  EXPECT_EQ(last.source.mesh, contiguous_mesh({2}, {2}));
  EXPECT_EQ(last.target.mesh, contiguous_mesh({2, 2}, {4}));
  EXPECT_EQ(scenario.fabric.hosts, 1);
  EXPECT_THAT(input.assumptions, Contains(HasSubstr("training rank r of stage s is GPU 2 s + r")));
  EXPECT_THAT(input.notes, Contains(HasSubstr("3 misc tensors of 0.000 GB in all are left out")));
  EXPECT_EQ(resolve(scenario).tensors.size(), 6U);
  for (const RuleSet rules : {RuleSet::general, RuleSet::nemo_rl, RuleSet::m2n})
    EXPECT_TRUE(validate(input, rules).valid());
}

TEST(RefitInfoInput, fabric_and_refit_are_set_on_the_scenario_and_nothing_else) {
  const OrderedJson document = test::make_refit_info(small());
  const Input input =
      read(document, {{"fabric.preset", "gb200-nvl72"}, {"fabric.hosts", "1"}, {"name", "mine"}});
  EXPECT_EQ(input.scenario.name, "mine");
  const Validation validation = validate(input);
  ASSERT_EQ(validation.violations.size(), 1U);  // 8 ranks on 4 GPUs
  EXPECT_EQ(validation.violations.front().where.file, "--set fabric.hosts=1");
  EXPECT_THROW(read(document, {{"train_world_size", "8"}}), InputError);
  EXPECT_THROW(read(document, {{"fabric.hostz", "8"}}), InputError);
}

TEST(RefitInfoInput, that_the_proof_refuses_is_no_scenario) {
  OrderedJson document = test::make_refit_info(small());
  document["nccl_reshard_refit_info"]["gen_world_size"] = 3;
  const Input input = read(document);
  EXPECT_FALSE(validate(input).valid());
  EXPECT_THROW(require_scenario(input), InputError);
  document["nccl_reshard_refit_info"]["per_layer_params"] = OrderedJson::object();
  document["nccl_reshard_refit_info"]["layer_names"] = OrderedJson::array();
  EXPECT_FALSE(validate(read(document)).valid());
}

TEST(RefitInfoInput, local_maps_may_stand_in_a_file_of_their_own) {
  const TemporaryFolder folder;
  OrderedJson document = test::make_refit_info(small());
  const auto info = folder.write("info.json", document["nccl_reshard_refit_info"].dump());
  const auto maps = folder.write("maps.json", document["local_maps"].dump());
  EXPECT_THAT(validate(read_input(info)).notes, Contains(HasSubstr("no local maps are given")));
  const Validation validation = validate(read_input(info, {}, std::nullopt, maps));
  EXPECT_TRUE(validation.valid());
  EXPECT_EQ(validation.notes.size(), 1U);
  document["local_maps"].erase(0);
  const auto fewer = folder.write("fewer.json", document["local_maps"].dump());
  EXPECT_EQ(validate(read_input(info, {}, std::nullopt, fewer)).violations.size(), 1U);
  const auto other = project_folder() / "scenarios/deepseek-v3-h100.yaml";
  EXPECT_THROW(read_input(other, {}, std::nullopt, maps), InputError);
}

/// Who holds what of a tensor, by global rank.
std::map<std::uint32_t, Region> regions_of(const Layout& layout, Rank base) {
  std::map<std::uint32_t, Region> regions;
  for (std::size_t i = 0; i < layout.mesh.size(); ++i)
    regions[base.value + layout.mesh.ranks[i].value] = layout.region(i);
  return regions;
}

TEST(RefitInfoInput, of_deepseek_v3_is_proven_and_holds_what_the_scenario_of_its_grids_holds) {
  const std::string text = test::make_refit_info(deepseek()).dump();
  const auto start = std::chrono::steady_clock::now();
  const Input input = read_refit_info(parse_refit_info(text, "deepseek.json"), {}, std::nullopt);
  const auto spent = std::chrono::steady_clock::now() - start;
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(spent).count();
  RecordProperty("milliseconds", static_cast<int>(milliseconds));
  EXPECT_LT(milliseconds, 60'000);
  ASSERT_THAT(input.obstacles, IsEmpty());
  const Refit refit = resolve(require_scenario(input));
  const Refit grids = resolve(read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml"));
  std::map<std::string, const RefitEntry*> of_name;
  for (const RefitEntry& entry : grids.tensors) of_name[entry.tensor.name] = &entry;
  ASSERT_EQ(refit.tensors.size(), 183U);
  for (const RefitEntry& entry : refit.tensors) {
    const auto other = of_name.find(entry.tensor.name);
    ASSERT_NE(other, of_name.end()) << entry.tensor.name;
    const Geometry& mine = refit.geometries[entry.geometry];
    const Geometry& theirs = grids.geometries[other->second->geometry];
    EXPECT_EQ(regions_of(mine.source, entry.source_base),
              regions_of(theirs.source, other->second->source_base));
    EXPECT_EQ(regions_of(mine.target, entry.target_base),
              regions_of(theirs.target, other->second->target_base));
  }
}

}  // namespace
}  // namespace isthmus

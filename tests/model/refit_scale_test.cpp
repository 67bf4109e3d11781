#include "model/refit_scale.hpp"

#include <set>
#include <tuple>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/project_files.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus {
namespace {

/// The same refit with longer dimensions.
Refit longer_refit(test::RefitCase refit_case, std::int64_t times) {
  for (TensorSpec& spec : refit_case.tensors) {
    for (Layout* layout : {&spec.source, &spec.target}) {
      for (std::int64_t& length : layout->shape) length *= times;
      if (!layout->frame) continue;
      for (std::int64_t& length : layout->frame->extent) length *= times;
      for (std::int64_t& length : layout->frame->origin) length *= times;
    }
  }
  return test::make_refit(refit_case);
}

/// Every region is the old one with its coordinates scaled.
void expect_same_form(const Layout& before, const Layout& after) {
  RC_ASSERT(faults(after).empty());
  const std::vector<Region> old = before.regions(), now = after.regions();
  RC_ASSERT(now.size() == old.size());
  for (std::size_t i = 0; i < old.size(); ++i) {
    RC_ASSERT(now[i].empty() == old[i].empty());
    if (old[i].empty()) continue;
    for (std::size_t d = 0; d < before.shape.size(); ++d) {
      RC_ASSERT(now[i].begin[d] * before.shape[d] == old[i].begin[d] * after.shape[d]);
      RC_ASSERT(now[i].end[d] * before.shape[d] == old[i].end[d] * after.shape[d]);
    }
  }
}

RC_GTEST_PROP(RefitScale, keeps_the_form_of_every_shard, ()) {
  const test::RefitCase refit_case = *test::refit_cases();
  const auto times = *rc::gen::element<std::int64_t>(1, 2, 3, 8, 12, 60);
  const double share = *rc::gen::element(0.0001, 0.01, 0.1, 0.5, 0.9);
  const Refit refit = longer_refit(refit_case, times);
  const ScaledRefit scaled = scale_refit(longer_refit(refit_case, times), share);
  RC_ASSERT(scaled.refit.tensors.size() == refit.tensors.size());  // bare tensors are of no layer
  for (std::size_t t = 0; t < refit.tensors.size(); ++t) {
    const Geometry& before = refit.geometries[refit.tensors[t].geometry];
    const Geometry& after = scaled.refit.geometries[scaled.refit.tensors[t].geometry];
    expect_same_form(before.source, after.source);
    expect_same_form(before.target, after.target);
    RC_ASSERT(after.source.shape == scaled.refit.tensors[t].tensor.shape);
  }
  RC_ASSERT(scaled.share <= 1.0);
}

RC_GTEST_PROP(RefitScale, leaves_the_share_asked_for_or_as_little_as_can_be, ()) {
  const test::RefitCase refit_case = *test::refit_cases();
  const double share = *rc::gen::element(0.001, 0.05, 0.3, 0.8);
  const ScaledRefit scaled = scale_refit(longer_refit(refit_case, 60), share);
  const ScaledRefit least = scale_refit(longer_refit(refit_case, 60), 1e-12);
  RC_ASSERT(scaled.share <= share || scaled.share <= least.share * (1 + 1e-9));
  RC_ASSERT(scaled.share >= least.share * (1 - 1e-9));
}

TEST(RefitScale, of_all_changes_nothing) {
  const test::RefitCase refit_case = test::sample_case(7);
  const Refit refit = longer_refit(refit_case, 8);
  const ScaledRefit scaled = scale_refit(longer_refit(refit_case, 8), 1);
  EXPECT_EQ(scaled.refit.geometries, refit.geometries);
  EXPECT_EQ(scaled.share, 1);
}

/// What a plan tells apart: what kinds of tensors there are, on which stages, for which ranks.
auto kinds_of(const Refit& refit) {
  std::set<std::tuple<int, Role, std::uint32_t, std::uint32_t, bool, std::int64_t>> kinds;
  for (const RefitEntry& entry : refit.tensors) {
    kinds.insert({entry.stage, entry.tensor.role, entry.source_base.value, entry.target_base.value,
                  entry.tensor.expert, entry.tensor.parts});
  }
  return kinds;
}

TEST(RefitScale, of_a_whole_model_keeps_stages_ranks_experts_and_layouts) {
  const auto read = [] {
    return resolve(read_scenario(project_folder() / "scenarios/deepseek-v3-h100.yaml"));
  };
  const Refit refit = read();
  const ScaledRefit scaled = scale_refit(read(), 1e-4);
  EXPECT_LE(scaled.share, 1e-4);
  EXPECT_GE(scaled.share, 0.5e-4);
  EXPECT_EQ(scaled.refit.ranks(), refit.ranks());
  EXPECT_EQ(kinds_of(scaled.refit), kinds_of(refit));
  EXPECT_LT(scaled.refit.tensors.size(), refit.tensors.size());
  EXPECT_EQ(scaled.refit.geometries.size(), refit.geometries.size());
  for (std::size_t g = 0; g < refit.geometries.size(); ++g) {
    const Geometry& before = refit.geometries[g];
    const Geometry& after = scaled.refit.geometries[g];
    EXPECT_EQ(after.source.placements, before.source.placements);
    EXPECT_EQ(after.target.mesh, before.target.mesh);
    EXPECT_TRUE(faults(after.source).empty());
    EXPECT_TRUE(faults(after.target).empty());
    if (before.source.shape.size() == 3) {
      EXPECT_EQ(after.source.shape[0], before.source.shape[0]);
    }
  }
  EXPECT_LT(scaled.refit.settings.packet_bytes, refit.settings.packet_bytes);
}

}  // namespace
}  // namespace isthmus

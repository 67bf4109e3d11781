#include "tests/support/plan_builder.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/pattern_builder.hpp"
#include "tests/support/staging_placer.hpp"

namespace isthmus::test {
namespace {

/// Moves the groups of all instances into Plan::schedule.
void schedule(Plan& plan) {
  for (Instance& instance : plan.instances) {
    const std::vector<Step>& steps = plan.patterns[instance.pattern.index()].steps;
    const auto begin = static_cast<std::uint32_t>(plan.schedule.size());
    for (const Step& step : steps) plan.schedule.push_back(instance.group + step.group);
    instance.schedule = begin;
    instance.group = 0;
  }
}

}  // namespace

BuildOptions options_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  BuildOptions options;
  for (int i = 0; i < 3; ++i) options.by_geometry.push_back(static_cast<Method>(random() % methods));
  options.order = static_cast<Order>(random() % orders);
  options.window = 1 + static_cast<std::uint32_t>(random() % 3);
  options.coalesce = random() % 2 == 1;
  options.scheduled = random() % 3 == 1;
  options.same_groups = random() % 2 == 1;
  options.seed = random() % 64;
  options.puts = random() % 2 == 1;
  options.slots = static_cast<std::uint32_t>(random() % 4);
  options.lane_per_instance = random() % 4 == 1;
  options.version = static_cast<std::uint32_t>(random() % 3);
  return options;
}

namespace {

/// Whether a put may go between two local ranks, whichever tensor of the geometry it is for.
bool all_in_reach(const Refit& refit, std::uint32_t geometry, std::int64_t distance, LocalRank source,
                  LocalRank target) {
  for (const RefitEntry& entry : refit.tensors) {
    if (entry.geometry != geometry) continue;
    if (std::int64_t{entry.target_base.value} - entry.source_base.value != distance) continue;
    const auto domain = [&](LocalRank rank) {
      const std::uint32_t offset = rank.value % LocalRank::target_side;
      const bool target_side = rank.value >= LocalRank::target_side;
      return refit.fabric.domain_of(
          refit.gpu({(target_side ? entry.target_base.value : entry.source_base.value) + offset}));
    };
    if (domain(source) != domain(target)) return false;
  }
  return true;
}

/// One lane for each instance in turn, where its steps do not use several themselves.
LaneId lane_of(std::uint32_t instance, const BuildOptions& options) {
  const bool one_lane = options.order == Order::levels || options.order == Order::one_by_one ||
                        options.order == Order::one_group;
  return {one_lane && options.lane_per_instance ? instance % 3 : 0};
}

}  // namespace

BuildOptions reusing_options_of(std::uint64_t seed) {
  BuildOptions options = options_of(seed);
  constexpr Method staging[] = {Method::staged, Method::gathered, Method::striped, Method::packed};
  options.by_geometry = {staging[seed / 4 % 4]};
  options.order = seed / 16 % 3 == 0 ? Order::one_by_one : Order::levels;
  options.same_groups = false;
  options.slots = 1 + options.slots % 3;
  return options;
}

Plan build_plan(const Refit& refit, const BuildOptions& options) {
  Plan plan;
  plan.policy = "naive";
  plan.version = options.version;
  const bool coalesce = options.coalesce && options.order != Order::one_group;
  for (const char* name : {"a", "b", "c"}) plan.lanes.push_back({name, options.window, coalesce});
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> known;
  std::uint32_t group = 0;
  for (std::uint32_t i = 0; i < refit.tensors.size(); ++i) {
    const RefitEntry& entry = refit.tensors[i];
    const std::int64_t distance = std::int64_t{entry.target_base.value} - entry.source_base.value;
    const auto next = static_cast<std::uint32_t>(plan.patterns.size());
    const auto added = known.try_emplace({entry.geometry, distance}, next);
    if (added.second) {
      const Method method = options.by_geometry[entry.geometry % options.by_geometry.size()];
      const auto in_reach = [&](LocalRank source, LocalRank target) {
        return all_in_reach(refit, entry.geometry, distance, source, target);
      };
      plan.patterns.push_back(
          build_pattern({refit.geometries[entry.geometry], distance, method, options, in_reach}));
    }
    plan.instances.push_back(
        {{added.first->second}, {i}, entry.source_base, entry.target_base, lane_of(i, options), group});
    plan.instances.back().version = options.version;
    std::uint32_t last = 0;
    for (const Step& step : plan.patterns[added.first->second].steps) last = std::max(last, step.group);
    if (!options.same_groups) group += last + 1;
  }
  if (options.scheduled) schedule(plan);
  if (options.slots > 0) share_staging(plan, refit, options);
  return plan;
}

}  // namespace isthmus::test

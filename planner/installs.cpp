#include "planner/installs.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace isthmus {
namespace {

class InstallMaker {
 public:
  InstallMaker(const Refit& refit, Plan& plan) : refit_(refit), plan_(plan) {}

  void run() {
    first_group_ = groups();
    const auto lane = static_cast<std::uint32_t>(plan_.lanes.size());
    plan_.lanes.push_back({"install", 1, false});
    bool used = false;
    for (std::uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const Instance& instance = plan_.instances[i];
      if (!refit_.tensors[instance.tensor.index()].tensor.install) continue;
      used |= add_loads(i, lane);
    }
    if (!used) plan_.lanes.pop_back();
  }

 private:
  /// A pattern with its loads, by what they depend on: pattern, geometry, lane, and where the shards are.
  using Key = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>;
  struct Made {
    std::uint32_t pattern = 0;
    std::size_t loads = 0;
  };

  /// One past the highest group of the plan, where 32 bits hold as many groups again as there are instances.
  std::uint32_t groups() const {
    std::uint32_t highest = 0;
    for (const Instance& instance : plan_.instances) {
      for (std::size_t s = 0; s < plan_.pattern(instance).steps.size(); ++s)
        highest = std::max(highest, plan_.group_of(instance, s));
    }
    const bool fits = highest < 0xFFFFFFFF - plan_.instances.size() - 1;
    return fits ? highest + 1 : 0;
  }

  bool add_loads(std::uint32_t index, std::uint32_t lane) {
    Instance& instance = plan_.instances[index];
    const RefitEntry& entry = refit_.tensors[instance.tensor.index()];
    const Key key{instance.pattern.value, entry.geometry, instance.lane.value,
                  std::int64_t{entry.target_base.value} - instance.target_base.value,
                  std::int64_t{entry.target_base.value} - instance.source_base.value};
    const auto [known, added] = made_.try_emplace(key);
    if (added) known->second = make(instance, entry, lane);
    const Made& made = known->second;
    if (made.loads == 0) return false;
    keep_groups(instance, made, index);
    instance.pattern = {made.pattern};
    return true;
  }

  Made make(const Instance& instance, const RefitEntry& entry, std::uint32_t lane) {
    Pattern pattern = plan_.pattern(instance);
    const std::size_t before = pattern.steps.size();
    const Layout& layout = refit_.geometries[entry.geometry].target;
    for (std::size_t position = 0; position < layout.mesh.size(); ++position) {
      const Region shard = layout.region(position);
      const Rank rank{entry.target_base.value + layout.mesh.ranks[position].value};
      if (!shard.empty() && !is_loaded(instance, pattern, rank, shard))
        add_load(instance, pattern, rank, shard, lane);
    }
    const std::size_t loads = pattern.steps.size() - before;
    if (loads > 0) plan_.patterns.push_back(std::move(pattern));
    return {static_cast<std::uint32_t>(plan_.patterns.size() - 1), loads};
  }

  static bool is_loaded(const Instance& instance, const Pattern& pattern, Rank rank, const Region& shard) {
    std::vector<Region> loaded;
    for (const Step& step : pattern.steps) {
      if (step.kind == StepKind::load && global_rank(instance, step.source) == rank)
        loaded.push_back(step.region);
    }
    return covered(shard, loaded);
  }

  /// Waits for all that writes to the rank's shard.
  static void add_load(const Instance& instance, Pattern& pattern, Rank rank, const Region& shard,
                       std::uint32_t lane) {
    Step load;
    load.kind = StepKind::load;
    load.from = load.to = Buffer::target;
    load.lane = static_cast<std::uint16_t>(lane - instance.lane.value);
    const bool above = rank >= instance.target_base;
    load.source = above ? LocalRank::target(rank.value - instance.target_base.value)
                        : LocalRank::source(rank.value - instance.source_base.value);
    load.target = load.source;
    load.region = shard;
    load.after_begin = static_cast<std::uint32_t>(pattern.after.size());
    for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
      if (pattern.steps[s].to == Buffer::target && reaches(instance, pattern, pattern.steps[s], rank))
        pattern.after.push_back(s);
    }
    load.after_end = static_cast<std::uint32_t>(pattern.after.size());
    pattern.steps.push_back(load);
  }

  static bool reaches(const Instance& instance, const Pattern& pattern, const Step& step, Rank rank) {
    if (!is_collective(step.kind)) return global_rank(instance, step.target) == rank;
    const std::vector<LocalRank>& members = pattern.members[step.members];
    return std::any_of(members.begin(), members.end(),
                       [&](LocalRank member) { return global_rank(instance, member) == rank; });
  }

  /// Steps keep their groups; loads follow all of them, in the order of instances.
  void keep_groups(Instance& instance, const Made& made, std::uint32_t index) {
    const std::size_t steps = plan_.pattern(instance).steps.size();
    const auto begin = static_cast<std::uint32_t>(plan_.schedule.size());
    for (std::size_t s = 0; s < steps; ++s) plan_.schedule.push_back(plan_.group_of(instance, s));
    plan_.schedule.insert(plan_.schedule.end(), made.loads, first_group_ + index);
    instance.schedule = begin;
    instance.group = 0;
  }

  const Refit& refit_;
  Plan& plan_;
  std::map<Key, Made> made_;
  std::uint32_t first_group_ = 0;
};

}  // namespace

Plan with_installs(const Refit& refit, Plan plan) {
  const bool needed = std::any_of(refit.tensors.begin(), refit.tensors.end(),
                                  [](const RefitEntry& entry) { return entry.tensor.install; });
  if (needed) InstallMaker(refit, plan).run();
  return plan;
}

}  // namespace isthmus

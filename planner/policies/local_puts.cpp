#include "planner/policies/local_puts.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/policies/balanced_pattern.hpp"

namespace isthmus {
namespace {

constexpr double large_message = 1 << 20;  // bytes, from which large_message_time counts in full

/// Whether a part of a box lies there in one piece.
bool in_one_piece(const Region& part, const Region& box) {
  std::size_t first = 0;
  while (first < part.dimensions && part.end[first] - part.begin[first] == 1) ++first;
  for (std::size_t d = first + 1; d < part.dimensions; ++d)
    if (part.begin[d] != box.begin[d] || part.end[d] != box.end[d]) return false;
  return true;
}

/// What a pair of ranks sends over NVLink in a whole plan.
struct PairMessages {
  double bytes = 0;
  std::size_t pieces = 0, messages = 0;
  bool strided = false;  // some piece is not in one piece at one of the ends
};

class LocalPuts {
 public:
  LocalPuts(const Refit& refit, const ReplayConstants& constants, Plan& plan)
      : refit_(refit), constants_(constants), plan_(plan) {}

  std::size_t run() {
    count();
    std::vector<std::vector<double>> saved(plan_.patterns.size());
    for (const Instance& instance : plan_.instances) {
      const std::vector<Step>& steps = plan_.pattern(instance).steps;
      std::vector<double>& sums = saved[instance.pattern.index()];
      sums.resize(steps.size());
      for (std::size_t s = 0; s < steps.size(); ++s)
        if (is_local_message(instance, steps[s])) sums[s] += saving(pairs_.at(ends(instance, steps[s])));
    }
    std::size_t changed = 0;
    for (std::size_t p = 0; p < saved.size(); ++p) {
      for (std::size_t s = 0; s < saved[p].size(); ++s) {
        if (saved[p][s] <= 0) continue;
        plan_.patterns[p].steps[s].kind = StepKind::put;
        ++changed;
      }
    }
    return changed;
  }

 private:
  using Pair = std::pair<Rank, Rank>;

  static Pair ends(const Instance& instance, const Step& step) {
    return {global_rank(instance, step.source), global_rank(instance, step.target)};
  }

  bool is_local_message(const Instance& instance, const Step& step) const {
    if (step.kind != StepKind::send || step.lane != nvlink_lane) return false;
    const auto [source, target] = ends(instance, step);
    return refit_.fabric.domain_of(refit_.gpu(source)) == refit_.fabric.domain_of(refit_.gpu(target));
  }

  void count() {
    std::map<Pair, std::vector<std::uint32_t>> groups;
    for (const Instance& instance : plan_.instances) {
      const Geometry& geometry = refit_.geometry(instance.tensor);
      const std::vector<Step>& steps = plan_.pattern(instance).steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const Step& step = steps[s];
        if (!is_local_message(instance, step)) continue;
        PairMessages& pair = pairs_[ends(instance, step)];
        pair.bytes += static_cast<double>(geometry.source.bytes(step.region).value);
        ++pair.pieces;
        pair.strided |= !in_one_piece(step.region, box_of(instance, step.source, step.region)) ||
                        !in_one_piece(step.region, box_of(instance, step.target, step.region));
        groups[ends(instance, step)].push_back(plan_.group_of(instance, s));
      }
    }
    for (auto& [pair, list] : groups) {
      std::sort(list.begin(), list.end());
      const auto end = std::unique(list.begin(), list.end());
      pairs_[pair].messages = static_cast<std::size_t>(end - list.begin());
    }
  }

  /// The shard of a rank on the side that it is named by; the part itself where it has none.
  const Region& box_of(const Instance& instance, LocalRank rank, const Region& part) {
    const RefitEntry& entry = refit_.tensors[instance.tensor.index()];
    const Geometry& geometry = refit_.geometries[entry.geometry];
    const bool target = (rank.value & LocalRank::target_side) != 0;
    const std::vector<Region>& known = boxes(target ? geometry.target : geometry.source);
    const std::size_t local =
        global_rank(instance, rank).value - (target ? entry.target_base : entry.source_base).value;
    return local < known.size() ? known[local] : part;
  }

  /// By local rank.
  const std::vector<Region>& boxes(const Layout& layout) {
    std::vector<Region>& known = boxes_[&layout];
    if (!known.empty()) return known;
    const std::vector<Region> regions = layout.regions();
    for (std::size_t i = 0; i < regions.size(); ++i) {
      const std::size_t rank = layout.mesh.ranks[i].index();
      if (rank >= known.size()) known.resize(rank + 1);
      known[rank] = regions[i];
    }
    return known;
  }

  /// Seconds that a put of the pair's mean message is faster.
  double saving(const PairMessages& pair) const {
    const double bytes = pair.bytes / static_cast<double>(pair.messages);
    const bool packed = pair.strided || pair.pieces > pair.messages;
    const double kernel = constants_.kernel_time.value;
    const double packing = packed ? 2 * (kernel + 2 * bytes / constants_.strided_bandwidth.value) : 0;
    const double message = constants_.message_time.value +
                           constants_.large_message_time.value * std::min(1.0, bytes / large_message) +
                           bytes / constants_.exchange_bandwidth.value + packing;
    return message - (kernel + bytes / constants_.put_bandwidth.value);
  }

  const Refit& refit_;
  const ReplayConstants& constants_;
  Plan& plan_;
  std::map<Pair, PairMessages> pairs_;
  std::map<const Layout*, std::vector<Region>> boxes_;
};

}  // namespace

std::size_t put_where_faster(const Refit& refit, const Calibration& calibration, Plan& plan) {
  if (!calibration.replay) return 0;
  return LocalPuts(refit, *calibration.replay, plan).run();
}

PlanResult plan_under(const Policy& policy, const Refit& refit, const Calibration& calibration) {
  PlanResult result = policy.make(refit);
  if (Plan* plan = std::get_if<Plan>(&result); plan != nullptr && policy.name.starts_with("balanced"))
    put_where_faster(refit, calibration, *plan);
  return result;
}

}  // namespace isthmus

#include "planner/policies/rail_hops.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/byte_classes.hpp"
#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/entry_domains.hpp"
#include "planner/policies/lent_pattern.hpp"
#include "planner/policies/nic_lending.hpp"

namespace isthmus {
namespace {

class RailHops {
 public:
  RailHops(const Refit& refit, Plan& plan)
      : refit_(refit), plan_(plan), rank_of_gpu_(refit.fabric.gpu_count(), 0) {
    const std::vector<char> part = taking_part(refit);
    lenders_.resize(refit.fabric.domain_count());
    std::vector<char> known(refit.fabric.gpu_count());
    for (std::uint32_t r = 0; r < refit.ranks(); ++r) {
      const GpuId gpu = refit.gpu({r});
      if (part[gpu.index()] == 0 || std::exchange(known[gpu.index()], 1) != 0) continue;
      rank_of_gpu_[gpu.index()] = r;
      lenders_[refit.fabric.domain_of(gpu).index()].push_back(gpu);
    }
  }

  bool hop(NicSide side) {
    std::map<std::tuple<PatternId, std::uint32_t, Rank, Rank>, PatternId> done;
    bool any = false;
    for (Instance& instance : plan_.instances) {
      const std::uint32_t geometry = refit_.tensors[instance.tensor.index()].geometry;
      const auto [known, added] = done.try_emplace(
          {instance.pattern, geometry, instance.source_base, instance.target_base}, instance.pattern);
      if (added) known->second = with_hops(instance, side);
      if (known->second == instance.pattern) continue;
      instance.pattern = known->second;
      instance.source_base = {};  // ranks of the source side are global in lent patterns
      any = true;
    }
    return any;
  }

  std::string left() const {
    for (const Instance& instance : plan_.instances) {
      for (const Step& step : plan_.pattern(instance).steps) {
        const auto [from, to] = ends(instance, step);
        if (refit_.fabric.reachable(from, to)) continue;
        return fmt::format("no way from GPU {} to GPU {}, nor by one hop over NVLink", from.value, to.value);
      }
    }
    return {};
  }

 private:
  std::pair<GpuId, GpuId> ends(const Instance& instance, const Step& step) const {
    return {refit_.gpu(global_rank(instance, step.source)), refit_.gpu(global_rank(instance, step.target))};
  }

  PatternId with_hops(const Instance& instance, NicSide side) {
    StepCuts cuts;
    const std::vector<Step>& steps = plan_.pattern(instance).steps;
    for (std::uint32_t s = 0; s < steps.size(); ++s) {
      const auto [from, to] = ends(instance, steps[s]);
      if (refit_.fabric.reachable(from, to)) continue;
      const std::optional<GpuId> lender = lender_of(from, to, side);
      if (lender) cuts.emplace(s, std::vector<StepPiece>{{steps[s].region, lender}});
    }
    if (cuts.empty()) return instance.pattern;
    Pattern hopped = lent_pattern(refit_, plan_.pattern(instance), instance, side, rank_of_gpu_, cuts);
    plan_.patterns.push_back(std::move(hopped));
    return {static_cast<std::uint32_t>(plan_.patterns.size() - 1)};
  }

  /// In the domain of the one end, a GPU that the other end can be reached from: on its rail if there is one.
  std::optional<GpuId> lender_of(GpuId from, GpuId to, NicSide side) const {
    const Fabric& fabric = refit_.fabric;
    const bool out = side == NicSide::out;
    const std::uint32_t rail = rail_of(fabric, out ? to : from);
    std::optional<GpuId> found;
    for (const GpuId gpu : lenders_[fabric.domain_of(out ? from : to).index()]) {
      if (!fabric.reachable(from, gpu) || !fabric.reachable(gpu, to)) continue;
      if (!found || rail_of(fabric, gpu) == rail) found = gpu;
    }
    return found;
  }

  const Refit& refit_;
  Plan& plan_;
  std::vector<std::uint32_t> rank_of_gpu_;   // the first of each GPU
  std::vector<std::vector<GpuId>> lenders_;  // by domain: GPUs with a rank that may relay
};

}  // namespace

std::string hop_rails(const Refit& refit, Plan& plan) {
  RailHops hops(refit, plan);
  const bool out = hops.hop(NicSide::out), in = hops.hop(NicSide::in);
  if (out || in) {
    drop_unused_patterns(plan);
    plan.lanes.push_back({"lending", lending_window, true});
  }
  return hops.left();
}

bool rails_joined(const Refit& refit) {
  std::vector<GpuId> gpus;
  std::set<std::tuple<std::uint32_t, Rank, Rank>> places;
  for (const RefitEntry& entry : refit.tensors) {
    if (!places.emplace(entry.geometry, entry.source_base, entry.target_base).second) continue;
    const Geometry& geometry = refit.geometries[entry.geometry];
    for (const Rank rank : geometry.source.mesh.ranks)
      gpus.push_back(refit.gpu({entry.source_base.value + rank.value}));
    for (const Rank rank : geometry.target.mesh.ranks)
      gpus.push_back(refit.gpu({entry.target_base.value + rank.value}));
  }
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  const Fabric& fabric = refit.fabric;
  const auto joined_with = [&](GpuId one) {
    return std::all_of(gpus.begin(), gpus.end(),
                       [&](GpuId gpu) { return fabric.reachable(one, gpu) && fabric.reachable(gpu, one); });
  };
  const auto elsewhere = std::find_if(gpus.begin(), gpus.end(), [&](GpuId gpu) {
    return fabric.domain_of(gpu) != fabric.domain_of(gpus.front());
  });
  // NVLink may hide that a GPU of one's own domain is on rails of its own: another domain does not.
  return elsewhere == gpus.end() || (joined_with(gpus.front()) && joined_with(*elsewhere));
}

}  // namespace isthmus

#include "planner/policies/port_loads.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "planner/policies/balanced_pattern.hpp"

namespace isthmus {
namespace {

/// Bytes of one local rank of a pattern.
struct LocalLoad {
  LocalRank rank;
  Bytes network_out, network_in, nvlink_out, nvlink_in;
};

std::vector<LocalLoad> local_loads(const Pattern& pattern, const Layout& layout) {
  std::vector<std::uint32_t> number[2];  // by side: one past its index in the list
  std::vector<LocalLoad> loads;
  const auto of = [&](LocalRank rank) -> LocalLoad& {
    std::vector<std::uint32_t>& numbers = number[(rank.value & LocalRank::target_side) != 0 ? 1 : 0];
    const std::size_t offset = rank.value & ~LocalRank::target_side;
    if (offset >= numbers.size()) numbers.resize(offset + 1);
    if (numbers[offset] == 0) {
      loads.push_back({rank, {}, {}, {}, {}});
      numbers[offset] = static_cast<std::uint32_t>(loads.size());
    }
    return loads[numbers[offset] - 1];
  };
  for (const Step& step : pattern.steps) {
    if (is_local(step.kind)) continue;
    const Bytes bytes = layout.bytes(step.region);
    const bool network = step.lane == network_lane;
    LocalLoad& source = of(step.source);
    (network ? source.network_out : source.nvlink_out) += bytes;
    LocalLoad& target = of(step.target);
    (network ? target.network_in : target.nvlink_in) += bytes;
  }
  return loads;
}

}  // namespace

PortLoads port_loads(const Refit& refit, const Plan& plan) {
  const std::vector<Bytes> none(refit.fabric.gpu_count());
  PortLoads loads{none, none, none, none};
  std::map<std::pair<PatternId, std::uint32_t>, std::vector<LocalLoad>> known;  // by pattern and geometry
  for (const Instance& instance : plan.instances) {
    const std::uint32_t geometry = refit.tensors[instance.tensor.index()].geometry;
    const auto [found, added] = known.try_emplace({instance.pattern, geometry});
    if (added) found->second = local_loads(plan.pattern(instance), refit.geometries[geometry].source);
    for (const LocalLoad& load : found->second) {
      const std::size_t gpu = refit.gpu(global_rank(instance, load.rank)).index();
      loads.network_out[gpu] += load.network_out;
      loads.network_in[gpu] += load.network_in;
      loads.nvlink_out[gpu] += load.nvlink_out;
      loads.nvlink_in[gpu] += load.nvlink_in;
    }
  }
  return loads;
}

Duration busiest_link(const Refit& refit, const Plan& plan) {
  std::map<std::pair<GpuId, GpuId>, Bytes> pairs;
  for (const Instance& instance : plan.instances) {
    const Layout& layout = refit.geometry(instance.tensor).source;
    for (const Step& step : plan.pattern(instance).steps) {
      const GpuId from = refit.gpu(global_rank(instance, step.source));
      const GpuId to = refit.gpu(global_rank(instance, step.target));
      if (from != to && !is_local(step.kind)) pairs[{from, to}] += layout.bytes(step.region);
    }
  }
  std::vector<Bytes> loads(refit.fabric.links().size());
  for (const auto& [pair, bytes] : pairs)
    for (const LinkId link : refit.fabric.route(pair.first, pair.second)) loads[link.index()] += bytes;
  Duration longest;
  for (std::size_t i = 0; i < loads.size(); ++i)
    longest = std::max(longest, loads[i] / refit.fabric.links()[i].nominal);
  return longest;
}

}  // namespace isthmus

#include "planner/port_loads.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace isthmus {
namespace {

struct PairLoad {
  LocalRank source, target;
  Bytes bytes;
};

/// Bytes between local ranks, of one pattern for one geometry.
std::vector<PairLoad> pairs_of(const Pattern& pattern, const Layout& layout) {
  std::vector<PairLoad> loads;
  for (const Step& step : pattern.steps) {
    if (is_collective(step.kind) || is_local(step.kind)) continue;
    loads.push_back({step.source, step.target, layout.bytes(step.region)});
  }
  const auto pair = [](const PairLoad& load) { return std::tie(load.source, load.target); };
  std::sort(loads.begin(), loads.end(), [&](const auto& a, const auto& b) { return pair(a) < pair(b); });
  std::vector<PairLoad> sums;
  for (const PairLoad& load : loads) {
    if (sums.empty() || pair(sums.back()) != pair(load)) sums.push_back({load.source, load.target, {}});
    sums.back().bytes += load.bytes;
  }
  return sums;
}

/// Calls visit(GPU, GPU, bytes) for the pairs of all instances; a pair may come more than once.
template <class Visit>
void for_each_pair(const Refit& refit, const Plan& plan, Visit visit) {
  std::map<std::pair<PatternId, std::uint32_t>, std::vector<PairLoad>> known;  // by pattern and geometry
  std::map<std::tuple<PatternId, std::uint32_t, Rank, Rank>, std::int64_t> counts;  // equal instances
  for (const Instance& instance : plan.instances) {
    const std::uint32_t geometry = refit.tensors[instance.tensor.index()].geometry;
    ++counts[{instance.pattern, geometry, instance.source_base, instance.target_base}];
  }
  for (const auto& [key, count] : counts) {
    const auto& [pattern, geometry, source_base, target_base] = key;
    const auto [found, added] = known.try_emplace({pattern, geometry});
    if (added) found->second = pairs_of(plan.patterns[pattern.index()], refit.geometries[geometry].source);
    const Instance like{pattern, {}, source_base, target_base, {}};
    for (const PairLoad& load : found->second) {
      const GpuId from = refit.gpu(global_rank(like, load.source));
      const GpuId to = refit.gpu(global_rank(like, load.target));
      if (from != to) visit(from, to, load.bytes * count);
    }
  }
}

}  // namespace

PortLoads port_loads(const Refit& refit, const Plan& plan) {
  const std::vector<Bytes> none(refit.fabric.gpu_count());
  PortLoads loads{none, none, none, none};
  for_each_pair(refit, plan, [&](GpuId from, GpuId to, Bytes bytes) {
    const bool inside = refit.fabric.domain_of(from) == refit.fabric.domain_of(to);
    (inside ? loads.nvlink_out : loads.network_out)[from.index()] += bytes;
    (inside ? loads.nvlink_in : loads.network_in)[to.index()] += bytes;
  });
  return loads;
}

Duration busiest_link(const Refit& refit, const Plan& plan) {
  std::map<std::pair<GpuId, GpuId>, Bytes> pairs;
  for_each_pair(refit, plan, [&](GpuId from, GpuId to, Bytes bytes) { pairs[{from, to}] += bytes; });
  std::vector<Bytes> loads(refit.fabric.links().size());
  for (const auto& [pair, bytes] : pairs)
    for (const LinkId link : refit.fabric.route(pair.first, pair.second)) loads[link.index()] += bytes;
  Duration longest;
  for (std::size_t i = 0; i < loads.size(); ++i)
    longest = std::max(longest, loads[i] / refit.fabric.links()[i].nominal);
  return longest;
}

}  // namespace isthmus

#include "planner/plan_difference.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

#include "planner/plan_identity.hpp"

namespace isthmus {
namespace {

void add(Bytes& sum, Bytes more) {
  const Int128 exact = Int128{sum.value} + more.value;
  sum = {static_cast<std::int64_t>(std::min<Int128>(exact, std::numeric_limits<std::int64_t>::max()))};
}

void add(PlanTraffic& traffic, Bytes bytes) {
  ++traffic.steps;
  add(traffic.bytes, bytes);
}

Bytes region_bytes(const Refit& refit, const Instance& instance, const Step& step) {
  const Layout& layout = refit.geometry(instance.tensor).source;
  if (step.region.dimensions != layout.shape.size()) return {};
  return layout.bytes(intersect(step.region, whole(layout.shape)));
}

/// One plan seen by tensor names.
class PlanSide {
 public:
  explicit PlanSide(const PlanFile& file) : file_(file) {
    for (std::size_t i = 0; i < file.plan.instances.size(); ++i) {
      const TensorId tensor = file.plan.instances[i].tensor;
      carried_[file.refit.tensors[tensor.index()].tensor.name].push_back(i);
    }
  }
  const std::map<std::string, std::vector<std::size_t>>& carried() const { return carried_; }
  const Plan& plan() const { return file_.plan; }
  const Instance& instance(std::size_t index) const { return file_.plan.instances[index]; }
  const Pattern& pattern(std::size_t index) const { return file_.plan.pattern(instance(index)); }

  std::vector<Rank> members(std::size_t index, const Step& step) const {
    std::vector<Rank> ranks;
    for (const LocalRank rank : pattern(index).members[step.members])
      ranks.push_back(global_rank(instance(index), rank));
    return ranks;
  }
  std::vector<std::uint32_t> after(std::size_t index, const Step& step) const {
    const std::vector<std::uint32_t>& all = pattern(index).after;
    return {all.begin() + step.after_begin, all.begin() + step.after_end};
  }

 private:
  const PlanFile& file_;
  std::map<std::string, std::vector<std::size_t>> carried_;  // instances in order
};

bool same_step(const PlanSide& a, std::size_t i, const PlanSide& b, std::size_t j, std::uint32_t index) {
  const Step& x = a.pattern(i).steps[index];
  const Step& y = b.pattern(j).steps[index];
  const Instance& at = a.instance(i);
  const Instance& bt = b.instance(j);
  const auto key = [](const Step& step, const Instance& of, const Plan& plan, std::uint32_t number) {
    return std::tuple(step.kind, step.from, step.to, std::uint64_t{of.lane.value} + step.lane,
                      plan.group_of(of, number), step.parts, step.region);
  };
  if (key(x, at, a.plan(), index) != key(y, bt, b.plan(), index)) return false;
  if (a.after(i, x) != b.after(j, y)) return false;
  if (is_collective(x.kind) && a.members(i, x) != b.members(j, y)) return false;
  if (x.kind != StepKind::all_gather && global_rank(at, x.source) != global_rank(bt, y.source)) return false;
  return is_collective(x.kind) || global_rank(at, x.target) == global_rank(bt, y.target);
}

bool same_staging(const Instance& a, const Instance& b) {
  return a.buffer == b.buffer && a.offset == b.offset && a.version == b.version;
}

/// Appends where two instances of one tensor differ, if they do.
void compare(const std::string& tensor, const PlanSide& a, std::size_t i, const PlanSide& b, std::size_t j,
             std::vector<StepDifference>& differences) {
  const std::size_t first = a.pattern(i).steps.size(), second = b.pattern(j).steps.size();
  const auto common = static_cast<std::uint32_t>(std::min(first, second));
  std::uint32_t step = 0;
  while (step < common && same_step(a, i, b, j, step)) ++step;
  if (step < common || first != second) {
    differences.push_back({tensor, i, j, step, false});
  } else if (!same_staging(a.instance(i), b.instance(j))) {
    differences.push_back({tensor, i, j, step, true});
  }
}

bool same_lanes(const Plan& a, const Plan& b) {
  return std::equal(a.lanes.begin(), a.lanes.end(), b.lanes.begin(), b.lanes.end(),
                    [](const Lane& x, const Lane& y) {
                      return std::tie(x.name, x.window, x.coalesce, x.split) ==
                             std::tie(y.name, y.window, y.coalesce, y.split);
                    }) &&
         std::equal(a.splits.begin(), a.splits.end(), b.splits.begin(), b.splits.end());
}

bool same_buffers(const Plan& a, const Plan& b) {
  return std::equal(a.buffers.begin(), a.buffers.end(), b.buffers.begin(), b.buffers.end(),
                    [](const StagingBuffer& x, const StagingBuffer& y) {
                      return std::tie(x.name, x.size) == std::tie(y.name, y.size);
                    });
}

void add_pairs(const Plan& plan, const Instance& instance, const Step& step, Bytes bytes,
               std::map<std::pair<Rank, Rank>, Bytes>& pairs) {
  const Rank source = global_rank(instance, step.source);
  if (step.kind == StepKind::send || step.kind == StepKind::put) {
    add(pairs[{source, global_rank(instance, step.target)}], bytes);
  } else if (step.kind == StepKind::broadcast) {
    for (const LocalRank member : plan.pattern(instance).members[step.members]) {
      const Rank rank = global_rank(instance, member);
      if (rank != source) add(pairs[{source, rank}], bytes);
    }
  }
}

}  // namespace

Bytes step_bytes(const Refit& refit, const Plan& plan, const Instance& instance, const Step& step) {
  const Bytes bytes = region_bytes(refit, instance, step);
  if (!is_collective(step.kind)) return bytes;
  const std::size_t members = plan.pattern(instance).members[step.members].size();
  const Int128 exact = Int128{bytes.value} * static_cast<std::int64_t>(members == 0 ? 0 : members - 1);
  Bytes sum;
  add(sum, {static_cast<std::int64_t>(std::min<Int128>(exact, std::numeric_limits<std::int64_t>::max()))});
  return sum;
}

PlanTotals plan_totals(const Refit& refit, const Plan& plan) {
  PlanTotals totals;
  totals.by_lane.resize(plan.lanes.size() + 1);
  for (const Instance& instance : plan.instances) {
    for (const Step& step : plan.pattern(instance).steps) {
      const Bytes bytes = step_bytes(refit, plan, instance, step);
      add(totals.all, bytes);
      add(totals.by_kind[step.kind], bytes);
      add(totals.by_lane[std::min(instance.lane.index() + step.lane, plan.lanes.size())], bytes);
      add_pairs(plan, instance, step, region_bytes(refit, instance, step), totals.by_pair);
    }
  }
  return totals;
}

bool PlanDifference::equal() const {
  return identity.empty() && !lanes && !buffers && only_first.empty() && only_second.empty() && steps.empty();
}

PlanDifference plan_difference(const PlanFile& first, const PlanFile& second) {
  PlanDifference difference;
  difference.identity = identity_faults(first.refit, second.refit);
  difference.lanes = !same_lanes(first.plan, second.plan);
  difference.buffers = !same_buffers(first.plan, second.plan);
  const PlanSide a(first), b(second);
  for (const auto& [tensor, instances] : a.carried()) {
    const auto other = b.carried().find(tensor);
    const std::size_t others = other == b.carried().end() ? 0 : other->second.size();
    for (std::size_t i = 0; i < std::min(instances.size(), others); ++i)
      compare(tensor, a, instances[i], b, other->second[i], difference.steps);
    if (instances.size() > others) difference.only_first.push_back(tensor);
  }
  for (const auto& [tensor, instances] : b.carried()) {
    const auto other = a.carried().find(tensor);
    const std::size_t others = other == a.carried().end() ? 0 : other->second.size();
    if (instances.size() > others) difference.only_second.push_back(tensor);
  }
  return difference;
}

}  // namespace isthmus

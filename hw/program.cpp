#include "hw/program.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace isthmus::hw {
namespace {

std::span<const Shard> shards_of(const std::vector<Shard>& shards, TensorId tensor) {
  const auto begin =
      std::lower_bound(shards.begin(), shards.end(), tensor,
                       [](const Shard& shard, TensorId wanted) { return shard.tensor < wanted; });
  const auto end =
      std::find_if(begin, shards.end(), [&](const Shard& shard) { return shard.tensor != tensor; });
  return {begin, end};
}

Region around(const Region& a, const Region& b) {
  Region box = a;
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    box.begin[d] = std::min(a.begin[d], b.begin[d]);
    box.end[d] = std::max(a.end[d], b.end[d]);
  }
  return box;
}

/// Whether a step leaves its region in the `to` buffer of a rank.
bool receives(const Plan& plan, const Instance& instance, const Step& step, Rank rank) {
  if (!is_collective(step.kind)) return global_rank(instance, step.target) == rank;
  const bool root = step.kind == StepKind::broadcast && global_rank(instance, step.source) == rank;
  if (root && step.to == Buffer::target) return false;
  const std::vector<LocalRank>& members = plan.pattern(instance).members[step.members];
  return std::any_of(members.begin(), members.end(),
                     [&](LocalRank member) { return global_rank(instance, member) == rank; });
}

}  // namespace

Bytes Program::memory() const {
  Bytes sum;
  for (const Arena& arena : arenas_) sum += arena.size;
  return sum;
}

std::span<const ProgramStep> Program::steps(std::uint32_t operation) const {
  return std::span(steps_).subspan(first_step_[operation],
                                   first_step_[operation + 1] - first_step_[operation]);
}

std::optional<Region> Program::staged_box(const Instance& instance, Rank rank) const {
  const std::vector<StagedBox>& boxes = staged_[instance.pattern.index()];
  std::optional<Region> box;
  const auto add = [&](LocalRank local) {
    const auto found =
        std::lower_bound(boxes.begin(), boxes.end(), local,
                         [](const StagedBox& staged, LocalRank wanted) { return staged.rank < wanted; });
    if (found == boxes.end() || found->rank != local) return;
    box = box ? around(*box, found->box) : found->box;
  };
  if (rank >= instance.source_base) add(LocalRank::source(rank.index() - instance.source_base.index()));
  if (rank >= instance.target_base) add(LocalRank::target(rank.index() - instance.target_base.index()));
  return box;
}

std::vector<Place> Program::places(std::uint32_t index, Rank rank, Buffer buffer) const {
  const Instance& instance = plan_.instances[index];
  std::vector<Place> found;
  if (buffer != Buffer::staging) {
    for (const Shard& shard :
         shards_of(buffer == Buffer::source ? sources(rank) : targets(rank), instance.tensor))
      found.push_back({shard.region, shard.offset.value});
    return found;
  }
  const std::optional<Region> box = staged_box(instance, rank);
  if (!box) return found;
  if (instance.buffer != Instance::own_memory) {
    found.push_back({*box, buffer_base_[instance.buffer][rank.index()] + instance.offset.value});
    return found;
  }
  const std::vector<OwnStaging>& own = own_staging_[index];
  const auto at = std::lower_bound(own.begin(), own.end(), rank, [](const OwnStaging& staging, Rank wanted) {
    return staging.rank < wanted;
  });
  found.push_back({*box, at->offset});
  return found;
}

std::string Program::describe(std::uint32_t operation) const {
  const std::string first = describe(steps(operation).front());
  const std::size_t others = steps(operation).size() - 1;
  return others == 0 ? first : fmt::format("{} and {} more in one message", first, others);
}

std::string Program::describe(ProgramStep which) const {
  const Instance& instance = plan_.instances[which.instance];
  const Step& step = plan_.pattern(instance).steps[which.step];
  const std::uint32_t source = global_rank(instance, step.source).value;
  std::string ranks;
  if (step.kind == StepKind::broadcast) {
    ranks =
        fmt::format("from rank {} to {} ranks", source, plan_.pattern(instance).members[step.members].size());
  } else if (step.kind == StepKind::all_gather) {
    ranks = fmt::format("among {} ranks", plan_.pattern(instance).members[step.members].size());
  } else if (is_local(step.kind)) {
    ranks = fmt::format("on rank {}", source);
  } else {
    ranks = fmt::format("rank {} -> rank {}", source, global_rank(instance, step.target).value);
  }
  return fmt::format("step {} of tensor {} ({}, {})", which.step,
                     refit_.tensors[instance.tensor.index()].tensor.name, to_string(step.kind), ranks);
}

std::optional<ProgramStep> Program::writer_of(TensorId tensor, const Region& element, Rank rank) const {
  for (std::uint32_t i = 0; i < plan_.instances.size(); ++i) {
    const Instance& instance = plan_.instances[i];
    if (instance.tensor != tensor) continue;
    const Pattern& pattern = plan_.pattern(instance);
    for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
      const Step& step = pattern.steps[s];
      if (step.to != Buffer::target || !step.region.contains(element)) continue;
      if (receives(plan_, instance, step, rank)) return ProgramStep{i, s};
    }
  }
  return std::nullopt;
}

}  // namespace isthmus::hw

#include "sim/arrival.hpp"

#include <algorithm>
#include <map>
#include <span>

namespace isthmus::sim {
namespace {

constexpr std::int64_t everything = -1;

class ArrivalCount {
 public:
  ArrivalCount(const Refit& refit, const Plan& plan, const Operations& operations, const Outcome& outcome)
      : refit_(refit), plan_(plan), left_(operations.list.size(), everything), operations_(operations) {
    for (const std::uint32_t operation : outcome.never_started) left_[operation] = 0;
    for (const FailedOperation& failed : outcome.failed) left_[failed.operation] = failed.moved.value;
  }

  std::vector<RankArrival> run() {
    list_wanted();
    std::size_t first = 0;
    for (const Instance& instance : plan_.instances) {
      add_instance(instance, std::span(operations_.of_step).subspan(first));
      first += plan_.pattern(instance).steps.size();
    }
    std::map<Rank, RankArrival> by_rank;
    for (std::size_t t = 0; t < shards_.size(); ++t) {
      for (const auto& [rank, shard] : shards_[t])
        add_tensor(by_rank[{rank}], {rank}, {std::uint32_t(t)}, shard);
    }
    std::vector<RankArrival> result;
    for (auto& [rank, arrival] : by_rank) result.push_back(finished(std::move(arrival)));
    return result;
  }

 private:
  struct Shard {
    Bytes wanted, arrived;
  };

  void list_wanted() {
    shards_.resize(refit_.tensors.size());
    std::vector<std::vector<std::pair<std::uint32_t, Bytes>>> of_geometry(refit_.geometries.size());
    for (std::size_t g = 0; g < of_geometry.size(); ++g) {
      const Layout& target = refit_.geometries[g].target;
      const std::vector<Region> regions = target.regions();
      for (std::size_t i = 0; i < regions.size(); ++i) {
        const Bytes bytes = target.bytes(regions[i]);
        if (bytes.value > 0) of_geometry[g].emplace_back(target.mesh.ranks[i].value, bytes);
      }
    }
    for (std::size_t t = 0; t < shards_.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      for (const auto& [local, bytes] : of_geometry[entry.geometry]) {
        shards_[t][entry.target_base.value + local].wanted += bytes;
      }
    }
  }

  void add_instance(const Instance& instance, std::span<const std::uint32_t> of_step) {
    const Pattern& pattern = plan_.pattern(instance);
    const Layout& layout = refit_.geometry(instance.tensor).source;
    for (std::size_t i = 0; i < pattern.steps.size(); ++i) {
      const Step& step = pattern.steps[i];
      const Bytes bytes = layout.bytes(step.region);
      const std::int64_t moved = take(of_step[i], bytes);
      if (step.to != Buffer::target || moved == 0) continue;
      if (!is_collective(step.kind)) {
        add(instance, global_rank(instance, step.target), {moved});
        continue;
      }
      for (const LocalRank member : pattern.members[step.members]) {
        if (step.kind == StepKind::broadcast && member == step.source) continue;
        Bytes had;
        if (step.kind == StepKind::all_gather && step.from == Buffer::target) {
          had = brought(pattern, step, member, layout);
        }
        const Int128 part = Int128{(bytes - had).value} * moved / bytes.value;
        add(instance, global_rank(instance, member), {static_cast<std::int64_t>(part)});
      }
    }
  }

  /// What a step has of the bytes that its operation moved.
  std::int64_t take(std::uint32_t operation, Bytes bytes) {
    std::int64_t& left = left_[operation];
    if (left == everything) return bytes.value;
    const std::int64_t part = std::min(left, bytes.value);
    left -= part;
    return part;
  }

  /// What earlier steps brought to a member of a gather in place: it is not written there again.
  static Bytes brought(const Pattern& pattern, const Step& gather, LocalRank member, const Layout& layout) {
    Bytes sum;
    for (std::uint32_t a = gather.after_begin; a < gather.after_end; ++a) {
      const Step& before = pattern.steps[pattern.after[a]];
      if (before.to != Buffer::target) continue;
      bool receives = before.target == member;
      if (is_collective(before.kind)) {
        const std::vector<LocalRank>& members = pattern.members[before.members];
        receives = std::find(members.begin(), members.end(), member) != members.end() &&
                   !(before.kind == StepKind::broadcast && before.source == member);
      }
      if (receives) sum += layout.bytes(intersect(before.region, gather.region));
    }
    return sum;
  }

  void add(const Instance& instance, Rank rank, Bytes bytes) {
    const auto known = shards_[instance.tensor.index()].find(rank.value);
    if (known != shards_[instance.tensor.index()].end()) known->second.arrived += bytes;
  }

  static void add_tensor(RankArrival& arrival, Rank rank, TensorId tensor, const Shard& shard) {
    arrival.rank = rank;
    arrival.wanted += shard.wanted;
    arrival.arrived += shard.arrived;
    if (shard.arrived == shard.wanted) {
      ++arrival.complete;
      return;
    }
    ++(shard.arrived.value > 0 ? arrival.partial : arrival.missing);
    arrival.incomplete.push_back({tensor, shard.wanted, shard.arrived});
  }

  static RankArrival finished(RankArrival arrival) {
    arrival.serves = Serves::neither;
    if (arrival.arrived.value == 0) arrival.serves = Serves::old_weights;
    if (arrival.partial + arrival.missing == 0) arrival.serves = Serves::new_weights;
    return arrival;
  }

  const Refit& refit_;
  const Plan& plan_;
  std::vector<std::int64_t> left_;  // by operation: bytes for its next steps
  const Operations& operations_;
  std::vector<std::map<std::uint32_t, Shard>> shards_;  // by tensor, then by rank
};

}  // namespace

std::vector<RankArrival> arrivals(const Refit& refit, const Plan& plan, const Operations& operations,
                                  const Outcome& outcome) {
  return ArrivalCount(refit, plan, operations, outcome).run();
}

}  // namespace isthmus::sim

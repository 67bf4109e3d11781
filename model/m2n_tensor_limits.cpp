// The limits of one tensor: m2n_faults(refit, entry) of m2n_limits.hpp.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/m2n_limits.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_tensor_dimensions = 3;
constexpr std::size_t max_mesh_dimensions = 2;
constexpr std::int64_t max_fan_in = 16;
constexpr std::int64_t max_fan_in_of_domain = 32;            // and of `direct`
constexpr std::int64_t max_fan_out = 64;                     // target shards; `direct`: target ranks
constexpr std::int64_t max_followers = 128;                  // of one leader
constexpr std::int64_t staging_end = std::int64_t{1} << 32;  // bytes; from here on staging areas hang

using Interval = std::pair<std::int64_t, std::int64_t>;

/// The pieces along each dimension. A layout's shards are all combinations of these, so that counts of shards
/// that meet are products of counts per dimension.
using Pieces = std::array<std::vector<Interval>, max_dimensions>;

Pieces pieces_of(const std::vector<Region>& regions) {
  std::array<std::set<Interval>, max_dimensions> found;
  for (const Region& region : regions) {
    if (region.empty()) continue;
    for (std::size_t d = 0; d < region.dimensions; ++d)
      found.at(d).emplace(region.begin.at(d), region.end.at(d));
  }
  Pieces pieces;
  for (std::size_t d = 0; d < max_dimensions; ++d)
    pieces.at(d).assign(found.at(d).begin(), found.at(d).end());
  return pieces;
}

std::int64_t meeting(const Region& region, const Pieces& pieces) {
  std::int64_t product = 1;
  for (std::size_t d = 0; d < region.dimensions; ++d) {
    const std::vector<Interval>& list = pieces.at(d);
    const auto first = std::partition_point(
        list.begin(), list.end(), [&](const Interval& piece) { return piece.second <= region.begin.at(d); });
    const auto end = std::partition_point(
        first, list.end(), [&](const Interval& piece) { return piece.first < region.end.at(d); });
    product *= end - first;
  }
  return product;
}

struct Meeting {
  std::int64_t most = 0;
  std::size_t shard = 0;  // the first that meets so many
};

Meeting most_meeting(const std::vector<Region>& regions, const Pieces& others) {
  Meeting result;
  std::set<Region> seen;
  for (const Region& region : regions) {
    if (region.empty() || !seen.insert(region).second) continue;
    const std::int64_t count = meeting(region, others);
    if (count > result.most) result = {count, seen.size() - 1};
  }
  return result;
}

/// What is wrong with one side alone.
std::vector<M2nFault> side_faults(const Layout& layout, const std::vector<Region>& regions, Rank base,
                                  bool source, bool bare) {
  std::vector<M2nFault> faults;
  if (layout.shape.size() > max_tensor_dimensions) {
    faults.push_back({source, fmt::format("{} dimensions", layout.shape.size()),
                      "tensors of 1 to 3 dimensions", "3 dimensions"});
  }
  if (layout.mesh.shape.size() > max_mesh_dimensions) {
    faults.push_back({source, fmt::format("a mesh of {} axes", layout.mesh.shape.size()),
                      "meshes of 1 or 2 axes", "2 axes"});
  }
  const auto sharded = std::count_if(layout.placements.begin(), layout.placements.end(),
                                     [](Placement placement) { return placement != Placement{}; });
  if (sharded > 1) {
    faults.push_back({source, fmt::format("{} sharded axes", sharded), "one sharded axis per side", "1"});
  }
  const auto differs = [&](const Region& region) { return region.volume() != regions.front().volume(); };
  if (std::any_of(regions.begin(), regions.end(), differs)) {
    faults.push_back({source, "shards of different sizes", "equal shards",
                      "a number of shards that divides the dimension"});
  }
  const std::vector<Rank>& ranks = layout.mesh.ranks;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].value == ranks[0].value + i) continue;
    faults.push_back(
        {source,
         fmt::format("rank {} after rank {}", base.value + ranks[i].value, base.value + ranks[i - 1].value),
         "ranks that form one contiguous interval, in order",
         bare ? fmt::format("first_rank: {}", base.value)
              : "generate.pp 1, train.fsdp 1 and train.order tp-cp-ep-dp-pp"});
    break;
  }
  return faults;
}

/// The largest divisor of `shards` that keeps the limit when the other side stays as it is.
std::string fewer_shards(std::int64_t shards, std::int64_t meeting, std::int64_t limit) {
  std::int64_t best = 1;
  for (std::int64_t number = 1; number < shards; ++number) {
    if (shards % number == 0 && meeting * number <= limit * shards) best = number;
  }
  return fmt::format("{}", best);
}

class TensorJudge {
 public:
  TensorJudge(const Refit& refit, const RefitEntry& entry, M2nBalance balance)
      : refit_(refit),
        entry_(entry),
        geometry_(refit.geometries[entry.geometry]),
        balance_(balance),
        sources_(geometry_.source.regions()),
        targets_(geometry_.target.regions()) {}

  std::vector<M2nFault> run() {
    const bool bare = refit_.train_ranks == 0;
    faults_ = side_faults(geometry_.source, sources_, entry_.source_base, true, bare);
    for (M2nFault& fault : side_faults(geometry_.target, targets_, entry_.target_base, false, bare))
      faults_.push_back(std::move(fault));
    const auto source_end = entry_.source_base.value + geometry_.source.mesh.size();
    const auto target_end = entry_.target_base.value + geometry_.target.mesh.size();
    const bool self_copy = geometry_.source.mesh.size() == 1 && geometry_.target.mesh.size() == 1;
    if (!self_copy && entry_.source_base.value < target_end && entry_.target_base.value < source_end) {
      faults_.push_back({false,
                         fmt::format("ranks from {} on, inside the source's", entry_.target_base.value),
                         "ranks apart from the source's", fmt::format("first_rank: {}", source_end)});
    }
    const bool of_form = !faults_.empty();
    add_meetings();
    add_staging(true);
    add_staging(false);
    if (!of_form) add_transfers();
    return std::move(faults_);
  }

 private:
  void add_staging(bool source) {
    const Layout& layout = source ? geometry_.source : geometry_.target;
    Bytes largest;
    for (const Region& region : source ? sources_ : targets_)
      largest = std::max(largest, layout.bytes(region));
    if (largest.value < staging_end) return;
    const std::uint32_t first = (source ? entry_.source_base : entry_.target_base).value;
    faults_.push_back(
        {source,
         fmt::format("staging area of {} bytes on ranks {} to {}", largest.value, first,
                     first + layout.mesh.size() - 1),
         fmt::format("staging areas below 2^32 = {} bytes", staging_end),
         fmt::format("{} times as many shards, or split the tensor", largest.value / staging_end + 1)});
  }

  void add_meetings() {
    const bool direct = refit_.settings.m2n.plan == M2nPlan::direct;
    const std::int64_t limit = direct || in_one_domain() ? max_fan_in_of_domain : max_fan_in;
    const Meeting in = most_meeting(targets_, pieces_of(sources_));
    const auto source_shards = static_cast<std::int64_t>(std::set(sources_.begin(), sources_.end()).size());
    if (in.most > limit) {
      faults_.push_back(
          {true,
           fmt::format("target shard {} meets {} source shards, M2N allows {}", in.shard, in.most, limit),
           fmt::format("at most {} source shards that meet one target shard", limit),
           fewer_shards(source_shards, in.most, limit) + " source shards"});
    }
    const Meeting out = most_meeting(sources_, pieces_of(targets_));
    const auto target_shards = static_cast<std::int64_t>(std::set(targets_.begin(), targets_.end()).size());
    if (out.most > max_fan_out) {
      faults_.push_back({false,
                         fmt::format("source shard {} meets {} target shards, M2N allows {}", out.shard,
                                     out.most, max_fan_out),
                         fmt::format("at most {} target shards that meet one source shard", max_fan_out),
                         fewer_shards(target_shards, out.most, max_fan_out) + " target shards"});
    }
    out_of_reach_ = out.most > max_fan_out;
  }

  bool in_one_domain() const {
    const DomainId domain = refit_.fabric.domain_of(refit_.gpu(entry_.source_base));
    const auto all_in = [&](const Mesh& mesh, Rank base) {
      return std::all_of(mesh.ranks.begin(), mesh.ranks.end(), [&](Rank rank) {
        return refit_.fabric.domain_of(refit_.gpu({base.value + rank.value})) == domain;
      });
    };
    return all_in(geometry_.source.mesh, entry_.source_base) &&
           all_in(geometry_.target.mesh, entry_.target_base);
  }

  /// What only the mapping of replicas shows: followers of a leader, and what one rank sends to directly.
  void add_transfers() {
    const M2nDecision decision =
        m2n_decide(m2n_task(refit_, entry_), M2nChoice{balance_, refit_.settings.m2n});
    std::map<std::int64_t, std::int64_t> destinations;  // of a sender
    std::int64_t followers = 0, most = 0;
    for (const M2nTransfer& transfer : decision.transfers) {
      if (transfer.phase == M2nPhase::fanout)
        followers = std::max(followers, static_cast<std::int64_t>(transfer.receivers.size()));
      if (transfer.phase == M2nPhase::inject) most = std::max(most, ++destinations[transfer.sender]);
    }
    if (followers > max_followers) {
      faults_.push_back(
          {false,
           fmt::format("{} replicas of a target shard in one NVLink domain, M2N allows {}", followers + 1,
                       max_followers + 1),
           fmt::format("at most {} replicas of a target shard in one NVLink domain", max_followers + 1),
           "fewer replicas, or more shards"});
    }
    if (refit_.settings.m2n.plan == M2nPlan::direct && most > max_fan_out && !out_of_reach_) {
      faults_.push_back(
          {false, fmt::format("a source rank sends to {} target ranks, M2N allows {}", most, max_fan_out),
           fmt::format("at most {} target ranks of one source rank", max_fan_out), "refit.m2n.plan: ring"});
    }
  }

  const Refit& refit_;
  const RefitEntry& entry_;
  const Geometry& geometry_;
  M2nBalance balance_;
  std::vector<Region> sources_, targets_;
  std::vector<M2nFault> faults_;
  bool out_of_reach_ = false;
};

}  // namespace

std::vector<M2nFault> m2n_faults(const Refit& refit, const RefitEntry& entry, M2nBalance balance) {
  return TensorJudge(refit, entry, balance).run();
}

}  // namespace isthmus

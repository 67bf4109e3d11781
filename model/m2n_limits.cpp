#include "model/m2n_limits.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_tensor_dimensions = 3;
constexpr std::size_t max_mesh_dimensions = 2;
constexpr std::int64_t max_fan_in = 16;
constexpr std::int64_t max_fan_in_of_domain = 32;
constexpr std::int64_t max_fan_out = 64;
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

struct Fault {
  std::string key, found, allowed, change;
};

/// What is wrong with one side alone.
std::vector<Fault> side_faults(const Layout& layout, const std::vector<Region>& regions, Rank base,
                               const std::string& key) {
  std::vector<Fault> faults;
  if (layout.shape.size() > max_tensor_dimensions) {
    faults.push_back({key, fmt::format("{} dimensions", layout.shape.size()), "tensors of 1 to 3 dimensions",
                      "3 dimensions"});
  }
  if (layout.mesh.shape.size() > max_mesh_dimensions) {
    faults.push_back(
        {key, fmt::format("a mesh of {} axes", layout.mesh.shape.size()), "meshes of 1 or 2 axes", "2 axes"});
  }
  const auto sharded = std::count_if(layout.placements.begin(), layout.placements.end(),
                                     [](Placement placement) { return placement != Placement{}; });
  if (sharded > 1) {
    faults.push_back({key, fmt::format("{} sharded axes", sharded), "one sharded axis per side", "1"});
  }
  const auto differs = [&](const Region& region) { return region.volume() != regions.front().volume(); };
  if (std::any_of(regions.begin(), regions.end(), differs)) {
    faults.push_back(
        {key, "shards of different sizes", "equal shards", "a number of shards that divides the dimension"});
  }
  const std::vector<Rank>& ranks = layout.mesh.ranks;
  for (std::size_t i = 1; i < ranks.size(); ++i) {
    if (ranks[i].value == ranks[0].value + i) continue;
    faults.push_back(
        {key,
         fmt::format("rank {} after rank {}", base.value + ranks[i].value, base.value + ranks[i - 1].value),
         "ranks that form one contiguous interval, in order",
         key.ends_with("source") || key.ends_with("target")
             ? fmt::format("first_rank: {}", base.value)
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

class Judge {
 public:
  Judge(const Scenario& scenario, const Refit& refit) : scenario_(scenario), refit_(refit) {}

  std::vector<InputFault> run() {
    for (std::size_t i = 0; i < refit_.tensors.size(); ++i) {
      if (refit_.tensors[i].tensor.role == Role::bulk) judge(i);
    }
    std::vector<InputFault> faults;
    for (const Group& group : groups_) {
      const std::string others =
          group.tensors == 1 ? "" : fmt::format(" (and {} more tensors)", group.tensors - 1);
      faults.push_back(
          {scenario_.at(group.fault.key),
           fmt::format("tensor {}: {}{}", printable(group.first_tensor), group.fault.found, others),
           group.fault.allowed, group.fault.change});
    }
    return faults;
  }

 private:
  struct Group {
    Fault fault;
    std::string first_tensor;
    std::size_t tensors = 0;
  };

  std::string key(std::size_t tensor, bool source) const {
    if (scenario_.model) {
      const std::string side = source ? "train" : "generate";
      return side +
             (refit_.tensors[tensor].tensor.expert && (source || scenario_.generate->ep > 1) ? ".ep" : ".tp");
    }
    return tensor_key(scenario_, refit_.tensors[tensor].declared, source ? "source" : "target");
  }

  void judge(std::size_t tensor) {
    const RefitEntry& entry = refit_.tensors[tensor];
    // Equal geometry, bases and keys give equal faults: judged once for all such tensors.
    const auto same = std::tuple(entry.geometry, entry.source_base, entry.target_base, entry.tensor.expert);
    const auto [known, is_new] = judged_.try_emplace(same);
    if (is_new) known->second = faults_of(tensor);
    for (Fault fault : known->second) {
      if (!scenario_.model) {  // bare tensors have keys of their own
        fault.key = key(tensor, fault.key.ends_with("source"));
      }
      add(fault, entry.tensor.name);
    }
  }

  void add(const Fault& fault, const std::string& tensor) {
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& other) {
      return other.fault.key == fault.key && other.fault.allowed == fault.allowed;
    });
    if (group == groups_.end()) {
      groups_.push_back({fault, tensor, 1});
    } else {
      ++group->tensors;
    }
  }

  std::vector<Fault> faults_of(std::size_t tensor) const {
    const RefitEntry& entry = refit_.tensors[tensor];
    const Geometry& geometry = refit_.geometries[entry.geometry];
    const std::vector<Region> sources = geometry.source.regions(), targets = geometry.target.regions();
    std::vector<Fault> faults = side_faults(geometry.source, sources, entry.source_base, key(tensor, true));
    for (Fault& fault : side_faults(geometry.target, targets, entry.target_base, key(tensor, false)))
      faults.push_back(std::move(fault));
    const auto source_end = entry.source_base.value + geometry.source.mesh.size();
    const auto target_end = entry.target_base.value + geometry.target.mesh.size();
    if (entry.source_base.value < target_end && entry.target_base.value < source_end) {
      faults.push_back({key(tensor, false),
                        fmt::format("ranks from {} on, inside the source's", entry.target_base.value),
                        "ranks apart from the source's", fmt::format("first_rank: {}", source_end)});
    }
    add_meetings(tensor, sources, targets, faults);
    add_staging(tensor, true, sources, faults);
    add_staging(tensor, false, targets, faults);
    return faults;
  }

  void add_staging(std::size_t tensor, bool source, const std::vector<Region>& regions,
                   std::vector<Fault>& faults) const {
    const RefitEntry& entry = refit_.tensors[tensor];
    const Layout& layout =
        source ? refit_.geometries[entry.geometry].source : refit_.geometries[entry.geometry].target;
    Bytes largest;
    for (const Region& region : regions) largest = std::max(largest, layout.bytes(region));
    if (largest.value < staging_end) return;
    const std::uint32_t first = (source ? entry.source_base : entry.target_base).value;
    faults.push_back(
        {key(tensor, source),
         fmt::format("staging area of {} bytes on ranks {} to {}", largest.value, first,
                     first + layout.mesh.size() - 1),
         fmt::format("staging areas below 2^32 = {} bytes", staging_end),
         fmt::format("{} times as many shards, or split the tensor", largest.value / staging_end + 1)});
  }

  void add_meetings(std::size_t tensor, const std::vector<Region>& sources,
                    const std::vector<Region>& targets, std::vector<Fault>& faults) const {
    const std::int64_t limit = in_one_domain(tensor) ? max_fan_in_of_domain : max_fan_in;
    const Meeting in = most_meeting(targets, pieces_of(sources));
    const auto source_shards = static_cast<std::int64_t>(std::set(sources.begin(), sources.end()).size());
    if (in.most > limit) {
      faults.push_back(
          {key(tensor, true),
           fmt::format("target shard {} meets {} source shards, M2N allows {}", in.shard, in.most, limit),
           fmt::format("at most {} source shards that meet one target shard", limit),
           fewer_shards(source_shards, in.most, limit) + " source shards"});
    }
    const Meeting out = most_meeting(sources, pieces_of(targets));
    const auto target_shards = static_cast<std::int64_t>(std::set(targets.begin(), targets.end()).size());
    if (out.most > max_fan_out) {
      faults.push_back({key(tensor, false),
                        fmt::format("source shard {} meets {} target shards, M2N allows {}", out.shard,
                                    out.most, max_fan_out),
                        fmt::format("at most {} target shards that meet one source shard", max_fan_out),
                        fewer_shards(target_shards, out.most, max_fan_out) + " target shards"});
    }
  }

  bool in_one_domain(std::size_t tensor) const {
    const RefitEntry& entry = refit_.tensors[tensor];
    const Geometry& geometry = refit_.geometries[entry.geometry];
    const DomainId domain = refit_.fabric.domain_of(refit_.gpu(entry.source_base));
    const auto all_in = [&](const Mesh& mesh, Rank base) {
      return std::all_of(mesh.ranks.begin(), mesh.ranks.end(), [&](Rank rank) {
        return refit_.fabric.domain_of(refit_.gpu({base.value + rank.value})) == domain;
      });
    };
    return all_in(geometry.source.mesh, entry.source_base) && all_in(geometry.target.mesh, entry.target_base);
  }

  const Scenario& scenario_;
  const Refit& refit_;
  std::map<std::tuple<std::uint32_t, Rank, Rank, bool>, std::vector<Fault>> judged_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<InputFault> m2n_faults(const Scenario& scenario, const Refit& refit) {
  return Judge(scenario, refit).run();
}

}  // namespace isthmus

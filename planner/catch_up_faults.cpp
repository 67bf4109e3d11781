// The proof of a catch-up, tensor by tensor and rank by rank, from the layouts alone.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "planner/catch_up.hpp"

namespace isthmus {
namespace {

using SideGpu = std::pair<bool, GpuId>;  // training or not
using ShardOf = std::map<SideGpu, Region>;

/// Box within a box, as the whole's indices.
Region moved_to(Region region, const Region& box) {
  for (std::size_t d = 0; d < region.dimensions; ++d) {
    region.begin[d] += box.begin[d];
    region.end[d] += box.begin[d];
  }
  return region;
}

class CatchUpProof {
 public:
  CatchUpProof(const Refit& before, const Refit& after, const std::vector<int>& lost, const CatchUp& catch_up)
      : before_(before), after_(after), lost_(lost), catch_up_(catch_up), parts_(after.tensors.size()) {
    for (std::uint32_t p = 0; p < catch_up.parts.size(); ++p) parts_[catch_up.parts[p].tensor].push_back(p);
  }

  std::vector<std::string> run() {
    for (std::uint32_t t = 0; t < after_.tensors.size(); ++t) prove(t);
    if (needed_ != catch_up_.needed || moved_ != catch_up_.moved ||
        catch_up_.kept != catch_up_.needed - catch_up_.moved) {
      faults_.push_back(fmt::format("{} bytes needed and {} moved, counted as {} and {}", needed_.value,
                                    moved_.value, catch_up_.needed.value, catch_up_.moved.value));
    }
    return std::move(faults_);
  }

 private:
  bool is_lost(const Refit& refit, GpuId gpu) const {
    const auto host = static_cast<int>(refit.fabric.host_of(gpu).value);
    return std::find(lost_.begin(), lost_.end(), host) != lost_.end();
  }

  static void add_shards(const Refit& refit, const Layout& layout, Rank base, bool train, ShardOf& shards) {
    for (std::size_t i = 0; i < layout.mesh.size(); ++i) {
      const Rank rank{base.value + layout.mesh.ranks[i].value};
      shards[{train, refit.gpu(rank)}] = layout.region(i);
    }
  }

  static ShardOf shards_of(const Refit& refit, const RefitEntry& entry) {
    ShardOf shards;
    const Geometry& geometry = refit.geometries[entry.geometry];
    add_shards(refit, geometry.source, entry.source_base, true, shards);
    add_shards(refit, geometry.target, entry.target_base, false, shards);
    return shards;
  }

  void prove(std::uint32_t t) {
    ShardOf held = shards_of(before_, before_.tensors[t]);
    std::erase_if(held, [this](const auto& each) { return is_lost(before_, each.first.second); });
    std::map<SideGpu, std::vector<Region>> arriving;
    for (const std::uint32_t p : parts_[t]) follow(p, held, arriving);
    const Layout& layout = after_.geometry({t}).target;
    for (const auto& [where, shard] : shards_of(after_, after_.tensors[t])) {
      needed_ += layout.bytes(shard);
      std::vector<Region>& pieces = arriving[where];
      if (const auto own = held.find(where); own != held.end()) {
        const Region kept = intersect(own->second, shard);
        if (!kept.empty()) pieces.push_back(kept);
      }
      if (!tile(pieces, shard)) {
        faults_.push_back(fmt::format("{}: what GPU {} holds and gets does not tile its shard {}",
                                      after_.tensors[t].tensor.name, where.second.value, to_string(shard)));
      }
      arriving.erase(where);
    }
    for (const auto& [where, pieces] : arriving) {
      faults_.push_back(fmt::format("{}: GPU {} gets what it has no shard for", after_.tensors[t].tensor.name,
                                    where.second.value));
    }
  }

  /// What part p reads and writes.
  void follow(std::uint32_t p, const ShardOf& held, std::map<SideGpu, std::vector<Region>>& arriving) {
    const CatchUpPart& part = catch_up_.parts[p];
    const Refit& refit = catch_up_.refit;
    const RefitEntry& entry = refit.tensors[p];
    const Geometry& geometry = refit.geometries[entry.geometry];
    for (std::size_t i = 0; i < geometry.source.mesh.size(); ++i) {
      const Region read = moved_to(geometry.source.region(i), part.box);
      const GpuId gpu = refit.gpu({entry.source_base.value + geometry.source.mesh.ranks[i].value});
      const auto own = held.find({part.from_train, gpu});
      if (read.empty() || (own != held.end() && own->second.contains(read))) continue;
      faults_.push_back(
          fmt::format("{}: GPU {} does not hold {}", entry.tensor.name, gpu.value, to_string(read)));
    }
    for (std::size_t i = 0; i < geometry.target.mesh.size(); ++i) {
      const Region inner = geometry.target.region(i);
      if (inner.empty()) continue;
      const GpuId gpu = refit.gpu({entry.target_base.value + geometry.target.mesh.ranks[i].value});
      arriving[{part.train, gpu}].push_back(moved_to(inner, part.box));
      moved_ += geometry.target.bytes(inner);
    }
  }

  static bool tile(const std::vector<Region>& pieces, const Region& shard) {
    std::int64_t volume = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      volume += pieces[i].volume();
      if (!shard.contains(pieces[i])) return false;
      for (std::size_t j = 0; j < i; ++j)
        if (!intersect(pieces[i], pieces[j]).empty()) return false;
    }
    return volume == shard.volume();
  }

  const Refit &before_, &after_;
  const std::vector<int>& lost_;
  const CatchUp& catch_up_;
  std::vector<std::vector<std::uint32_t>> parts_;  // by tensor of the model
  std::vector<std::string> faults_;
  Bytes needed_, moved_;
};

}  // namespace

std::vector<std::string> catch_up_faults(const Refit& before, const Refit& after,
                                         const std::vector<int>& lost, const CatchUp& catch_up) {
  return CatchUpProof(before, after, lost, catch_up).run();
}

}  // namespace isthmus

#include "planner/catch_up.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace isthmus {
namespace {

/// A shard on a rank of the catch-up.
struct RankShard {
  Rank rank;
  Region region;
};

/// One side of one kind of tensors.
struct SideShards {
  std::vector<RankShard> needed;                // by position in the new layout's mesh
  std::map<Rank, Region> held;                  // on ranks that stay
  std::map<Region, std::vector<Rank>> holders;  // the same by region
  Layout before, after;                         // ranks of the catch-up; `before`: slices that stay whole
  bool some_whole = false;                      // there are such slices
};

/// A box on its way: between two layouts of the box alone.
struct CatchUpTransfer {
  Region box;
  Layout source, target;  // ranks of the catch-up
  bool train = false, from_train = false;
};

/// Consecutive equal parts of a mesh: along its first axis where that replicates, else all of it.
std::size_t slice_count(const Layout& layout) {
  const bool replicas = layout.placements.front() == Placement{};
  return replicas ? to_size(layout.mesh.shape.front()) : 1;
}

Layout take_slices(const Layout& layout, const std::vector<std::size_t>& slices) {
  const std::size_t size = layout.mesh.size() / slice_count(layout);
  Layout taken = layout;
  if (slice_count(layout) > 1) taken.mesh.shape.front() = static_cast<std::int64_t>(slices.size());
  taken.mesh.ranks.clear();
  for (const std::size_t slice : slices) {
    const auto first = layout.mesh.ranks.begin() + static_cast<std::ptrdiff_t>(slice * size);
    taken.mesh.ranks.insert(taken.mesh.ranks.end(), first, first + static_cast<std::ptrdiff_t>(size));
  }
  return taken;
}

Layout replicas_of(const Region& box, Dtype dtype, std::vector<Rank> ranks) {
  Layout layout;
  for (std::size_t d = 0; d < box.dimensions; ++d) layout.shape.push_back(box.end[d] - box.begin[d]);
  layout.dtype = dtype;
  std::sort(ranks.begin(), ranks.end());
  layout.mesh = {{static_cast<std::int64_t>(ranks.size())}, std::move(ranks)};
  layout.placements = {Placement{}};
  return layout;
}

/// Who is who: ranks before, and ranks of the catch-up.
class RankMap {
 public:
  RankMap(const Refit& before, const Refit& after, const std::vector<int>& lost) {
    for (std::size_t r = 0; r < after.members(); ++r) {
      gpus_.push_back(after.gpu_of_rank[r]);
      sides_[r < after.train_ranks ? 0 : 1].emplace(gpus_.back(), Rank{static_cast<std::uint32_t>(r)});
    }
    for (std::size_t r = 0; r < before.members(); ++r) {
      const GpuId gpu = before.gpu_of_rank[r];
      const auto host = static_cast<int>(before.fabric.host_of(gpu).value);
      of_before_.emplace_back();
      if (std::find(lost.begin(), lost.end(), host) != lost.end()) continue;
      auto& side = sides_[r < before.train_ranks ? 0 : 1];
      const auto [known, added] = side.emplace(gpu, Rank{static_cast<std::uint32_t>(gpus_.size())});
      if (added) gpus_.push_back(gpu);
      of_before_.back() = known->second;
    }
  }

  /// None for a rank that was lost.
  std::optional<Rank> of_before(std::size_t rank) const { return of_before_[rank]; }
  const std::vector<GpuId>& gpus() const { return gpus_; }

 private:
  std::array<std::map<GpuId, Rank>, 2> sides_;
  std::vector<std::optional<Rank>> of_before_;
  std::vector<GpuId> gpus_;
};

/// The transfers of one kind of tensors.
class KindPlan {
 public:
  /// `generation_sends`: not where engines hold something else than what travels.
  KindPlan(const RankMap& ranks, CatchUpFrom from, bool generation_sends)
      : ranks_(ranks), from_(from), generation_sends_(generation_sends) {}

  void set_side(bool train, const Layout& before, Rank before_base, const Layout& after, Rank after_base) {
    SideShards& side = sides_[train ? 0 : 1];
    const std::vector<Region> old = before.regions(), fresh = after.regions();
    std::vector<std::size_t> whole;
    const bool sends = train || generation_sends_;
    side.before = before;
    const std::size_t slices = slice_count(before), size = before.mesh.size() / slices;
    for (std::size_t slice = 0; slice < slices; ++slice) {
      bool stays = true;
      for (std::size_t i = slice * size; i < (slice + 1) * size; ++i) {
        const auto rank = ranks_.of_before(before_base.index() + before.mesh.ranks[i].index());
        stays &= rank.has_value();
        if (!rank) continue;
        side.before.mesh.ranks[i] = *rank;
        side.held[*rank] = old[i];
        if (sends && !old[i].empty()) side.holders[old[i]].push_back(*rank);
      }
      if (stays && sends) whole.push_back(slice);
    }
    side.some_whole = !whole.empty();
    if (side.some_whole) side.before = take_slices(side.before, whole);
    side.after = after;
    for (std::size_t i = 0; i < fresh.size(); ++i) {
      Rank& rank = side.after.mesh.ranks[i];
      rank.value += after_base.value;
      side.needed.push_back({rank, fresh[i]});
    }
  }

  /// What no holder has; empty where all is there.
  std::optional<Region> run() {
    for (const bool train : {true, false}) add_side(train);
    return missing_;
  }

  const std::vector<CatchUpTransfer>& transfers() const { return transfers_; }
  Bytes needed, moved;  // of one such tensor

 private:
  /// What the rank does not hold of its new shard.
  static std::vector<Region> missing_parts(const SideShards& side, const RankShard& shard) {
    if (shard.region.empty()) return {};
    const auto own = side.held.find(shard.rank);
    if (own == side.held.end() || own->second.empty()) return {shard.region};
    return subtract(shard.region, own->second);
  }

  void add_side(bool train) {
    const SideShards& side = sides_[train ? 0 : 1];
    const std::size_t slices = slice_count(side.after), size = side.after.mesh.size() / slices;
    std::vector<std::size_t> whole;
    std::map<Region, std::vector<Rank>> boxes;
    for (std::size_t slice = 0; slice < slices; ++slice) {
      bool all = true;
      std::map<Region, std::vector<Rank>> of_slice;
      for (std::size_t i = slice * size; i < (slice + 1) * size; ++i) {
        const RankShard& shard = side.needed[i];
        needed += side.after.bytes(shard.region);
        const std::vector<Region> parts = missing_parts(side, shard);
        all &= shard.region.empty() || (parts.size() == 1 && parts.front() == shard.region);
        for (const Region& part : parts) of_slice[part].push_back(shard.rank);
      }
      if (all && !of_slice.empty()) {
        whole.push_back(slice);
        continue;
      }
      for (auto& [box, ranks] : of_slice) boxes[box].insert(boxes[box].end(), ranks.begin(), ranks.end());
    }
    if (!whole.empty()) add_whole(train, take_slices(side.after, whole), boxes);
    for (const auto& [box, ranks] : boxes) add_box(train, box, ranks);
  }

  std::array<bool, 2> order(bool train) const {
    return from_ == CatchUpFrom::own_side ? std::array{train, !train} : std::array{!train, train};
  }

  /// From the first side that has all of it; where none has, box by box.
  void add_whole(bool train, Layout target, std::map<Region, std::vector<Rank>>& boxes) {
    for (const bool from_train : order(train)) {
      const SideShards& holder = sides_[from_train ? 0 : 1];
      if (!holder.some_whole) continue;
      for (const Region& region : target.regions()) moved += target.bytes(region);
      transfers_.push_back({whole(target.shape), holder.before, std::move(target), train, from_train});
      return;
    }
    const std::vector<Region> regions = target.regions();
    for (std::size_t i = 0; i < regions.size(); ++i)
      if (!regions[i].empty()) boxes[regions[i]].push_back(target.mesh.ranks[i]);
  }

  void add_box(bool train, const Region& box, const std::vector<Rank>& ranks) {
    std::vector<Region> rest{box};
    const Dtype dtype = sides_[0].after.dtype;
    for (const bool from_train : order(train)) {
      for (const auto& [region, holders] : sides_[from_train ? 0 : 1].holders) {
        std::vector<Region> next;
        for (const Region& each : rest) {
          const Region common = intersect(each, region);
          if (common.empty()) {
            next.push_back(each);
            continue;
          }
          transfers_.push_back({common, replicas_of(common, dtype, holders),
                                replicas_of(common, dtype, ranks), train, from_train});
          moved += transfers_.back().target.bytes() * static_cast<std::int64_t>(ranks.size());
          for (const Region& left : subtract(each, common)) next.push_back(left);
        }
        rest = std::move(next);
      }
    }
    if (!rest.empty()) missing_ = rest.front();
  }

  const RankMap& ranks_;
  CatchUpFrom from_;
  bool generation_sends_;
  std::array<SideShards, 2> sides_;  // training, generation
  std::vector<CatchUpTransfer> transfers_;
  std::optional<Region> missing_;
};

/// Moves a mesh down so that its lowest rank is 0; returns that rank.
Rank take_base(Layout& layout) {
  const Rank base = *std::min_element(layout.mesh.ranks.begin(), layout.mesh.ranks.end());
  for (Rank& rank : layout.mesh.ranks) rank.value -= base.value;
  return base;
}

class CatchUpBuilder {
 public:
  CatchUpBuilder(const Refit& before, const Refit& after, const std::vector<int>& lost, CatchUpFrom from)
      : before_(before),
        after_(after),
        from_(from),
        ranks_(before, after, lost),
        result_{
            {after.name, Fabric(after.fabric.topology()), ranks_.gpus(), 0, 0, 1, {}, {}, after.settings, {}},
            {},
            {},
            {},
            {},
            {}} {}

  CatchUp run() {
    for (std::uint32_t t = 0; t < after_.tensors.size() && result_.refused.empty(); ++t) add(t);
    result_.kept = result_.needed - result_.moved;
    const std::set<GpuId> members(ranks_.gpus().begin(), ranks_.gpus().end());
    for (std::size_t rank = after_.members(); rank < after_.ranks(); ++rank) {
      if (members.contains(after_.gpu_of_rank[rank])) continue;
      result_.refit.gpu_of_rank.push_back(after_.gpu_of_rank[rank]);
      ++result_.refit.relay_ranks;
    }
    return std::move(result_);
  }

 private:
  using Kind = std::tuple<std::uint32_t, Rank, Rank, std::uint32_t, Rank, Rank, bool>;
  /// A transfer as tensors of this kind enter it.
  struct Stamp {
    CatchUpPart part;
    RefitEntry entry;
  };
  struct Known {
    std::vector<Stamp> stamps;
    Bytes needed, moved;
    std::optional<Region> missing;
  };

  const Known& known_of(std::uint32_t t) {
    const RefitEntry &was = before_.tensors[t], &is = after_.tensors[t];
    const bool quantised = is.tensor.receiver_quantises;
    const Kind kind{was.geometry,   was.source_base, was.target_base, is.geometry,
                    is.source_base, is.target_base,  quantised};
    const auto found = known_.find(kind);
    if (found != known_.end()) return found->second;
    const Geometry &from = before_.geometries[was.geometry], &to = after_.geometries[is.geometry];
    KindPlan plan(ranks_, from_, !quantised);
    plan.set_side(true, from.source, was.source_base, to.source, is.source_base);
    plan.set_side(false, from.target, was.target_base, to.target, is.target_base);
    Known known{{}, {}, {}, plan.run()};
    known.needed = plan.needed;
    known.moved = plan.moved;
    for (const CatchUpTransfer& transfer : plan.transfers()) known.stamps.push_back(stamp_of(transfer));
    return known_.emplace(kind, std::move(known)).first->second;
  }

  Stamp stamp_of(const CatchUpTransfer& transfer) {
    Stamp stamp{{0, transfer.box, transfer.train, transfer.from_train}, {}};
    Geometry geometry{transfer.source, transfer.target};
    stamp.entry.source_base = take_base(geometry.source);
    stamp.entry.target_base = take_base(geometry.target);
    stamp.entry.tensor.shape = geometry.source.shape;
    stamp.entry.tensor.dtype = geometry.source.dtype;
    stamp.entry.tensor.role = Role::bulk;
    std::vector<Geometry>& all = result_.refit.geometries;
    const auto known = std::find(all.begin(), all.end(), geometry);
    stamp.entry.geometry = static_cast<std::uint32_t>(known - all.begin());
    if (known == all.end()) all.push_back(std::move(geometry));
    return stamp;
  }

  void add(std::uint32_t t) {
    const Known& known = known_of(t);
    const std::string& name = after_.tensors[t].tensor.name;
    if (known.missing) {
      result_.refused = fmt::format("no host that stays holds {} of {}: load it from a checkpoint",
                                    to_string(*known.missing), name);
      return;
    }
    result_.needed += known.needed;
    result_.moved += known.moved;
    for (const Stamp& stamp : known.stamps) {
      result_.parts.push_back(stamp.part);
      result_.parts.back().tensor = t;
      RefitEntry entry = stamp.entry;
      entry.tensor.name = name;
      entry.declared = result_.refit.tensors.size();
      if (entry.tensor.shape != after_.tensors[t].tensor.shape)
        entry.tensor.name += to_string(stamp.part.box);
      if (stamp.part.train) entry.tensor.name += " (training)";
      result_.refit.tensors.push_back(std::move(entry));
    }
  }

  const Refit &before_, &after_;
  CatchUpFrom from_;
  RankMap ranks_;
  CatchUp result_;
  std::map<Kind, Known> known_;
};

}  // namespace

std::string_view to_string(CatchUpFrom from) {
  return from == CatchUpFrom::own_side ? "own side" : "other side";
}

CatchUp catch_up(const Refit& before, const Refit& after, const std::vector<int>& lost, CatchUpFrom from) {
  return CatchUpBuilder(before, after, lost, from).run();
}

}  // namespace isthmus

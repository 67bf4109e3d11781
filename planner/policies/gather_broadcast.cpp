// The conventional refit (NeMo RL's packed broadcast). Per packet of full tensors, in transfer order:
//   export     the owning stage's ranks broadcast their shards to their pipeline peers, then the shards are
//              gathered, so that every training rank holds the full tensors
//   broadcast  training rank 0 sends the packet to every rank of both sides
//   load       every generation rank's weight loader takes its regions out of the packet
// Packet i uses buffer i mod `refit.buffers`: a buffer's packets follow each other, different buffers
// overlap. A packet closes when its total reaches `refit.packet_bytes`; a stacked expert tensor larger
// than a packet is cut at expert boundaries, each slice closing its packet; so is, at any row, one tensor
// that is larger than the largest message.

#include "planner/policies/gather_broadcast.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "planner/shards.hpp"

namespace isthmus {
namespace {

constexpr Bytes largest_broadcast = Limits{}.largest_size;

enum Phase : std::uint32_t { export_stages, export_gather, broadcast_packet, load_packet, phases };

/// What the steps of one tensor need to know besides its geometry.
struct Situation {
  std::uint32_t stage_offset = 0;  // first rank of the owning stage, counted from the instance's source base
  std::uint32_t stage_ranks = 0;   // ranks per stage
  std::uint32_t stages = 1;
  std::uint32_t generate_ranks = 0;  // 0 for bare tensors
  bool bare = false;                 // a bare tensor: its meshes are all there is
  std::uint32_t root = 0;            // the rank that broadcasts the packets
  std::uint32_t first_buffer = 0, buffers = 1;
  std::int64_t parts = 1;                       // tensors that exporters and loaders handle one by one
  std::int64_t units = 1, units_per_slice = 1;  // of dimension 0 where it is cut: parts, or rows
  Rank source_base, target_base;
};

std::int64_t slices_of(const Situation& situation) {
  return (situation.units + situation.units_per_slice - 1) / situation.units_per_slice;
}

class BroadcastPatternBuilder {
 public:
  BroadcastPatternBuilder(const Geometry& geometry, const Situation& situation)
      : geometry_(geometry), situation_(situation), sources_(distinct_shards(geometry.source)) {
    list_everybody();
  }

  Pattern build() {
    if (situation_.stages > 1) add_stage_broadcasts();
    const auto exported = static_cast<std::uint32_t>(pattern_.steps.size());
    const std::int64_t slices = slices_of(situation_);
    for (std::int64_t slice = 0; slice < slices; ++slice) {
      Region region = whole(geometry_.source.shape);
      const std::int64_t first = slice * situation_.units_per_slice;
      const std::int64_t count = std::min(situation_.units_per_slice, situation_.units - first);
      if (slices > 1) {
        region.begin[0] = first;
        region.end[0] = first + count;
      }
      slice_ = static_cast<std::uint32_t>(slice);
      const bool cut_between_parts = situation_.units == situation_.parts;
      parts_ = static_cast<std::uint32_t>(cut_between_parts ? count : slice == 0 ? situation_.parts : 0);
      add_slice(region, exported);
    }
    return std::move(pattern_);
  }

 private:
  /// All ranks of both sides, each once: those of a whole refit, or those of a bare tensor's meshes.
  void list_everybody() {
    std::vector<char> listed;
    const auto add = [&](LocalRank rank, std::uint32_t global) {
      if (listed.size() <= global) listed.resize(global + 1);
      if (listed[global] == 0) everybody_.push_back(rank);
      listed[global] = 1;
    };
    const std::uint32_t train = situation_.bare ? 0 : situation_.stage_ranks * situation_.stages;
    const std::uint32_t source = situation_.source_base.value, target = situation_.target_base.value;
    for (std::uint32_t r = 0; r < train; ++r) add(LocalRank::source(r), source + r);
    for (std::uint32_t r = 0; r < situation_.generate_ranks; ++r) add(LocalRank::target(r), target + r);
    if (!situation_.bare) return;
    for (const Rank r : geometry_.source.mesh.ranks) add(LocalRank::source(r.value), source + r.value);
    for (const Rank r : geometry_.target.mesh.ranks) add(LocalRank::target(r.value), target + r.value);
  }

  LocalRank in_stage(std::uint32_t stage, std::uint32_t local) const {
    return LocalRank::source(stage * situation_.stage_ranks + local);
  }

  /// `exported`: the first so many steps are the stage broadcasts.
  void add_slice(const Region& region, std::uint32_t exported) {
    const auto gathers = static_cast<std::uint32_t>(pattern_.steps.size());
    const bool gathered = add_gathers(region, exported);
    const auto broadcast = static_cast<std::uint32_t>(pattern_.steps.size());
    Step step = make(StepKind::broadcast, broadcast_packet, region);
    step.members = members(everybody_);
    step.from = gathered || situation_.stages > 1 ? Buffer::staging : Buffer::source;
    step.source = LocalRank::source(situation_.root);
    step.parts = parts_;
    depend(step, gathered ? gathers : 0, gathered ? broadcast : exported);
    pattern_.steps.push_back(step);
    add_loads(region, broadcast);
  }

  /// Each rank of the owning stage hands its shard to the ranks in its place on the other stages, once per
  /// tensor.
  void add_stage_broadcasts() {
    const std::uint32_t owner = situation_.stage_offset / situation_.stage_ranks;
    for (const Shard& shard : sources_) {
      for (const std::uint32_t holder : shard.holders) {
        Step step = make(StepKind::broadcast, export_stages, shard.region);
        step.source = in_stage(owner, holder);
        std::vector<LocalRank> peers{step.source};
        for (std::uint32_t stage = 0; stage < situation_.stages; ++stage) {
          if (stage != owner) peers.push_back(in_stage(stage, holder));
        }
        step.members = members(peers);
        pattern_.steps.push_back(step);
      }
    }
  }

  /// Per stage and replica, the ranks that together hold the tensor gather it. False when each holds all of
  /// it.
  bool add_gathers(const Region& region, std::uint32_t exported) {
    if (sources_.size() == 1) return false;
    std::size_t replicas = 0;
    for (const Shard& shard : sources_) replicas = std::max(replicas, shard.holders.size());
    for (std::uint32_t stage = 0; stage < situation_.stages; ++stage) {
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        Step step = make(StepKind::all_gather, export_gather, region);
        step.from = situation_.stages > 1 ? Buffer::staging : Buffer::source;
        std::vector<LocalRank> group;
        for (const Shard& shard : sources_) {
          group.push_back(in_stage(stage, shard.holders[replica % shard.holders.size()]));
        }
        step.source = group.front();
        step.members = members(group);
        depend(step, 0, exported);
        pattern_.steps.push_back(step);
      }
    }
    return true;
  }

  void add_loads(const Region& region, std::uint32_t broadcast) {
    for (std::size_t i = 0; i < geometry_.target.mesh.size(); ++i) {
      const Region part = intersect(geometry_.target.region(i), region);
      if (part.empty()) continue;
      Step step = make(StepKind::load, load_packet, part);
      step.from = Buffer::staging;
      step.to = Buffer::target;
      step.source = step.target = LocalRank::target(geometry_.target.mesh.ranks[i].value);
      step.parts = parts_;
      depend(step, broadcast, broadcast + 1);
      pattern_.steps.push_back(step);
    }
  }

  Step make(StepKind kind, Phase phase, const Region& region) const {
    Step step;
    step.kind = kind;
    step.to = Buffer::staging;
    step.lane = static_cast<std::uint16_t>((situation_.first_buffer + slice_) % situation_.buffers);
    step.group = slice_ * phases + phase;
    step.parts = 0;  // only the packet's broadcast and the loads handle tensors one by one
    step.region = region;
    return step;
  }

  void depend(Step& step, std::uint32_t begin, std::uint32_t end) {
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    for (std::uint32_t i = begin; i < end; ++i) pattern_.after.push_back(i);
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
  }

  std::uint32_t members(const std::vector<LocalRank>& list) {
    const auto known = std::find(pattern_.members.begin(), pattern_.members.end(), list);
    if (known != pattern_.members.end()) return static_cast<std::uint32_t>(known - pattern_.members.begin());
    pattern_.members.push_back(list);
    return static_cast<std::uint32_t>(pattern_.members.size() - 1);
  }

  const Geometry& geometry_;
  const Situation& situation_;
  std::vector<Shard> sources_;
  std::vector<LocalRank> everybody_;
  Pattern pattern_;
  std::uint32_t slice_ = 0, parts_ = 1;
};

std::uint32_t span_of(const Mesh& mesh) {
  return 1 + std::max_element(mesh.ranks.begin(), mesh.ranks.end())->value;
}

Situation situation_of(const Refit& refit, const RefitEntry& entry) {
  const Geometry& geometry = refit.geometries[entry.geometry];
  Situation situation;
  situation.stages = static_cast<std::uint32_t>(refit.stages);
  const bool model = refit.train_ranks > 0;
  situation.bare = !model;
  const auto train = static_cast<std::uint32_t>(refit.train_ranks);
  situation.stage_ranks = model ? train / situation.stages : span_of(geometry.source.mesh);
  situation.stage_offset = model ? entry.source_base.value : 0;
  if (!model) situation.root = distinct_shards(geometry.source).front().holders.front();
  situation.source_base = model ? Rank{0} : entry.source_base;
  situation.generate_ranks = model ? static_cast<std::uint32_t>(refit.generate_ranks) : 0;
  situation.target_base = entry.target_base;
  situation.buffers = static_cast<std::uint32_t>(refit.settings.buffers);
  situation.parts = situation.units = entry.tensor.parts;
  const std::int64_t bytes = geometry.source.bytes().value;
  if (bytes / situation.parts > largest_broadcast.value) situation.units = geometry.source.shape.front();
  const std::int64_t unit_bytes = std::max<std::int64_t>(1, bytes / situation.units);
  const std::int64_t most = std::min(refit.settings.packet_bytes.value, largest_broadcast.value);
  situation.units_per_slice = std::clamp<std::int64_t>(most / unit_bytes, 1, situation.units);
  return situation;
}

}  // namespace

void PacketWriter::add(TensorId tensor) {
  const RefitEntry& entry = refit_.tensors[tensor.index()];
  const Geometry& geometry = refit_.geometries[entry.geometry];
  Situation situation = situation_of(refit_, entry);
  situation.first_buffer = packet_ % situation.buffers;
  PatternCache::Key key{entry.geometry,  situation.first_buffer, situation.stage_offset,
                        situation.parts, situation.units,        situation.units_per_slice};
  if (refit_.train_ranks == 0) key.push_back(std::int64_t{entry.source_base.value} - entry.target_base.value);
  const PatternId pattern =
      cache_.get(key, [&] { return BroadcastPatternBuilder(geometry, situation).build(); });
  plan_.instances.push_back({pattern, tensor, situation.source_base, situation.target_base, first_lane_,
                             first_group_ + packet_ * phases});
  const auto slices = static_cast<std::uint32_t>(slices_of(situation));
  filled_ += geometry.source.bytes();
  if (slices > 1 || filled_ >= refit_.settings.packet_bytes) {
    packet_ += slices;
    filled_ = {};
  }
}

PlanResult plan_gather_broadcast(const Refit& refit) {
  Plan plan;
  plan.policy = "gather-broadcast";
  for (int b = 0; b < refit.settings.buffers; ++b)
    plan.lanes.push_back({fmt::format("buffer {}", b), 1, true});
  PacketWriter packets(refit, plan);
  for (std::uint32_t t = 0; t < refit.tensors.size(); ++t) packets.add(TensorId{t});
  return plan;
}

}  // namespace isthmus

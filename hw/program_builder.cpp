// Where everything of a program lies: arenas, shards, staging.

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "hw/base_pieces.hpp"
#include "hw/program.hpp"
#include "model/error.hpp"

namespace isthmus::hw {
namespace {

Bytes aligned(Bytes offset) {
  return {(offset.value + arena_alignment - 1) / arena_alignment * arena_alignment};
}

void add_around(Region& box, const Region& region) {
  if (box.dimensions == 0) box = region;
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    box.begin[d] = std::min(box.begin[d], region.begin[d]);
    box.end[d] = std::max(box.end[d], region.end[d]);
  }
}

}  // namespace

class ProgramBuilder {
 public:
  explicit ProgramBuilder(Program& program)
      : program_(program), refit_(program.refit_), plan_(program.plan_), cursor_(refit_.ranks()) {}

  void run() {
    place_shards();
    for (const Pattern& pattern : plan_.patterns) program_.staged_.push_back(staged_boxes(pattern));
    for (std::size_t rank = 0; rank < cursor_.size(); ++rank) program_.arenas_.push_back({{}, cursor_[rank]});
    place_staging();
    for (std::size_t rank = 0; rank < cursor_.size(); ++rank) program_.arenas_[rank].size = cursor_[rank];
    list_steps();
    program_.source_version_.assign(refit_.tensors.size(), plan_.version);
    for (const Instance& instance : plan_.instances)
      program_.source_version_[instance.tensor.index()] = instance.version;
  }

 private:
  /// Takes bytes of a rank's arena.
  Bytes take(Rank rank, Bytes bytes) {
    Bytes& cursor = cursor_[rank.index()];
    const Bytes offset = cursor;
    cursor = aligned(cursor + bytes);
    return offset;
  }

  void place_shards() {
    program_.sources_.resize(refit_.ranks());
    program_.targets_.resize(refit_.ranks());
    std::vector<std::vector<Region>> source, target;  // by geometry
    for (const Geometry& geometry : refit_.geometries) {
      source.push_back(geometry.source.regions());
      target.push_back(geometry.target.regions());
    }
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      const std::optional<FusedView> view = refit_.views.empty() ? std::nullopt : refit_.views[t].source;
      place({t}, entry.source_base, refit_.geometries[entry.geometry].source, source[entry.geometry], view,
            program_.sources_);
    }
    bases_.clear();
    for (std::uint32_t t = 0; t < refit_.tensors.size(); ++t) {
      const RefitEntry& entry = refit_.tensors[t];
      const std::optional<FusedView> view = refit_.views.empty() ? std::nullopt : refit_.views[t].target;
      place({t}, entry.target_base, refit_.geometries[entry.geometry].target, target[entry.geometry], view,
            program_.targets_);
    }
  }

  void place(TensorId tensor, Rank base, const Layout& layout, const std::vector<Region>& regions,
             const std::optional<FusedView>& view, std::vector<std::vector<Shard>>& shards) {
    for (std::size_t position = 0; position < regions.size(); ++position) {
      if (regions[position].empty()) continue;
      const Rank rank{base.value + layout.mesh.ranks[position].value};
      if (view) {
        const BasePieces pieces(layout, position, *view);
        const auto [known, added] = bases_.try_emplace({rank, view->base});
        if (added) known->second = take(rank, pieces.base_bytes());
        for (const Shard& piece : pieces.list(tensor, known->second)) shards[rank.index()].push_back(piece);
        continue;
      }
      const Bytes bytes = layout.bytes(regions[position]);
      shards[rank.index()].push_back({tensor, regions[position], take(rank, bytes), bytes});
    }
  }

  /// The box around what a pattern stages, by local rank.
  static std::vector<Program::StagedBox> staged_boxes(const Pattern& pattern) {
    std::vector<std::pair<LocalRank, const Region*>> touched;
    for (const Step& step : pattern.steps) {
      const bool reads = step.from == Buffer::staging, writes = step.to == Buffer::staging;
      const bool all_read = step.kind == StepKind::all_gather;
      if (is_collective(step.kind) && (writes || (reads && all_read))) {
        for (const LocalRank rank : pattern.members[step.members]) touched.emplace_back(rank, &step.region);
      }
      if (reads && !all_read) touched.emplace_back(step.source, &step.region);
      if (writes && !is_collective(step.kind)) touched.emplace_back(step.target, &step.region);
    }
    std::stable_sort(touched.begin(), touched.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Program::StagedBox> boxes;
    for (const auto& [rank, region] : touched) {
      if (boxes.empty() || boxes.back().rank != rank) boxes.push_back({rank, {}});
      add_around(boxes.back().box, *region);
    }
    return boxes;
  }

  void place_staging() {
    std::vector<std::vector<Bytes>> used(plan_.buffers.size());
    for (std::uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const Instance& instance = plan_.instances[i];
      program_.own_staging_.emplace_back();
      std::vector<Rank> ranks;
      for (const Program::StagedBox& staged : program_.staged_[instance.pattern.index()])
        ranks.push_back(global_rank(instance, staged.rank));
      std::sort(ranks.begin(), ranks.end());
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
      for (const Rank rank : ranks) {
        const Bytes bytes =
            refit_.geometry(instance.tensor).source.bytes(*program_.staged_box(instance, rank));
        if (instance.buffer == Instance::own_memory) {
          program_.own_staging_.back().push_back({rank, take(rank, bytes).value});
          continue;
        }
        require_fit(instance, rank, bytes);
        used[instance.buffer].resize(refit_.ranks());
        Bytes& end = used[instance.buffer][rank.index()];
        end = std::max(end, instance.offset + bytes);
      }
    }
    program_.buffer_base_.resize(used.size());
    for (std::size_t b = 0; b < used.size(); ++b) {
      for (std::uint32_t rank = 0; rank < used[b].size(); ++rank)
        program_.buffer_base_[b].push_back(take({rank}, used[b][rank]).value);
    }
  }

  void require_fit(const Instance& instance, Rank rank, Bytes bytes) const {
    const StagingBuffer& buffer = plan_.buffers[instance.buffer];
    if (instance.offset.value >= 0 && instance.offset <= buffer.size &&
        bytes <= buffer.size - instance.offset)
      return;
    throw InputError({}, fmt::format("tensor {} on rank {}: stages {} bytes from byte {} of buffer {}, which "
                                     "has {}",
                                     refit_.tensors[instance.tensor.index()].tensor.name, rank.value,
                                     bytes.value, instance.offset.value, buffer.name, buffer.size.value));
  }

  /// The steps of each operation, in order.
  void list_steps() {
    const Operations& operations = program_.operations_;
    std::vector<std::size_t>& first = program_.first_step_;
    first.assign(operations.list.size() + 1, 0);
    for (const std::uint32_t operation : operations.of_step) ++first[operation + 1];
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    std::vector<std::size_t> next(first.begin(), first.end() - 1);
    program_.steps_.resize(operations.of_step.size());
    std::size_t position = 0;
    for (std::uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const std::size_t steps = plan_.pattern(plan_.instances[i]).steps.size();
      for (std::uint32_t s = 0; s < steps; ++s)
        program_.steps_[next[operations.of_step[position++]]++] = {i, s};
    }
  }

  std::map<std::pair<Rank, std::string>, Bytes> bases_;  // of one side: where each live buffer begins
  Program& program_;
  const Refit& refit_;
  const Plan& plan_;
  std::vector<Bytes> cursor_;  // by rank: the end of what its arena holds so far
};

Program::Program(const Refit& refit, const Plan& plan)
    : refit_(refit), plan_(plan), operations_(expand(refit, plan)) {
  if (refit.sources_quantise()) {
    throw InputError({refit.name, 0, "refit.quantize_at"}, "source",
                     "target: backends move bytes as they are, and compute no MXFP8");
  }
  ProgramBuilder(*this).run();
}

}  // namespace isthmus::hw

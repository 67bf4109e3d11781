#pragma once
// Internal to the checker: a pattern bound to relative ranks and to a geometry's shards, and the
// questions asked of it. Each question reports into a PlanFindings; the later ones need that find_form_faults
// found nothing.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "planner/check_pattern.hpp"

namespace isthmus {

inline bool collective(const Step& step) { return is_collective(step.kind); }
/// An all-gather that leaves a member's own part alone.
inline bool in_place(const Step& step) {
  return step.kind == StepKind::all_gather && step.from == Buffer::target && step.to == Buffer::target;
}
/// An engine processes what has arrived: nothing is written anew.
inline bool processes(const Step& step) {
  return step.kind == StepKind::load && step.from == Buffer::target && step.to == Buffer::target;
}

/// Keeps the first findings and counts all.
struct PlanFindings {
  PatternProof& proof;
  std::size_t most;

  void add(PlanFinding finding) {
    if (++proof.count <= most) proof.findings.push_back(std::move(finding));
  }
};

struct BoundPattern {
  const Pattern& pattern;
  const Geometry& geometry;
  const RelativeBases& bases;
  std::vector<std::vector<std::uint32_t>> members;        // relative ranks, sorted
  std::vector<const Region*> source_shard, target_shard;  // by relative rank; nullptr where there is none

  BoundPattern(const Pattern& bound_pattern, const Geometry& bound_geometry, const GeometryShards& shards,
               const RelativeBases& relative_bases);

  const Step& step(std::uint32_t index) const { return pattern.steps[index]; }
  std::uint32_t relative(LocalRank rank) const {
    const bool target = (rank.value & LocalRank::target_side) != 0;
    return target ? bases.pattern_target + (rank.value & ~LocalRank::target_side)
                  : bases.pattern_source + rank.value;
  }
  std::span<const std::uint32_t> after(std::uint32_t index) const {
    return std::span(pattern.after)
        .subspan(step(index).after_begin, step(index).after_end - step(index).after_begin);
  }
  /// True when the step leaves its region in the `to` buffer of the rank. The root of a broadcast to target
  /// buffers keeps its own and gets nothing; with staging it counts as holding the region there.
  bool receives(const Step& step, std::uint32_t rank) const;

  template <class Visit>
  void for_each_receiver(const Step& step, Visit visit) const {
    if (!collective(step)) {
      visit(relative(step.target));
      return;
    }
    const bool root_gets_nothing = step.kind == StepKind::broadcast && step.to == Buffer::target;
    const std::uint32_t skipped = root_gets_nothing ? relative(step.source) : PlanFinding::no_rank;
    for (const std::uint32_t rank : members[step.members]) {
      if (rank != skipped) visit(rank);
    }
  }
};

/// Indices, ranks and regions that do not exist.
void find_form_faults(const BoundPattern& bound, PlanFindings& findings);
/// Reads of what the reader does not hold at that moment.
void find_unheld_reads(const BoundPattern& bound, PlanFindings& findings);
/// Target elements written never, twice, or where no shard is.
void find_coverage_faults(const BoundPattern& bound, PlanFindings& findings);
/// Target elements that no load of their rank takes, of a tensor that has to be installed.
void find_missing_installs(const BoundPattern& bound, PlanFindings& findings);
/// Steps that send or make another dtype than the one that travels, or that cut a group of values.
void find_wrong_dtypes(const BoundPattern& bound, QuantisedPart quantised, PlanFindings& findings);
/// Messages and copies of more bytes than allowed. Collectives count in 64 bits everywhere.
void find_large_messages(const BoundPattern& bound, Bytes largest, PlanFindings& findings);
/// True when some rank has the whole tensor in staging at the end.
bool stages_full_tensor(const BoundPattern& bound);

}  // namespace isthmus

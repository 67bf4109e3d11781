#include <algorithm>

#include <fmt/format.h>

#include "planner/check_bound.hpp"
#include "planner/check_boxes.hpp"

namespace isthmus {
namespace {

/// The ranks that a step reads from: its source, or the members of an all-gather, each of which adds what it
/// holds.
using Readers = std::span<const std::uint32_t>;

class OwnershipCheck {
 public:
  OwnershipCheck(const BoundPattern& bound, PlanFindings& findings)
      : bound_(bound), findings_(findings), visited_(bound.pattern.steps.size(), PlanFinding::no_rank) {}

  void check(std::uint32_t index) {
    const Step& step = bound_.step(index);
    const std::uint32_t root = bound_.relative(step.source);
    const bool gather = step.kind == StepKind::all_gather;
    const Readers readers = gather ? Readers(bound_.members[step.members]) : Readers(&root, 1);
    parts_.clear();
    const bool held = step.from == Buffer::source
                          ? in_source_shards(step, readers)
                          : brought_directly(index, readers) || brought_through_others(index, readers);
    if (!held) add_not_held(index, readers);
  }

 private:
  bool in_source_shards(const Step& step, Readers readers);
  bool brought_directly(std::uint32_t index, Readers readers);
  bool brought_through_others(std::uint32_t index, Readers readers);
  bool add_brought(std::uint32_t writer_index, const Step& reader, Readers readers);
  bool add_part(const Region& held, const Region& wanted);
  void add_not_held(std::uint32_t index, Readers readers);
  std::string reason(std::uint32_t index, Readers readers, const Region& element) const;

  const BoundPattern& bound_;
  PlanFindings& findings_;
  std::vector<Region> parts_;           // what the readers hold of the region that is read
  std::vector<std::uint32_t> visited_;  // by step: the reading step that last met it
  std::vector<std::uint32_t> open_;     // stack of the walk through `after`
};

bool OwnershipCheck::in_source_shards(const Step& step, Readers readers) {
  for (const std::uint32_t rank : readers) {
    const Region* shard = bound_.source_shard[rank];
    if (shard != nullptr && add_part(*shard, step.region)) return true;
  }
  return covers(step.region, parts_);
}

/// True when all of `wanted` is held; else notes the part that is.
bool OwnershipCheck::add_part(const Region& held, const Region& wanted) {
  if (held.contains(wanted)) return true;
  const Region part = intersect(held, wanted);
  if (!part.empty()) parts_.push_back(part);
  return false;
}

bool OwnershipCheck::add_brought(std::uint32_t writer_index, const Step& reader, Readers readers) {
  const Step& writer = bound_.step(writer_index);
  if (writer.to != reader.from || processes(writer)) return false;
  const bool brought =
      collective(writer) ? std::any_of(readers.begin(), readers.end(),
                                       [&](std::uint32_t rank) { return bound_.receives(writer, rank); })
                         : std::binary_search(readers.begin(), readers.end(), bound_.relative(writer.target));
  return brought && add_part(writer.region, reader.region);
}

/// The usual case: the steps that a reader names have themselves brought what it reads.
bool OwnershipCheck::brought_directly(std::uint32_t index, Readers readers) {
  for (const std::uint32_t earlier : bound_.after(index)) {
    if (add_brought(earlier, bound_.step(index), readers)) return true;
  }
  return !parts_.empty() && covers(bound_.step(index).region, parts_);
}

bool OwnershipCheck::brought_through_others(std::uint32_t index, Readers readers) {
  parts_.clear();
  open_.assign(bound_.after(index).begin(), bound_.after(index).end());
  while (!open_.empty()) {
    const std::uint32_t earlier = open_.back();
    open_.pop_back();
    if (visited_[earlier] == index) continue;
    visited_[earlier] = index;
    if (add_brought(earlier, bound_.step(index), readers)) return true;
    open_.insert(open_.end(), bound_.after(earlier).begin(), bound_.after(earlier).end());
  }
  return covers(bound_.step(index).region, parts_);
}

void OwnershipCheck::add_not_held(std::uint32_t index, Readers readers) {
  const Region& wanted = bound_.step(index).region;
  PlanFinding finding{Fault::not_held, PlanFinding::no_rank, first_missing(wanted, parts_), {index}, {}};
  if (readers.size() == 1) finding.rank = readers.front();
  Region element = wanted;
  for (std::size_t d = 0; d < finding.element.size(); ++d) {
    element.begin[d] = finding.element[d];
    element.end[d] = finding.element[d] + 1;
  }
  finding.detail = reason(index, readers, element);
  findings_.add(std::move(finding));
}

std::string OwnershipCheck::reason(std::uint32_t index, Readers readers, const Region& element) const {
  const Step& step = bound_.step(index);
  const std::string_view buffer = to_string(step.from);
  if (readers.size() > 1 && step.from == Buffer::source) {
    return fmt::format("step {} gathers it, but no member's source shard has it; add a member that holds it",
                       index);
  }
  if (step.from == Buffer::source) {
    const Region* shard = bound_.source_shard[readers.front()];
    return fmt::format("step {} reads it from the source shard, which is {}; read it where it is held", index,
                       shard == nullptr ? "not on this rank" : to_string(*shard));
  }
  for (std::uint32_t other = 0; other < bound_.pattern.steps.size(); ++other) {
    const Step& writer = bound_.step(other);
    if (writer.to != step.from || processes(writer) || !writer.region.contains(element)) continue;
    if (std::any_of(readers.begin(), readers.end(),
                    [&](std::uint32_t r) { return bound_.receives(writer, r); })) {
      return fmt::format(
          "step {} reads it from {} without waiting for step {}, which puts it there; add the "
          "dependency",
          index, buffer, other);
    }
  }
  return fmt::format("step {} reads it from {}, where no step puts it; bring it there first", index, buffer);
}

}  // namespace

void find_unheld_reads(const BoundPattern& bound, PlanFindings& findings) {
  OwnershipCheck ownership(bound, findings);
  for (std::uint32_t i = 0; i < bound.pattern.steps.size(); ++i) ownership.check(i);
}

}  // namespace isthmus

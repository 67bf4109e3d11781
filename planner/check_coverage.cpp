#include <algorithm>

#include <fmt/format.h>

#include "planner/check_bound.hpp"
#include "planner/check_boxes.hpp"

namespace isthmus {
namespace {

/// "4, 7 and 9"; of long lists the first eight.
std::string list_of(const std::vector<std::uint32_t>& steps) {
  std::string text = fmt::format("{}", steps.front());
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (i == 8 && steps.size() > 9) return text + fmt::format(" and {} more", steps.size() - i);
    text += fmt::format("{}{}", i + 1 == steps.size() ? " and " : ", ", steps[i]);
  }
  return text;
}

class CoverageCheck {
 public:
  CoverageCheck(const BoundPattern& bound, PlanFindings& findings) : bound_(bound), findings_(findings) {
    collect_writes();
  }
  void check(std::uint32_t rank);

 private:
  struct Gathered {
    std::uint32_t rank = 0, step = 0;
    Region region;
  };

  void collect_writes();
  void note_own_parts(std::uint32_t index);
  void add_outside(std::uint32_t rank, const Region* shard, const StepBox& write);
  void add_twice(std::uint32_t rank, const Region& both);
  void add_missing(std::uint32_t rank, const Region& shard);

  const BoundPattern& bound_;
  PlanFindings& findings_;
  std::vector<StepBox> writes_;      // to target buffers, grouped by rank
  std::vector<Gathered> gathered_;   // what gathers in place write
  std::vector<std::size_t> begins_;  // by rank: where its writes begin; one more entry at the end
  std::vector<StepBox> boxes_;       // the writes of one rank, for the sweep
};

/// What an in-place gather leaves to be written to a member: the region less what the steps that it names
/// have brought there.
void CoverageCheck::note_own_parts(std::uint32_t index) {
  const Step& step = bound_.step(index);
  for (const std::uint32_t rank : bound_.members[step.members]) {
    std::vector<Region> left{step.region};
    for (const std::uint32_t earlier : bound_.after(index)) {
      const Step& writer = bound_.step(earlier);
      if (writer.to != Buffer::target || !bound_.receives(writer, rank)) continue;
      std::vector<Region> rest;
      for (const Region& part : left)
        for (const Region& outside : subtract(part, writer.region)) rest.push_back(outside);
      left = std::move(rest);
    }
    for (Region& part : left) {
      ++begins_[rank + std::size_t{1}];
      gathered_.push_back({rank, index, std::move(part)});
    }
  }
}

void CoverageCheck::collect_writes() {
  begins_.assign(bound_.bases.ranks + std::size_t{1}, 0);
  for (std::uint32_t i = 0; i < bound_.pattern.steps.size(); ++i) {
    const Step& step = bound_.step(i);
    if (step.to != Buffer::target || processes(step)) continue;
    if (in_place(step))
      note_own_parts(i);
    else
      bound_.for_each_receiver(step, [this](std::uint32_t rank) { ++begins_[rank + std::size_t{1}]; });
  }
  for (std::size_t rank = 0; rank < bound_.bases.ranks; ++rank) begins_[rank + 1] += begins_[rank];
  writes_.resize(begins_.back());
  std::vector<std::size_t> next = begins_;
  for (std::uint32_t i = 0; i < bound_.pattern.steps.size(); ++i) {
    const Step& step = bound_.step(i);
    if (step.to != Buffer::target || in_place(step) || processes(step)) continue;
    bound_.for_each_receiver(step, [&](std::uint32_t rank) { writes_[next[rank]++] = {&step.region, i}; });
  }
  for (const Gathered& part : gathered_) writes_[next[part.rank]++] = {&part.region, part.step};
}

void CoverageCheck::check(std::uint32_t rank) {
  const Region* shard = bound_.target_shard[rank];
  boxes_.assign(writes_.begin() + static_cast<std::ptrdiff_t>(begins_[rank]),
                writes_.begin() + static_cast<std::ptrdiff_t>(begins_[rank + std::size_t{1}]));
  std::int64_t written = 0;
  bool outside = false;
  for (const StepBox& write : boxes_) {
    written += write.region->volume();
    if (shard != nullptr && shard->contains(*write.region)) continue;
    outside = true;
    add_outside(rank, shard, write);
  }
  const auto overlap = first_overlap(boxes_);
  if (overlap) add_twice(rank, intersect(*overlap->first.region, *overlap->second.region));
  const bool complete = !overlap && !outside && shard != nullptr && written == shard->volume();
  if (shard != nullptr && !complete) add_missing(rank, *shard);
}

void CoverageCheck::add_outside(std::uint32_t rank, const Region* shard, const StepBox& write) {
  const std::vector<Region> inside = shard == nullptr ? std::vector<Region>{} : std::vector<Region>{*shard};
  const std::string allowed = shard == nullptr ? "this rank has no target shard of the tensor"
                                               : fmt::format("its target shard is {}", to_string(*shard));
  findings_.add({Fault::outside_target,
                 rank,
                 first_missing(*write.region, inside),
                 {write.step},
                 fmt::format("written by step {}, but {}", write.step, allowed)});
}

void CoverageCheck::add_twice(std::uint32_t rank, const Region& both) {
  Region element = both;
  for (std::size_t d = 0; d < element.dimensions; ++d) element.end[d] = element.begin[d] + 1;
  std::vector<std::uint32_t> steps;
  for (const StepBox& box : boxes_) {
    if (box.region->contains(element)) steps.push_back(box.step);
  }
  std::sort(steps.begin(), steps.end());
  const std::string times = steps.size() == 2 ? "twice" : fmt::format("{} times", steps.size());
  std::string detail = fmt::format("written {}, by steps {}; exactly once is allowed", times, list_of(steps));
  findings_.add({Fault::written_twice, rank, first_element(both), std::move(steps), std::move(detail)});
}

/// Adds a finding if something is missing: where writes overlap or leave the shard, their volumes cannot
/// tell.
void CoverageCheck::add_missing(std::uint32_t rank, const Region& shard) {
  std::vector<Region> parts;
  for (const StepBox& box : boxes_) parts.push_back(intersect(*box.region, shard));
  if (shard.empty() || covers(shard, parts)) return;
  findings_.add({Fault::never_written,
                 rank,
                 first_missing(shard, parts),
                 {},
                 fmt::format("written by no step; exactly one is needed for each element of the shard {}",
                             to_string(shard))});
}

}  // namespace

void find_coverage_faults(const BoundPattern& bound, PlanFindings& findings) {
  CoverageCheck coverage(bound, findings);
  for (std::uint32_t rank = 0; rank < bound.bases.ranks; ++rank) coverage.check(rank);
}

void find_missing_installs(const BoundPattern& bound, PlanFindings& findings) {
  for (std::uint32_t rank = 0; rank < bound.bases.ranks; ++rank) {
    const Region* shard = bound.target_shard[rank];
    if (shard == nullptr || shard->empty()) continue;
    std::vector<Region> loaded;
    for (const Step& step : bound.pattern.steps) {
      if (step.kind == StepKind::load && bound.relative(step.source) == rank) loaded.push_back(step.region);
    }
    if (covers(*shard, loaded)) continue;
    PlanFinding finding{Fault::not_installed, rank, first_missing(*shard, loaded), {}, {}};
    Region element = *shard;
    for (std::size_t d = 0; d < finding.element.size(); ++d) {
      element.begin[d] = finding.element[d];
      element.end[d] = finding.element[d] + 1;
    }
    for (std::uint32_t i = 0; i < bound.pattern.steps.size(); ++i) {
      const Step& step = bound.step(i);
      if (step.to != Buffer::target || processes(step) || !step.region.contains(element)) continue;
      if (bound.receives(step, rank)) finding.steps.push_back(i);
    }
    const std::string written =
        finding.steps.empty() ? "" : "written by step " + list_of(finding.steps) + ", but ";
    finding.detail = written +
                     "its install step is missing; a load from staging or, after the last write, from target "
                     "to target is needed";
    findings.add(std::move(finding));
  }
}

bool stages_full_tensor(const BoundPattern& bound) {
  const Region tensor = whole(bound.geometry.source.shape);
  std::vector<std::int64_t> staged(bound.bases.ranks, 0);
  for (const Step& step : bound.pattern.steps) {
    if (step.to != Buffer::staging || step.kind == StepKind::quantize) continue;  // of what it holds anyway
    const std::int64_t volume = step.region.volume();
    bound.for_each_receiver(step, [&](std::uint32_t rank) { staged[rank] += volume; });
  }
  for (std::uint32_t rank = 0; rank < bound.bases.ranks; ++rank) {
    if (staged[rank] < tensor.volume()) continue;
    std::vector<Region> parts;
    for (const Step& step : bound.pattern.steps) {
      if (step.to != Buffer::staging || step.kind == StepKind::quantize) continue;
      if (bound.receives(step, rank)) parts.push_back(step.region);
    }
    if (covers(tensor, parts)) return true;
  }
  return false;
}

}  // namespace isthmus

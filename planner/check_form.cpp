#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "planner/check_bound.hpp"

namespace isthmus {
namespace {

std::string buffer_fault(const Step& step) {
  if (step.kind > last_step_kind || step.from > Buffer::target || step.to > Buffer::target) {
    return "has an unknown kind or buffer";
  }
  if (step.to == Buffer::source) return "writes to the source buffer, which is read only";
  if (processes(step)) return {};
  const bool out = step.kind == StepKind::load || step.kind == StepKind::unpack;
  if (out && (step.from != Buffer::staging || step.to != Buffer::target)) {
    return fmt::format("{}s from {} to {}; it goes from staging to target", to_string(step.kind),
                       to_string(step.from), to_string(step.to));
  }
  if (step.kind == StepKind::pack && (step.from == Buffer::staging || step.to != Buffer::staging)) {
    return fmt::format("packs from {} to {}; a pack goes from source or target to staging",
                       to_string(step.from), to_string(step.to));
  }
  if (step.kind == StepKind::quantize && (step.from != Buffer::source || step.to != Buffer::staging)) {
    return fmt::format("quantises from {} to {}; it goes from source to staging", to_string(step.from),
                       to_string(step.to));
  }
  return {};
}

std::string dependency_fault(const BoundPattern& bound, std::uint32_t index) {
  const Step& step = bound.step(index);
  const std::size_t listed = bound.pattern.after.size();
  if (step.after_begin > step.after_end || step.after_end > listed) {
    return fmt::format("has dependencies {} to {} of a list of {}", step.after_begin, step.after_end, listed);
  }
  for (const std::uint32_t earlier : bound.after(index)) {
    if (earlier >= index) return fmt::format("waits for step {}; only earlier steps are allowed", earlier);
  }
  return {};
}

std::string region_fault(const Region& region, const std::vector<std::int64_t>& shape) {
  bool inside = region.dimensions == shape.size();
  for (std::size_t d = 0; inside && d < shape.size(); ++d) {
    inside = region.begin[d] >= 0 && region.begin[d] < region.end[d] && region.end[d] <= shape[d];
  }
  if (inside) return {};
  Region printable = region;
  printable.dimensions = std::min(region.dimensions, max_dimensions);
  return fmt::format("has region {}; a box that has elements and lies in {} is needed", to_string(printable),
                     to_string(whole(shape)));
}

std::string rank_fault(const BoundPattern& bound, const Step& step) {
  if (!collective(step)) {
    if (!is_local(step.kind) || bound.relative(step.source) == bound.relative(step.target)) return {};
    return fmt::format("is a {} between two ranks; use a send, or one rank", to_string(step.kind));
  }
  if (step.members >= bound.members.size()) {
    return fmt::format("has member list {}; there are {}", step.members, bound.members.size());
  }
  const std::vector<std::uint32_t>& ranks = bound.members[step.members];
  if (ranks.empty()) return "has no members";
  if (std::adjacent_find(ranks.begin(), ranks.end()) != ranks.end())
    return "has a rank twice among its members";
  const std::uint32_t root = bound.relative(step.source);
  if (step.kind == StepKind::broadcast && !std::binary_search(ranks.begin(), ranks.end(), root)) {
    return "has a root that is not among its members";
  }
  return {};
}

std::string form_fault(const BoundPattern& bound, std::uint32_t index) {
  const Step& step = bound.step(index);
  if (std::string fault = buffer_fault(step); !fault.empty()) return fault;
  if (std::string fault = dependency_fault(bound, index); !fault.empty()) return fault;
  if (std::string fault = region_fault(step.region, bound.geometry.source.shape); !fault.empty())
    return fault;
  return rank_fault(bound, step);
}

}  // namespace

void find_form_faults(const BoundPattern& bound, PlanFindings& findings) {
  for (std::uint32_t i = 0; i < bound.pattern.steps.size(); ++i) {
    const std::string fault = form_fault(bound, i);
    if (fault.empty()) continue;
    findings.proof.malformed = true;
    findings.add({Fault::malformed, PlanFinding::no_rank, {}, {i}, fmt::format("step {} {}", i, fault)});
  }
}

void find_large_messages(const BoundPattern& bound, Bytes largest, PlanFindings& findings) {
  for (std::uint32_t i = 0; i < bound.pattern.steps.size(); ++i) {
    const Step& step = bound.step(i);
    const Bytes bytes = bound.geometry.source.bytes(step.region);
    if (collective(step) || bytes <= largest) continue;
    findings.add({Fault::too_many_bytes,
                  bound.relative(step.source),
                  {},
                  {i},
                  fmt::format("step {} moves {} bytes; at most {} are allowed, so cut it into {}", i,
                              bytes.value, largest.value, (bytes.value - 1) / largest.value + 1)});
  }
}

}  // namespace isthmus

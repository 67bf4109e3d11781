#pragma once
// Internal to the reader and the writer of plan files: what a step leaves unsaid.
// Invariant: writer and reader take the same buffers for those that a file does not name: of a pack and
// of quantising the staging buffer it goes to, of unpack and load that which they come from, else source and
// target.

#include "planner/plan.hpp"

namespace isthmus::plan_file {

struct Buffers {
  Buffer from = Buffer::source, to = Buffer::target;
};

constexpr Buffers usual_buffers(StepKind kind) {
  if (kind == StepKind::pack || kind == StepKind::quantize) return {Buffer::source, Buffer::staging};
  if (kind == StepKind::unpack || kind == StepKind::load) return {Buffer::staging, Buffer::target};
  return {};
}

}  // namespace isthmus::plan_file

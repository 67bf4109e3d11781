#pragma once
// A plan, expanded into the operations that ranks execute: steps bound to global ranks, with the steps that a
// lane coalesces joined into one operation. Simulator and executors start from here. Invariant: every step of
// every instance is part of exactly one operation; an operation's `after` names operations that come from the
// dependencies of its steps. Order: instances, then steps, first appearance counts.

#include <cstdint>
#include <span>
#include <vector>

#include "model/refit.hpp"
#include "planner/calls.hpp"
#include "planner/plan.hpp"

namespace isthmus {

struct Operation {
  StepKind kind = StepKind::send;
  bool staged_source = false, staged_target = false;  // reads from / writes to staging
  LaneId lane;
  std::uint32_t group = 0;
  Rank source, target;                           // collectives: root or first member, twice
  std::uint32_t members = 0;                     // collectives: index into Operations::members
  std::uint32_t pieces = 0;                      // steps joined in it
  std::uint32_t parts = 0;                       // HuggingFace tensors in it
  Rank caller;                                   // whose host pays for the call
  std::uint32_t call_steps = 0, call_of = 0;     // its share of a call; 0 of 0: none
  std::uint32_t exports = 0;                     // HuggingFace tensors that the source hands out for the call
  Bytes bytes;                                   // of its regions
  Bytes bulk_bytes;                              // of those, bytes of bulk tensors
  Bytes quantising;                              // that quantising reads and writes in the source's memory
  std::uint32_t after_begin = 0, after_end = 0;  // range in Operations::after
};

struct Operations {
  std::vector<Operation> list;
  std::vector<std::uint32_t> after;        // operation indices
  std::vector<std::vector<Rank>> members;  // rank lists of collectives
  std::vector<Lane> lanes;
  std::vector<std::uint32_t> of_step;  // the operation of each step: instances one after the other
  Program program = Program::none;     // whose calls they are

  std::span<const std::uint32_t> dependencies(const Operation& operation) const {
    return std::span(after).subspan(operation.after_begin, operation.after_end - operation.after_begin);
  }
  bool collective(const Operation& operation) const { return is_collective(operation.kind); }
};

/// Expands a plan that check() has proven.
Operations expand(const Refit& refit, const Plan& plan);

}  // namespace isthmus

#pragma once
// Communicators as a plan needs them: they are made before its first step, split by split, each by one call
// of every rank of the parent, with a colour. Callers of one parent and one colour are one communicator.
// Invariant of a correct plan: all ranks of a parent call, each with a colour, and each step has its ranks in
// one communicator of its lane's split, which they still keep.

#include <cstdint>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

struct Split {
  static constexpr std::uint32_t none = 0xFFFFFFFF;
  struct Caller {
    Rank rank;
    std::uint32_t colour = none;
    friend bool operator==(const Caller&, const Caller&) = default;
  };
  std::uint32_t parent =
      none;                   // an earlier split, each of whose communicators calls; none: all ranks together
  std::uint32_t slot = none;  // where ranks with peers keep it: a later split with this slot replaces it
  std::vector<Caller> callers{};
  friend bool operator==(const Split&, const Split&) = default;
};

}  // namespace isthmus

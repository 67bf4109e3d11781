#pragma once
// Internal to the checker: coverage and ownership of one pattern against one geometry.
// Ranks here are *relative*: the ranks that a pattern and a geometry can name, renumbered from 0, so that
// instances whose four bases stand in the same relation share one proof. Where the source side and the target
// side have no rank in common, their distance does not matter either, and the target side is moved up to the
// source side.

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "model/refit.hpp"
#include "planner/check.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// The regions of a geometry by mesh position, and what follows from them.
struct GeometryShards {
  std::vector<Region> source, target;
  std::uint32_t source_ranks = 0, target_ranks = 0;  // one past the highest local rank
  Bytes target_bytes;                                // of all target shards together
  bool sharded = false;                              // some shard of either side is not the whole tensor
};
GeometryShards shards_of(const Geometry& geometry);

/// What a pattern needs from whoever binds it: one past the highest offsets and the highest lane and group.
struct PatternExtent {
  std::uint64_t source_ranks = 0, target_ranks = 0;
  std::uint64_t lanes = 0, groups = 0;
};
PatternExtent extent_of(const Pattern& pattern);

/// The four bases as relative ranks.
struct RelativeBases {
  std::uint32_t pattern_source = 0, pattern_target = 0;    // what the pattern's offsets are added to
  std::uint32_t geometry_source = 0, geometry_target = 0;  // what the geometry's mesh ranks are added to
  std::uint32_t ranks = 0;                                 // number of relative ranks
  friend auto operator<=>(const RelativeBases&, const RelativeBases&) = default;
};

struct Binding {
  RelativeBases bases;
  std::uint32_t first_target =
      0;  // relative ranks from here on are shifted by target_shift, others by source_shift
  std::int64_t source_shift = 0, target_shift = 0;

  std::int64_t global(std::uint32_t relative) const {
    return relative + (relative < first_target ? source_shift : target_shift);
  }
};
Binding bind(const Instance& instance, const PatternExtent& extent, const RefitEntry& entry,
             const GeometryShards& shards);

/// A violation without its tensor's name and with a relative rank.
struct PlanFinding {
  static constexpr std::uint32_t no_rank = 0xFFFFFFFF;
  Fault fault = Fault::malformed;
  std::uint32_t rank = no_rank;
  std::vector<std::int64_t> element;
  std::vector<std::uint32_t> steps;
  std::string detail;  // the message after "tensor T, element E on rank R: "
};

/// What a tensor asks of a plan beside its bytes.
struct TensorDemands {
  bool install = false;
  QuantisedPart quantised = QuantisedPart::none;
  friend auto operator<=>(const TensorDemands&, const TensorDemands&) = default;
};

struct PatternProof {
  std::vector<PlanFinding> findings;  // the first ones
  std::size_t count = 0;              // all
  bool malformed = false;             // then nothing else was looked at
  bool full_tensor_staged = false;
};
PatternProof prove_pattern(const Pattern& pattern, const Geometry& geometry, const GeometryShards& shards,
                           const RelativeBases& bases, const TensorDemands& demands, const Limits& limits);

}  // namespace isthmus

#pragma once
// Deliberately naive makers of correct plans, independent of planner/policies: they intersect shards by
// looking at every element, choose a method per tensor and the order by a seed. They exist to give the
// checker, its twin and the mutants plans of every form: all step kinds, all buffers, chains, member lists,
// lanes, windows, schedules, shared staging. Invariant: what build_plan returns is correct under every
// schedule.

#include <cstdint>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus::test {

enum class Method : std::uint8_t {
  direct,     // each target rank gets each overlap straight from one holder
  staged,     // the same into staging, then loaded
  chained,    // the first replica of a target shard as in direct, each further one from the target buffer
              // before it
  multicast,  // each overlap is broadcast to all replicas of a target shard
  gathered,   // sources gather the whole tensor, one broadcasts it in slabs, targets load
  striped,    // each replica of a target shard stages a stripe, then they gather
  in_place,   // the same with stripes in the target buffers
  packed,     // each overlap packed where it comes from, sent from staging to staging, and unpacked
};
inline constexpr std::size_t methods = 8;

/// How steps are numbered.
enum class Order : std::uint8_t {
  levels,         // group = length of the longest chain of dependencies before it
  one_by_one,     // every step has a group of its own
  lanes,          // levels, over three lanes
  shifted_lanes,  // the same, each lane with numbers of its own: right, but no number orders all groups
  lane_pairs,     // two levels share a group, on two lanes
  one_group,      // everything in one group
};
inline constexpr std::size_t orders = 6;

struct BuildOptions {
  std::vector<Method> by_geometry;  // used in turn
  Order order = Order::levels;
  std::uint32_t window = 1;
  bool coalesce = false;           // ignored by one_group: there it would be a wait cycle
  bool scheduled = false;          // groups by Plan::schedule
  bool same_groups = false;        // instances use the same group numbers instead of consecutive ones
  std::uint64_t seed = 0;          // which holders, which lanes
  bool puts = false;               // half of the messages that stay in an NVLink domain are puts
  std::uint32_t slots = 0;         // places in shared buffers that instances reuse; 0: memory of their own
  bool lane_per_instance = false;  // where their steps use one lane each
  std::uint32_t version = 0;
};
BuildOptions options_of(std::uint64_t seed);
/// The same with methods that stage, in orders that let instances reuse a place.
BuildOptions reusing_options_of(std::uint64_t seed);

Plan build_plan(const Refit& refit, const BuildOptions& options);

}  // namespace isthmus::test

#pragma once
// Max-min rates by levels, repaired after each change. The level x of a resource is the largest rate with
//     sum over classes on it of  load x min(x, lowest level among the class's other resources) <= capacity,
// unlimited where the sum never reaches it. A class's rate is the lowest level on its route, whose resource
// owns the class; on the others it is frozen. Levels that satisfy all these equations are max-min rates, so
// the order of repairs decides nothing but speed; sim/README.md says why it ends.
// Invariants: left = capacity - sum of what frozen classes carry at the posted levels of their owners;
// load = sum of the loads of owned classes; integers only, so "unchanged" is ==.
// Finishing. The service of a resource is the integral of its level over picoseconds. A class carries one
// finish mark in its owner's service; a level that changes moves no mark.

#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "model/units.hpp"
#include "sim/earliest.hpp"
#include "sim/level_order.hpp"

namespace isthmus::sim {

class Levels {
 public:
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t highest = std::uint64_t{1} << 62U;  // of all that are limited
  static constexpr Uint128 endless = Uint128{1} << 124U;             // a mark that is never reached
  struct Load {
    std::uint32_t resource = 0;
    std::uint64_t weight = 0;  // a flow at level x loads the resource with weight x x
  };

  /// `patience`: looks per resource after which the order of a repair becomes strict.
  explicit Levels(std::uint32_t patience = 16) : patience_(patience) {}

  std::uint32_t add_resource(Uint128 capacity);
  /// `cap` is a level that no flow of the class exceeds.
  std::uint32_t add_class(std::span<const Load> loads, std::uint64_t cap);
  /// After the last resource and class, before the first flow.
  void prepare();

  /// Changes at one instant: they become rates with repair().
  void set_capacity(std::uint32_t resource, Uint128 capacity);
  void enter(std::uint32_t flow_class, Uint128 mark);  // its first flow, which ends after so much service
  void recount(std::uint32_t flow_class, std::uint32_t flows);  // at least one
  void remark(std::uint32_t flow_class, Uint128 mark);          // in service since the class entered
  void leave(std::uint32_t flow_class);
  Uint128 service(std::uint32_t flow_class);  // since it entered, until now
  void repair();

  /// When the next mark is reached, in picoseconds; Earliest::never if none is.
  std::int64_t next() { return keys_.least(); }
  /// Moves time on and appends the classes whose marks are reached. Requires repaired levels.
  void advance(Instant now, std::vector<std::uint32_t>& due);

  Instant now() const { return now_; }
  std::uint64_t rate(std::uint32_t flow_class) const;  // level; 0 without flows
  std::uint64_t commits() const { return commits_; }
  std::uint64_t strict_repairs() const { return strict_repairs_; }  // those that ran out of patience

 private:
  static constexpr std::uint32_t several = 0xFFFFFFFF;
  struct alignas(64) Resource {
    Int128 left = 0;
    std::uint64_t level = unlimited;
    std::uint64_t load = 0;
    std::uint64_t frozen_bound = 0;  // no owner of a class frozen here is higher, but for unlimited ones
    std::uint32_t first = 0, owned = 0, entries = 0;  // its entries: owned ones, then frozen ones
    bool waiting = false, touched = false;            // waiting: in order_, or to be kept out of it
  };
  struct alignas(64) Progress {
    Uint128 service = 0, first_mark = 0;
    std::uint64_t whole_load = 0;  // owned and frozen
    Instant settled;
    bool first_known = false;
  };
  struct Entry {              // a class on a resource
    std::uint32_t other = 0;  // the other resource of its route; `several` if it has more than one
    std::uint32_t usage = 0;
    std::uint64_t load = 0;  // on the other resource
  };
  struct RouteLink {
    std::uint64_t weight = 0;
    std::uint32_t resource = 0, flow_class = 0;
    std::uint32_t slot = 0;   // of its entry
    std::uint32_t other = 0;  // see Entry
  };
  struct Route {
    Uint128 entered = 0;  // the owner's service when the class entered, were it the owner all the time
    std::uint32_t first = 0, end = 0;
    std::uint32_t flows = 0;
    std::uint32_t owner = 0;  // a usage
    std::uint64_t cap = unlimited;
  };

  static std::uint64_t posted(const Resource& resource) {
    return resource.level == unlimited ? 0 : resource.level;
  }
  std::uint64_t candidate(std::uint32_t index) const;
  void commit(std::uint32_t index);
  std::uint64_t exchange(std::uint32_t index, std::uint64_t level);
  bool take_higher(std::uint32_t index, std::uint64_t level);
  bool give_lower(std::uint32_t index, std::uint64_t level);
  void exchange_above(std::uint32_t index, std::uint64_t level);
  std::uint64_t tied(std::uint32_t index, std::uint64_t level);
  void post(std::uint32_t index, std::uint64_t level, std::int64_t change);
  void load_elsewhere(const Route& route, std::uint32_t except, std::int64_t change, std::uint64_t level);
  void move(std::uint32_t flow_class, std::uint32_t to);
  std::uint32_t lowest(const Route& route) const;
  void own(std::uint32_t usage, Uint128 mark);
  void disown(std::uint32_t usage);
  std::uint64_t load_on_other(const Route& route, std::uint32_t usage) const;
  void append(const Route& route, std::uint32_t usage);
  void remove(std::uint32_t usage);
  void swap_entries(std::uint32_t a, std::uint32_t b);
  void wait(std::uint32_t index);
  void touch(std::uint32_t index);
  void find_key(std::uint32_t index);

  std::vector<Resource> resources_;
  std::vector<Progress> progress_;  // by resource
  std::vector<Uint128> capacities_;
  std::vector<Entry> entries_;    // by resource
  std::vector<Uint128> marks_;    // by entry, of owned ones
  std::vector<Route> routes_;     // by class
  std::vector<RouteLink> links_;  // by class: usages
  std::vector<std::uint32_t> touched_, marked_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> near_;  // levels of frozen classes, their loads
  LevelOrder order_;
  Earliest keys_;
  Instant now_;
  std::uint64_t commits_ = 0, strict_repairs_ = 0;
  std::uint32_t patience_;
  bool prepared_ = false;
};

inline void Levels::wait(std::uint32_t index) {
  Resource& resource = resources_[index];
  if (resource.waiting) return;
  resource.waiting = true;
  order_.add(index, resource.level);
}

/// Brings the service up to now; the key is found again when levels are repaired.
inline void Levels::touch(std::uint32_t index) {
  Resource& resource = resources_[index];
  if (resource.touched) return;
  resource.touched = true;
  touched_.push_back(index);
  Progress& progress = progress_[index];
  progress.service += Uint128(posted(resource)) * Uint128((now_ - progress.settled).value);
  progress.settled = now_;
}

}  // namespace isthmus::sim

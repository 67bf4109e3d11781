#pragma once
// Max-min fair sharing of resources by flows that drain over time: exact, in integers only.
//
// Flows with equal usages form a class. A flow of rate r loads resource l with weight(l) x r. At any instant
// all flows have the max-min rates: no resource carries more than its capacity, and each active class has a
// bottleneck: a full resource on which no class has a higher rate (certificate() checks both).
// A solve re-rates a set of classes that is closed: it holds the classes that changed and, for each resource
// that is or becomes a bottleneck of one of them, all classes on it. Classes outside keep their bottlenecks,
// so the certificate holds for all.
//
// Units. rate: 2^-16 units per second, rounded down. weight: 2^-20. A class's service V is the integral of
// its flows' rate over picoseconds (128-bit, exact); a flow that starts at service V with `amount` ends when
// the service reaches V + amount x 2^16 x 10^12. Ends are rounded up to the picosecond.

#include <cstdint>
#include <map>
#include <queue>
#include <string>
#include <vector>

#include "model/units.hpp"

namespace isthmus::sim {

struct Usage {
  static constexpr std::uint32_t one = 1U << 20U;
  std::uint32_t resource = 0;
  std::uint32_t weight = one;  // in units of 2^-20
  friend bool operator==(const Usage&, const Usage&) = default;
};

class Fluid {
 public:
  /// Resources and classes are added before the first flow starts.
  std::uint32_t add_resource(std::int64_t capacity);          // units per second, >= 1
  std::uint32_t add_class(const std::vector<Usage>& usages);  // at least one; each resource at most once

  /// Starts a flow of `amount` > 0 units in class `index` now; `tag` comes back when it ends.
  void start(std::uint32_t index, std::int64_t amount, std::uint32_t tag);
  /// Makes the rates max-min again after starts and ends. Call once per instant, before time moves on.
  void solve();
  /// The earliest end; false when no flow is active. Requires solved rates.
  bool next_end(Instant& when);
  /// Moves time to `now` (at most next_end) and appends the tags of flows that end there.
  void advance(Instant now, std::vector<std::uint32_t>& ended);

  Instant now() const { return now_; }
  std::size_t active() const { return active_; }
  /// Empty when the rates are max-min; else what is wrong. For tests and checked builds.
  std::string certificate() const;
  /// Rate of each flow of a class, units per second (rounded down).
  std::int64_t rate(std::uint32_t flow_class) const;

 private:
  struct Mark {
    Uint128 service;  // at which the flow ends
    std::uint64_t sequence;
    std::uint32_t tag;
    bool operator>(const Mark& other) const {
      return service != other.service ? service > other.service : sequence > other.sequence;
    }
  };
  using Marks = std::priority_queue<Mark, std::vector<Mark>, std::greater<>>;
  struct Class {  // what solving touches; flows stand apart
    std::uint32_t first_usage = 0, end_usage = 0;
    std::uint32_t flows = 0;         // active ones
    std::uint32_t solved_flows = 0;  // of them, counted in Resource::carried
    std::uint32_t version = 0;       // of its entry in ends_
    std::uint64_t rate = 0, new_rate = 0;
    bool changed = false;  // since the last solve
    bool in_set = false;
    bool frozen = false;
  };
  struct Service {
    Uint128 value = 0;
    Instant settled;
  };
  struct Active {
    std::uint32_t flow_class, usage;
  };
  struct Resource {
    Uint128 capacity = 0;       // 2^-36 units per second
    Uint128 carried = 0;        // by the rates of the last solve; while solving: by classes outside the set
    Uint128 left = 0;           // while solving
    std::uint64_t load = 0;     // while solving: weights of flows not frozen yet
    std::uint32_t in_set = 0;   // while solving: classes of the set
    std::uint32_t version = 0;  // of its entry in levels_
    bool bottleneck = false;    // of some class
    bool freed = false;         // a class on it ended
    bool touched = false, queued = false;
  };
  struct End {  // stale when the class has another version by now
    std::uint32_t flow_class, version;
  };
  struct Level {
    std::uint64_t rate;
    std::uint32_t resource, version;
    bool operator>(const Level& other) const {
      return rate != other.rate ? rate > other.rate : resource > other.resource;
    }
  };

  void mark_changed(std::uint32_t index);
  void activate(std::uint32_t index);
  void deactivate(Class& flow_class);
  void settle(std::uint32_t index);
  void finish_flows(std::uint32_t index, std::vector<std::uint32_t>& ended);
  void push_end(std::uint32_t index);

  void add_to_set(std::uint32_t index);
  void add_all_on(std::uint32_t resource);
  void close_set(bool through_all);
  bool fill();
  void freeze_on(std::uint32_t full, std::uint64_t rate);
  bool append_level(std::uint32_t index);
  void commit();
  bool stale(const End& end) const { return classes_[end.flow_class].version != end.version; }

  std::vector<Resource> resources_;
  std::vector<std::vector<Active>> active_classes_;  // by resource, in no order
  std::vector<Class> classes_;
  std::vector<Service> services_;     // by class
  std::vector<Marks> marks_;          // by class
  std::vector<Usage> usages_;         // by class
  std::vector<std::uint32_t> slots_;  // by usage: where the class stands among the resource's active ones
  std::vector<std::uint32_t> changed_, freed_;  // classes and resources, since the last solve
  std::vector<std::uint32_t> set_, touched_;    // while solving: classes and the resources they use
  std::vector<std::uint32_t> queue_;            // resources whose level rose
  std::size_t closed_ = 0;                      // classes of set_ whose bottlenecks have been followed
  std::map<Instant, std::vector<End>> ends_;    // equal shards end together: few distinct times
  std::vector<Level> levels_;                   // a heap, lowest first
  Instant now_;
  std::size_t active_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace isthmus::sim

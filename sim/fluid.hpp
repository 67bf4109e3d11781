#pragma once
// Max-min fair sharing of resources by flows that drain over time: exact, in integers only.
//
// Flows with equal usages form a class. A flow of rate r loads resource l with weight(l) x r. At any instant
// all flows have the max-min rates (sim/levels.hpp finds them, sim/certificate.hpp says what they are); with
// priorities, rate / priority is max-min. A cap is a rate that no flow of the class exceeds.
//
// Units. rate: 2^-16 units per second, rounded down. weight: 2^-20. A class's service V is the integral of
// its flows' rate / priority over picoseconds (128-bit, exact); a flow that starts at service V with `amount`
// ends when the service reaches V + amount x 2^16 x 10^12 / priority. Ends are rounded up to the picosecond.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/units.hpp"
#include "sim/certificate.hpp"
#include "sim/levels.hpp"

namespace isthmus::sim {

struct Usage {
  static constexpr std::uint32_t one = 1U << 20U;
  std::uint32_t resource = 0;
  std::uint32_t weight = one;  // in units of 2^-20
  friend bool operator==(const Usage&, const Usage&) = default;
};

struct Sharing {
  std::uint32_t priority = 1;       // a flow of priority 2 gets twice the rate of one of priority 1
  std::optional<std::int64_t> cap;  // units per second, per flow
};

class Fluid {
 public:
  /// Resources and classes are added before the first flow starts.
  std::uint32_t add_resource(std::int64_t capacity);  // units per second, >= 0
  /// At least one usage or a cap; each resource at most once.
  std::uint32_t add_class(const std::vector<Usage>& usages, const Sharing& sharing = {});
  /// The same for many flows that run alike: the loads of all of them together on each resource.
  std::uint32_t add_class_of_loads(std::span<const Levels::Load> loads);

  /// Starts a flow of `amount` >= 0 units in class `index` now; `tag` comes back when it ends.
  void start(std::uint32_t index, std::int64_t amount, std::uint32_t tag);
  /// Starts `flows` > 0 flows without end in a class that has none.
  void start_endless(std::uint32_t index, std::uint32_t flows);
  /// What the flows of such a class have moved until now, all together, rounded down.
  std::int64_t moved(std::uint32_t index);
  /// Ends all flows of a class now, complete or not; appends what each of them had left. Not for flows that
  /// started at this instant without bytes, nor for those without end.
  struct Cancelled {
    std::uint32_t tag = 0;
    std::int64_t left = 0;  // of its amount, rounded up
  };
  void cancel(std::uint32_t index, std::vector<Cancelled>& cancelled);
  /// Changes what a resource can carry from now on.
  void set_capacity(std::uint32_t resource, std::int64_t capacity);
  /// Makes the rates max-min again after starts, ends and other capacities. Call once per instant, before
  /// time moves on.
  void solve();
  /// The earliest end; false when no flow ends any more: none is active, or all of them stand still.
  /// Requires solved rates.
  bool next_end(Instant& when);
  /// Moves time to `now` (at most next_end) and appends the tags of flows that end there.
  void advance(Instant now, std::vector<std::uint32_t>& ended);

  Instant now() const { return levels_.now(); }
  std::size_t active() const { return active_; }
  /// All rates at present.
  Allocation allocation() const;
  /// Empty when the rates are max-min; else what is wrong. Debug builds check it after each solve, with
  /// n > 64 classes after every n / 64th.
  std::string certificate() const { return certify(allocation()); }
  /// Rate of each flow of a class, units per second (rounded down).
  std::int64_t rate(std::uint32_t flow_class) const;
  /// How often a level was looked at: what solving costs.
  std::uint64_t commits() const { return levels_.commits(); }

 private:
  struct Finish {
    Uint128 service = 0;  // at which the flow ends
    std::uint32_t sequence = 0;
    std::uint32_t tag = 0;
    bool operator>(const Finish& other) const {
      return service != other.service ? service > other.service : sequence > other.sequence;
    }
  };
  struct Class {
    Finish first;               // of its flows
    std::vector<Finish> later;  // a heap of the others
    std::uint32_t flows = 0;
    std::uint32_t sequence = 0;
    std::uint32_t priority = 1;
  };

  void finish_flows(std::uint32_t index, std::vector<std::uint32_t>& ended);
  void recount(std::uint32_t index);
  void prepare();
  std::uint32_t finish_class(std::uint32_t priority, std::uint64_t cap);

  Levels levels_;
  std::vector<Class> classes_;
  std::vector<std::int64_t> capacities_;  // by resource
  std::vector<Levels::Load> loads_;       // by class: of one flow
  std::vector<std::uint32_t> first_load_{0};
  std::vector<std::uint64_t> caps_;             // by class
  std::vector<std::uint32_t> empty_;            // tags of flows without bytes that started now
  std::vector<std::uint32_t> due_, recounted_;  // classes
  std::vector<char> is_recounted_;
  std::size_t active_ = 0;
  std::size_t solves_ = 0;
  bool prepared_ = false;
};

}  // namespace isthmus::sim

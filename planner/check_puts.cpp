#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include <fmt/format.h>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

/// Calls visit(instance, step index, step) for every put.
template <class Visit>
void for_each_put(const Plan& plan, Visit visit) {
  std::vector<std::vector<std::uint32_t>> puts(plan.patterns.size());
  for (std::size_t p = 0; p < puts.size(); ++p) {
    for (std::uint32_t s = 0; s < plan.patterns[p].steps.size(); ++s) {
      if (plan.patterns[p].steps[s].kind == StepKind::put) puts[p].push_back(s);
    }
  }
  for (const Instance& instance : plan.instances) {
    for (const std::uint32_t s : puts[instance.pattern.index()])
      visit(instance, s, plan.pattern(instance).steps[s]);
  }
}

struct PutPair {
  std::uint32_t source = 0, target = 0;
  friend auto operator<=>(const PutPair&, const PutPair&) = default;
};

PutPair pair_of(const Instance& instance, const Step& step) {
  return {global_rank(instance, step.source).value, global_rank(instance, step.target).value};
}

/// Puts of a pair on a lane by group, after joining.
using PutGroups = std::map<std::uint32_t, std::size_t>;

/// How many puts from one rank to another can be in flight at once: on each lane those of as many successive
/// groups of the sender as its window has. Pairs with fewer puts in all are not looked at.
class PutsInFlight {
 public:
  PutsInFlight(const Plan& plan, std::size_t limit) : plan_(plan) {
    std::map<PutPair, std::size_t> all;
    for_each_put(plan_, [&](const Instance& instance, std::uint32_t, const Step& step) {
      ++all[pair_of(instance, step)];
    });
    for (const auto& [pair, puts] : all) {
      if (puts > limit) by_pair_[pair];
    }
    if (by_pair_.empty()) return;
    count_puts();
    list_groups();
  }

  /// Calls visit(pair, puts in flight) for the pairs that have more puts than the limit.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [pair, lanes] : by_pair_) {
      std::size_t sum = 0;
      for (const auto& [lane, groups] : lanes) sum += most_of(lane, pair.source, groups);
      visit(pair, sum);
    }
  }

 private:
  void count_puts() {
    OperationKeys keys(plan_);
    std::unordered_set<OperationKey, OperationKeyHash> known;
    for_each_put(plan_, [&](const Instance& instance, std::uint32_t s, const Step& step) {
      const auto found = by_pair_.find(pair_of(instance, step));
      if (found == by_pair_.end()) return;
      const std::uint32_t lane = lane_of(instance, step);
      if (plan_.lanes[lane].coalesce && !known.insert(keys.key(instance, s)).second) return;
      ++found->second[lane][plan_.group_of(instance, s)];
    });
  }

  /// The groups that the senders in question have on each lane.
  void list_groups() {
    for (const auto& entry : by_pair_) {
      for (const auto& lane : entry.second) groups_[{lane.first, entry.first.source}];
    }
    for (const Instance& instance : plan_.instances) {
      const std::vector<Step>& steps = plan_.pattern(instance).steps;
      for (std::size_t s = 0; s < steps.size(); ++s) {
        const std::uint32_t lane = lane_of(instance, steps[s]), group = plan_.group_of(instance, s);
        for_each_rank(plan_, instance, steps[s], [&](std::uint32_t rank) {
          const auto found = groups_.find({lane, rank});
          if (found != groups_.end()) found->second.push_back(group);
        });
      }
    }
    for (auto& entry : groups_) {
      std::sort(entry.second.begin(), entry.second.end());
      entry.second.erase(std::unique(entry.second.begin(), entry.second.end()), entry.second.end());
    }
  }

  std::size_t most_of(std::uint32_t lane, std::uint32_t rank, const PutGroups& puts) const {
    const std::vector<std::uint32_t>& groups = groups_.at({lane, rank});
    const std::size_t window = plan_.lanes[lane].window;
    const auto puts_in = [&puts](std::uint32_t group) {
      const auto found = puts.find(group);
      return found == puts.end() ? std::size_t{0} : found->second;
    };
    std::size_t sum = 0, most = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
      sum += puts_in(groups[g]);
      if (g >= window) sum -= puts_in(groups[g - window]);
      most = std::max(most, sum);
    }
    return most;
  }

  const Plan& plan_;
  std::map<PutPair, std::map<std::uint32_t, PutGroups>> by_pair_;                         // by lane
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> groups_;  // by lane and rank
};

}  // namespace

void check_puts(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  for_each_put(plan, [&](const Instance& instance, std::uint32_t s, const Step& step) {
    const Rank source = global_rank(instance, step.source), target = global_rank(instance, step.target);
    if (refit.fabric.domain_of(refit.gpu(source)) == refit.fabric.domain_of(refit.gpu(target))) return;
    report(proof, limits, [&] {
      return Violation{
          Fault::out_of_reach,
          instance.tensor,
          {},
          {s},
          fmt::format("tensor {}: step {} puts from rank {} into rank {}, which is in another "
                      "NVLink domain; send it",
                      refit.tensors[instance.tensor.index()].tensor.name, s, source.value, target.value)};
    });
  });
  if (limits.puts_in_flight == Limits::no_limit) return;
  PutsInFlight(plan, limits.puts_in_flight).for_each([&](const PutPair& pair, std::size_t puts) {
    if (puts <= limits.puts_in_flight) return;
    report(proof, limits, [&] {
      return Violation{Fault::too_many_puts,
                       {},
                       {},
                       {},
                       fmt::format("rank {} has {} puts in flight to rank {}; the executor allows {}, so "
                                   "spread them over more groups or take a smaller window",
                                   pair.source, puts, pair.target, limits.puts_in_flight)};
    });
  });
}

}  // namespace isthmus

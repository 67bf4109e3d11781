#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t nobody = 0xFFFFFFFF;

struct MadeCommunicator {
  std::vector<std::uint32_t> ranks;  // ascending
};

std::string text_of(const std::vector<std::uint32_t>& ranks) {
  constexpr std::size_t most = 8;
  const std::vector<std::uint32_t> some(
      ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(std::min(most, ranks.size())));
  const std::string more = ranks.size() > most ? fmt::format(" and {} more", ranks.size() - most) : "";
  return fmt::format("{{{}{}}}", fmt::join(some, ","), more);
}

class CommunicatorCheck {
 public:
  CommunicatorCheck(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof)
      : refit_(refit), plan_(plan), limits_(limits), proof_(proof) {}

  void run() {
    for (std::uint32_t s = 0; s < plan_.splits.size(); ++s) make(s);
    const bool used = std::any_of(plan_.lanes.begin(), plan_.lanes.end(),
                                  [](const Lane& lane) { return lane.split != Split::none; });
    if (!used) return;
    for (const Instance& instance : plan_.instances) check_steps(instance);
  }

 private:
  void add(Fault fault, TensorId tensor, std::vector<std::uint32_t> steps, const std::string& message) {
    report(proof_, limits_, [&] { return Violation{fault, tensor, {}, std::move(steps), message}; });
  }

  /// All members, and the relay ranks that some split names.
  std::vector<std::uint32_t> everybody() const {
    std::set<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < refit_.members(); ++rank) ranks.insert(rank);
    for (const Split& split : plan_.splits) {
      for (const Split::Caller& caller : split.callers) ranks.insert(caller.rank.value);
    }
    return {ranks.begin(), ranks.end()};
  }

  std::uint32_t made_for(std::uint32_t split, std::uint32_t rank) const {
    const auto found = number_[split].find(rank);
    return found == number_[split].end() ? nobody : found->second;
  }

  /// The callers of a split by the communicator that they are to divide: ranks and colours.
  void make(std::uint32_t index) {
    const Split& split = plan_.splits[index];
    number_.emplace_back();
    std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> callers;
    for (const Split::Caller& caller : split.callers) {
      const std::uint32_t rank = caller.rank.value;
      const std::uint32_t parent = split.parent == Split::none ? nobody : made_for(split.parent, rank);
      if (split.parent != Split::none && parent == nobody) {
        add(Fault::never_made, {}, {},
            fmt::format("split {}: rank {} enters, but is in no communicator of split {}, the parent", index,
                        rank, split.parent));
        continue;
      }
      callers[parent][rank] = caller.colour;
    }
    for (const auto& [parent, colours] : callers)
      divide(index, parent == nobody ? everybody() : made_[parent].ranks, colours);
  }

  void divide(std::uint32_t index, const std::vector<std::uint32_t>& parent,
              const std::map<std::uint32_t, std::uint32_t>& colours) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
    for (const auto& [rank, colour] : colours) {
      if (colour != Split::none) {
        groups[colour].push_back(rank);
        continue;
      }
      add(Fault::never_made, {}, {},
          fmt::format("rank {} has no colour in split {} of communicator {}, so it may wait for ever or join "
                      "a group of others; give it a colour of its own",
                      rank, index, text_of(parent)));
    }
    for (const std::uint32_t rank : parent) {
      if (colours.contains(rank)) continue;
      const std::string made = groups.empty() ? "{}" : text_of(groups.begin()->second);
      add(Fault::never_made, {}, {},
          fmt::format(
              "split {}: creating communicator {} from parent {} - rank {} of the parent never enters, "
              "so rank {} waits for ever - every rank of the parent has to enter",
              index, made, text_of(parent), rank, colours.begin()->first));
    }
    for (auto& [colour, ranks] : groups) {
      for (const std::uint32_t rank : ranks) number_[index][rank] = static_cast<std::uint32_t>(made_.size());
      made_.push_back({std::move(ranks)});
    }
  }

  /// The split that replaces what the rank got from an earlier one; nobody where it is still kept.
  std::uint32_t replaced_by(std::uint32_t split, std::uint32_t rank) const {
    const std::uint32_t slot = plan_.splits[split].slot;
    for (std::uint32_t later = split + 1; slot != Split::none && later < plan_.splits.size(); ++later) {
      const std::uint32_t made = made_for(later, rank);
      const bool alone = made == nobody || made_[made].ranks.size() == 1;
      if (plan_.splits[later].slot == slot && !alone) return later;
    }
    return nobody;
  }

  void check_steps(const Instance& instance) {
    const std::vector<Step>& steps = plan_.pattern(instance).steps;
    for (std::uint32_t s = 0; s < steps.size(); ++s) {
      const Lane& lane = plan_.lanes[lane_of(instance, steps[s])];
      if (lane.split == Split::none || is_local(steps[s].kind)) continue;
      check_step(instance, s, lane);
    }
  }

  void check_step(const Instance& instance, std::uint32_t index, const Lane& lane) {
    const Step& step = plan_.pattern(instance).steps[index];
    const std::string& tensor = refit_.tensors[instance.tensor.index()].tensor.name;
    std::uint32_t first = nobody;
    bool fits = true;
    for_each_rank(plan_, instance, step, [&](std::uint32_t rank) {
      if (!fits) return;
      if (first == nobody) first = rank;
      const std::uint32_t own = made_for(lane.split, rank), of_first = made_for(lane.split, first);
      if (own == nobody || own != of_first) {
        fits = false;
        add(Fault::not_connected, instance.tensor, {index},
            fmt::format("tensor {}: step {} ({}) on lane {} joins ranks {} and {}, which are in {} and {} of "
                        "split {}; a communicator that has both is needed",
                        tensor, index, to_string(step.kind), lane.name, first, rank, named(of_first),
                        named(own), lane.split));
        return;
      }
      const std::uint32_t later = replaced_by(lane.split, rank);
      if (later == nobody || made_[own].ranks.size() == 1) return;
      fits = false;
      add(Fault::not_connected, instance.tensor, {index},
          fmt::format(
              "tensor {}: rank {} takes part in communicators {} and {} but has one slot, {}; step {} "
              "on {} has no peer",
              tensor, rank, named(own), named(made_for(later, rank)), plan_.splits[later].slot, index,
              named(own)));
    });
  }

  std::string named(std::uint32_t number) const {
    return number == nobody ? "no communicator" : text_of(made_[number].ranks);
  }

  const Refit& refit_;
  const Plan& plan_;
  const Limits& limits_;
  Proof& proof_;
  std::vector<MadeCommunicator> made_;
  std::vector<std::map<std::uint32_t, std::uint32_t>> number_;  // by split and rank, in made_
};

/// What a split names that does not exist; empty when all is there.
std::string split_fault(const Refit& refit, const Plan& plan, std::size_t index) {
  const Split& split = plan.splits[index];
  if (split.parent != Split::none && split.parent >= index)
    return fmt::format("has parent {}; an earlier split is needed", split.parent);
  std::set<Rank> known;
  for (const Split::Caller& caller : split.callers) {
    if (caller.rank.index() >= refit.ranks())
      return fmt::format("names rank {}; there are {}", caller.rank.value, refit.ranks());
    if (!known.insert(caller.rank).second) return fmt::format("names rank {} twice", caller.rank.value);
  }
  return {};
}

}  // namespace

bool check_lanes(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  bool sound = true;
  const auto add = [&](std::string message) {
    sound = false;
    report(proof, limits, [&] { return Violation{Fault::malformed, {}, {}, {}, std::move(message)}; });
  };
  for (std::size_t i = 0; i < plan.lanes.size(); ++i) {
    const Lane& lane = plan.lanes[i];
    if (lane.window == 0) add(fmt::format("lane {} ({}) - window 0 - at least 1 is needed", i, lane.name));
    if (lane.split != Split::none && lane.split >= plan.splits.size())
      add(fmt::format("lane {} ({}) - split {} - there are {}", i, lane.name, lane.split,
                      plan.splits.size()));
  }
  for (std::size_t s = 0; s < plan.splits.size(); ++s) {
    const std::string fault = split_fault(refit, plan, s);
    if (!fault.empty()) add(fmt::format("split {} {}", s, fault));
  }
  return sound;
}

void check_communicators(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  if (!plan.splits.empty()) CommunicatorCheck(refit, plan, limits, proof).run();
}

}  // namespace isthmus

// The transfers that a step amounts to.

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "hw/program.hpp"
#include "model/error.hpp"

namespace isthmus::hw {

class TransferMaker {
 public:
  TransferMaker(const Program& program, std::vector<Transfer>& transfers)
      : program_(program), transfers_(transfers) {}

  void add(ProgramStep which) {
    which_ = which;
    instance_ = &program_.plan_.instances[which.instance];
    pattern_ = &program_.plan_.pattern(*instance_);
    step_ = &pattern_->steps[which.step];
    if (step_->kind == StepKind::broadcast) {
      add_broadcast();
    } else if (step_->kind == StepKind::all_gather) {
      add_gather();
    } else {
      add(global_rank(*instance_, step_->source), global_rank(*instance_, step_->target), step_->region);
    }
  }

 private:
  std::vector<Rank> members(const Step& step) const {
    std::vector<Rank> ranks;
    for (const LocalRank rank : pattern_->members[step.members])
      ranks.push_back(global_rank(*instance_, rank));
    return ranks;
  }

  /// The pieces of a buffer that meet a region, which lies in them altogether.
  std::vector<Place> find(Rank rank, Buffer buffer, const Region& region) const {
    const std::vector<Place> places = program_.places(which_.instance, rank, buffer);
    std::vector<Place> met;
    std::int64_t found = 0;
    for (const Place& place : places) {
      const std::int64_t common = intersect(place.box, region).volume();
      if (common == 0) continue;
      found += common;
      met.push_back(place);
    }
    if (found == region.volume()) return met;
    std::string has = places.empty() ? "empty" : to_string(places.front().box);
    if (places.size() > 1) has += fmt::format(" and {} more pieces", places.size() - 1);
    throw InputError(
        {}, fmt::format("{}: {} is not in the {} buffer of rank {}, which is {}", program_.describe(which_),
                        to_string(region), to_string(buffer), rank.value, has));
  }

  void add(Rank from, Rank to, const Region& region) {
    if (from == to && step_->from == step_->to) return;  // it is there
    const Bytes element = element_size(program_.refit_.geometry(instance_->tensor).source.dtype);
    const std::vector<Place> targets = find(to, step_->to, region);
    for (const Place& source : find(from, step_->from, region)) {
      for (const Place& target : targets) {
        const Region part = intersect(intersect(source.box, target.box), region);
        if (!part.empty()) transfers_.push_back({from, to, make_move(source, target, part, element), which_});
      }
    }
  }

  /// The root has its own already, unless it is asked for in staging.
  void add_broadcast() {
    const Rank root = global_rank(*instance_, step_->source);
    for (const Rank member : members(*step_)) {
      if (member != root || step_->to != Buffer::target) add(root, member, step_->region);
    }
  }

  /// Each member gets what it has not: from the first member that has it.
  void add_gather() {
    const std::vector<Rank> ranks = members(*step_);
    const std::vector<std::vector<Region>> held = held_by(ranks);
    for (std::size_t to = 0; to < ranks.size(); ++to) {
      std::vector<Region> missing{step_->region};
      take(ranks[to], ranks[to], held[to], missing);
      for (std::size_t from = 0; from < ranks.size() && !missing.empty(); ++from) {
        if (from != to) take(ranks[from], ranks[to], held[from], missing);
      }
      if (!missing.empty())
        throw InputError(
            {}, fmt::format("{}: no member holds {}", program_.describe(which_), to_string(missing.front())));
    }
  }

  /// Moves what is held of what is missing. What a member has in the very buffer stays where it is.
  void take(Rank from, Rank to, const std::vector<Region>& held, std::vector<Region>& missing) {
    for (const Region& box : held) {
      std::vector<Region> left;
      for (const Region& wanted : missing) {
        const Region part = intersect(box, wanted);
        if (part.empty()) {
          left.push_back(wanted);
          continue;
        }
        add(from, to, part);
        for (const Region& rest : subtract(wanted, part)) left.push_back(rest);
      }
      missing = std::move(left);
    }
  }

  /// What each member holds of the region: of its source shard, or brought by the steps that the gather waits
  /// for.
  std::vector<std::vector<Region>> held_by(const std::vector<Rank>& ranks) const {
    std::vector<std::vector<Region>> held(ranks.size());
    const auto add_part = [&](std::size_t member, const Region& region) {
      const Region part = intersect(region, step_->region);
      if (!part.empty()) held[member].push_back(part);
    };
    if (step_->from == Buffer::source) {
      for (std::size_t m = 0; m < ranks.size(); ++m) {
        for (const Place& piece : program_.places(which_.instance, ranks[m], Buffer::source))
          add_part(m, piece.box);
      }
      return held;
    }
    for (const std::uint32_t index : steps_before()) {
      const Step& earlier = pattern_->steps[index];
      if (earlier.to != step_->from) continue;
      const std::vector<Rank> receivers = is_collective(earlier.kind)
                                              ? members(earlier)
                                              : std::vector<Rank>{global_rank(*instance_, earlier.target)};
      for (std::size_t m = 0; m < ranks.size(); ++m) {
        if (std::find(receivers.begin(), receivers.end(), ranks[m]) == receivers.end()) continue;
        const bool root =
            earlier.kind == StepKind::broadcast && global_rank(*instance_, earlier.source) == ranks[m];
        if (!root || earlier.to != Buffer::target) add_part(m, earlier.region);
      }
    }
    return held;
  }

  /// The steps that this one waits for, directly or through others, in order.
  std::vector<std::uint32_t> steps_before() const {
    std::vector<std::uint32_t> open, found;
    std::unordered_set<std::uint32_t> known;
    const auto add_all = [&](const Step& step) {
      for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
        if (known.insert(pattern_->after[a]).second) open.push_back(pattern_->after[a]);
      }
    };
    add_all(*step_);
    while (!open.empty()) {
      found.push_back(open.back());
      open.pop_back();
      add_all(pattern_->steps[found.back()]);
    }
    std::sort(found.begin(), found.end());
    return found;
  }

  const Program& program_;
  std::vector<Transfer>& transfers_;
  ProgramStep which_;
  const Instance* instance_ = nullptr;
  const Pattern* pattern_ = nullptr;
  const Step* step_ = nullptr;
};

std::vector<Transfer> Program::transfers(std::uint32_t operation) const {
  std::vector<Transfer> transfers;
  TransferMaker maker(*this, transfers);
  for (const ProgramStep step : steps(operation)) maker.add(step);
  return transfers;
}

}  // namespace isthmus::hw

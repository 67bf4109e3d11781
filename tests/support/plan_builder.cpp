#include "tests/support/plan_builder.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "tests/support/twin.hpp"

namespace isthmus::test {
namespace {

using Steps = std::vector<std::uint32_t>;

/// Part of a target shard and the source position that it comes from.
struct Piece {
  std::size_t holder = 0;
  Region region;
};

Region bounding_box(const std::vector<Element>& elements) {
  Region box;
  box.dimensions = elements.front().size();
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    box.begin[d] = elements.front()[d];
    for (const Element& element : elements) {
      box.begin[d] = std::min(box.begin[d], element[d]);
      box.end[d] = std::max(box.end[d], element[d] + 1);
    }
  }
  return box;
}

/// Builds the pattern of one geometry for bases that are `distance` (target minus source) apart.
class PatternBuilder {
 public:
  PatternBuilder(const Geometry& geometry, std::int64_t distance, Method method, const BuildOptions& options)
      : source_(geometry.source),
        target_(geometry.target),
        distance_(distance),
        options_(options),
        elements_(elements_of(geometry.source.shape)) {
    for (std::size_t p = 0; p < target_.mesh.size(); ++p) target_elements_.push_back(elements_at(target_, p));
    build(method);
    order();
  }
  Pattern take() { return std::move(pattern_); }

 private:
  void build(Method method) {
    switch (method) {
      case Method::direct: return direct(Buffer::target);
      case Method::staged: return staged();
      case Method::chained: return chained();
      case Method::multicast: return multicast();
      case Method::gathered: return gathered();
      case Method::striped: return striped();
    }
  }

  std::vector<Element> elements_at(const Layout& layout, std::size_t position) const {
    std::vector<Element> held;
    for (const Element& element : elements_) {
      if (twin_holds(layout, position, element)) held.push_back(element);
    }
    return held;
  }

  /// Positions of the target mesh with equal shards; those with empty ones are left out.
  std::vector<std::vector<std::size_t>> replicas() const {
    std::map<std::vector<Element>, std::vector<std::size_t>> by_elements;
    for (std::size_t p = 0; p < target_elements_.size(); ++p) {
      if (!target_elements_[p].empty()) by_elements[target_elements_[p]].push_back(p);
    }
    std::vector<std::vector<std::size_t>> result;
    for (const auto& entry : by_elements) result.push_back(entry.second);
    return result;
  }

  /// Cuts a set of elements by the first holder of each, looking from `rotation` on.
  std::vector<Piece> pieces_of(const std::vector<Element>& elements, std::size_t rotation) const {
    std::map<std::size_t, std::vector<Element>> by_holder;
    for (const Element& element : elements) {
      std::size_t holder = rotation % source_.mesh.size();
      while (!twin_holds(source_, holder, element)) holder = (holder + 1) % source_.mesh.size();
      by_holder[holder].push_back(element);
    }
    std::vector<Piece> pieces;
    for (const auto& entry : by_holder) pieces.push_back({entry.first, bounding_box(entry.second)});
    return pieces;
  }

  LocalRank source_rank(std::size_t position) const {
    return LocalRank::source(source_.mesh.ranks[position].value);
  }
  LocalRank target_rank(std::size_t position) const {
    return LocalRank::target(target_.mesh.ranks[position].value);
  }
  bool one_rank(std::size_t source, std::size_t target) const {
    return source_.mesh.ranks[source].value == target_.mesh.ranks[target].value + distance_;
  }

  std::uint32_t add(Step step, const Steps& after) {
    step.after_begin = static_cast<std::uint32_t>(pattern_.after.size());
    pattern_.after.insert(pattern_.after.end(), after.begin(), after.end());
    step.after_end = static_cast<std::uint32_t>(pattern_.after.size());
    pattern_.steps.push_back(step);
    return static_cast<std::uint32_t>(pattern_.steps.size() - 1);
  }

  std::uint32_t move(std::size_t source, std::size_t target, Buffer to, const Region& region) {
    Step step;
    step.kind = one_rank(source, target) ? StepKind::copy : StepKind::send;
    step.to = to;
    step.source = source_rank(source);
    step.target = target_rank(target);
    step.region = region;
    return add(step, {});
  }

  std::uint32_t on_target(StepKind kind, std::size_t target, const Region& region, const Steps& after) {
    Step step;
    step.kind = kind;
    step.from = Buffer::staging;
    step.source = step.target = target_rank(target);
    step.region = region;
    return add(step, after);
  }

  std::uint32_t collective(StepKind kind, Buffer from, Buffer to, LocalRank root,
                           std::vector<LocalRank> members, const Region& region, const Steps& after) {
    Step step;
    step.kind = kind;
    step.from = from;
    step.to = to;
    step.source = root;
    step.members = static_cast<std::uint32_t>(pattern_.members.size());
    step.region = region;
    const auto known = std::find(pattern_.members.begin(), pattern_.members.end(), members);
    if (known != pattern_.members.end())
      step.members = static_cast<std::uint32_t>(known - pattern_.members.begin());
    if (known == pattern_.members.end()) pattern_.members.push_back(std::move(members));
    return add(step, after);
  }

  Steps direct(std::size_t target, Buffer to) {
    Steps made;
    for (const Piece& piece : pieces_of(target_elements_[target], target + options_.seed)) {
      made.push_back(move(piece.holder, target, to, piece.region));
    }
    return made;
  }

  void direct(Buffer to) {
    for (std::size_t target = 0; target < target_elements_.size(); ++target) direct(target, to);
  }

  void staged() {
    for (std::size_t target = 0; target < target_elements_.size(); ++target) {
      if (target_elements_[target].empty()) continue;
      const Steps brought = direct(target, Buffer::staging);
      const bool at_once = target % 2 == 0;  // one load of everything, or one copy for each piece
      if (at_once) on_target(StepKind::load, target, bounding_box(target_elements_[target]), brought);
      for (const std::uint32_t step : at_once ? Steps{} : brought) {
        on_target(StepKind::copy, target, Region(pattern_.steps[step].region), {step});
      }
    }
  }

  void chained() {
    for (const std::vector<std::size_t>& chain : replicas()) {
      Steps brought = direct(chain.front(), Buffer::target);
      for (std::size_t link = 1; link < chain.size(); ++link) {
        for (std::uint32_t& step : brought) {
          Step next;
          next.from = Buffer::target;
          next.source = target_rank(chain[link - 1]);
          next.target = target_rank(chain[link]);
          next.region = pattern_.steps[step].region;
          step = add(next, {step});
        }
      }
    }
  }

  void multicast() {
    for (const std::vector<std::size_t>& group : replicas()) {
      for (const Piece& piece : pieces_of(target_elements_[group.front()], group.front() + options_.seed)) {
        std::vector<LocalRank> members{source_rank(piece.holder)};
        for (const std::size_t target : group) {
          if (!one_rank(piece.holder, target)) members.push_back(target_rank(target));
          if (one_rank(piece.holder, target)) move(piece.holder, target, Buffer::target, piece.region);
        }
        if (members.size() == 1) continue;
        const LocalRank root = members.front();
        collective(StepKind::broadcast, Buffer::source, Buffer::target, root, std::move(members),
                   piece.region, {});
      }
    }
  }

  void gathered() {
    std::vector<LocalRank> sources, members{source_rank(0)};
    for (std::size_t p = 0; p < source_.mesh.size(); ++p) sources.push_back(source_rank(p));
    for (std::size_t p = 0; p < target_.mesh.size(); ++p) {
      if (!one_rank(0, p)) members.push_back(target_rank(p));
    }
    const Region tensor = bounding_box(elements_);
    const std::uint32_t gather =
        collective(StepKind::all_gather, Buffer::source, Buffer::staging, {}, std::move(sources), tensor, {});
    Steps slabs;
    for (std::int64_t begin = 0; begin < tensor.end[0]; begin += 2) {
      Region slab = tensor;
      slab.begin[0] = begin;
      slab.end[0] = std::min(begin + 2, tensor.end[0]);
      // Every second plan has a chain, in which later steps name only the last link.
      const Steps after = options_.seed % 2 == 0 || slabs.empty() ? Steps{gather} : Steps{slabs.back()};
      slabs.push_back(collective(StepKind::broadcast, Buffer::staging, Buffer::staging, source_rank(0),
                                 members, slab, after));
    }
    if (options_.seed % 2 == 1) slabs = {slabs.back()};
    for (std::size_t target = 0; target < target_elements_.size(); ++target) {
      if (target_elements_[target].empty()) continue;
      on_target(StepKind::load, target, bounding_box(target_elements_[target]), slabs);
    }
  }

  void striped() {
    for (const std::vector<std::size_t>& group : replicas()) {
      const Region shard = bounding_box(target_elements_[group.front()]);
      std::vector<std::vector<Element>> stripes(group.size());
      const auto count = static_cast<std::int64_t>(group.size());
      for (const Element& element : target_elements_[group.front()]) {
        const std::size_t d = shard.dimensions - 1;
        stripes[to_size((element[d] - shard.begin[d]) * count / (shard.end[d] - shard.begin[d]))].push_back(
            element);
      }
      Steps brought;
      std::vector<LocalRank> members;
      for (std::size_t i = 0; i < group.size(); ++i) {
        members.push_back(target_rank(group[i]));
        for (const Piece& piece : pieces_of(stripes[i], i + options_.seed)) {
          brought.push_back(move(piece.holder, group[i], Buffer::staging, piece.region));
        }
      }
      collective(StepKind::all_gather, Buffer::staging, Buffer::target, {}, std::move(members), shard,
                 brought);
    }
  }

  void order() {
    std::vector<std::uint32_t> level;
    for (std::uint32_t i = 0; i < pattern_.steps.size(); ++i) {
      Step& step = pattern_.steps[i];
      level.push_back(0);
      for (std::uint32_t a = step.after_begin; a < step.after_end; ++a) {
        level[i] = std::max(level[i], level[pattern_.after[a]] + 1);
      }
      number(step, i, level[i]);
    }
  }

  void number(Step& step, std::uint32_t index, std::uint32_t level) const {
    const auto lane = static_cast<std::uint16_t>((index * 7 + options_.seed) % 3);
    switch (options_.order) {
      case Order::levels: step.group = level; break;
      case Order::one_by_one: step.group = index; break;
      case Order::lanes: step.lane = lane, step.group = level; break;
      case Order::shifted_lanes:
        step.lane = lane, step.group = 1000U * (2U - lane) + level * (1U + lane);
        break;
      case Order::lane_pairs:
        step.lane = static_cast<std::uint16_t>(level % 2), step.group = level / 2;
        break;
      case Order::one_group: break;
    }
  }

  const Layout& source_;
  const Layout& target_;
  std::int64_t distance_;
  const BuildOptions& options_;
  std::vector<Element> elements_;
  std::vector<std::vector<Element>> target_elements_;  // by mesh position
  Pattern pattern_;
};

/// Moves the groups of all instances into Plan::schedule.
void schedule(Plan& plan) {
  for (Instance& instance : plan.instances) {
    const std::vector<Step>& steps = plan.patterns[instance.pattern.index()].steps;
    const auto begin = static_cast<std::uint32_t>(plan.schedule.size());
    for (const Step& step : steps) plan.schedule.push_back(instance.group + step.group);
    instance.schedule = begin;
    instance.group = 0;
  }
}

}  // namespace

BuildOptions options_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  BuildOptions options;
  for (int i = 0; i < 3; ++i) options.by_geometry.push_back(static_cast<Method>(random() % methods));
  options.order = static_cast<Order>(random() % orders);
  options.window = 1 + static_cast<std::uint32_t>(random() % 3);
  options.coalesce = random() % 2 == 1;
  options.scheduled = random() % 3 == 1;
  options.same_groups = random() % 2 == 1;
  options.seed = random() % 64;
  return options;
}

Plan build_plan(const Refit& refit, const BuildOptions& options) {
  Plan plan;
  plan.policy = "naive";
  const bool coalesce = options.coalesce && options.order != Order::one_group;
  for (const char* name : {"a", "b", "c"}) plan.lanes.push_back({name, options.window, coalesce});
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t> known;
  std::uint32_t group = 0;
  for (std::uint32_t i = 0; i < refit.tensors.size(); ++i) {
    const RefitEntry& entry = refit.tensors[i];
    const std::int64_t distance = std::int64_t{entry.target_base.value} - entry.source_base.value;
    const auto next = static_cast<std::uint32_t>(plan.patterns.size());
    const auto added = known.try_emplace({entry.geometry, distance}, next);
    if (added.second) {
      const Method method = options.by_geometry[entry.geometry % options.by_geometry.size()];
      plan.patterns.push_back(
          PatternBuilder(refit.geometries[entry.geometry], distance, method, options).take());
    }
    plan.instances.push_back({{added.first->second}, {i}, entry.source_base, entry.target_base, {0}, group});
    std::uint32_t last = 0;
    for (const Step& step : plan.patterns[added.first->second].steps) last = std::max(last, step.group);
    if (!options.same_groups) group += last + 1;
  }
  if (options.scheduled) schedule(plan);
  return plan;
}

}  // namespace isthmus::test

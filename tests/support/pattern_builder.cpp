#include "tests/support/pattern_builder.hpp"

#include <algorithm>
#include <map>

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

class PatternBuilder {
 public:
  explicit PatternBuilder(const PatternRequest& request)
      : source_(request.geometry.source),
        target_(request.geometry.target),
        distance_(request.distance),
        options_(request.options),
        in_reach_(request.in_reach),
        elements_(elements_of(request.geometry.source.shape)) {
    for (std::size_t p = 0; p < target_.mesh.size(); ++p) target_elements_.push_back(elements_at(target_, p));
    build(request.method);
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
      case Method::striped: return striped(Buffer::staging);
      case Method::in_place: return striped(Buffer::target);
      case Method::packed: return packed();
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
    step.to = to;
    step.source = source_rank(source);
    step.target = target_rank(target);
    step.kind = one_rank(source, target) ? StepKind::copy : message(step.source, step.target);
    step.region = region;
    return add(step, {});
  }

  /// Every second message that may be a put is one.
  StepKind message(LocalRank source, LocalRank target) const {
    const bool chosen = options_.puts && (source.value + target.value + options_.seed) % 2 == 0;
    return chosen && in_reach_(source, target) ? StepKind::put : StepKind::send;
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
          next.kind = message(next.source, next.target);
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

  /// source -pack-> staging -message-> staging -unpack-> target, without the message where one rank is both.
  void packed() {
    std::map<std::pair<std::size_t, Region>, std::uint32_t> packs;
    for (std::size_t target = 0; target < target_elements_.size(); ++target) {
      Steps brought;
      for (const Piece& piece : pieces_of(target_elements_[target], target + options_.seed)) {
        const auto known = packs.find({piece.holder, piece.region});
        const bool again = known == packs.end() || options_.seed % 3 == 0;  // twice brings the same
        const std::uint32_t pack = again ? add_pack(piece) : known->second;
        packs.insert({{piece.holder, piece.region}, pack});
        brought.push_back(one_rank(piece.holder, target) ? pack : forward(piece, target, pack));
        if (target % 2 == 1) on_target(StepKind::unpack, target, piece.region, {brought.back()});
      }
      if (target % 2 == 1 || target_elements_[target].empty()) continue;
      on_target(StepKind::unpack, target, bounding_box(target_elements_[target]), brought);
    }
  }

  std::uint32_t add_pack(const Piece& piece) {
    Step step;
    step.kind = StepKind::pack;
    step.to = Buffer::staging;
    step.source = step.target = source_rank(piece.holder);
    step.region = piece.region;
    return add(step, {});
  }

  std::uint32_t forward(const Piece& piece, std::size_t target, std::uint32_t pack) {
    Step step;
    step.from = step.to = Buffer::staging;
    step.source = source_rank(piece.holder);
    step.target = target_rank(target);
    step.kind = message(step.source, step.target);
    step.region = piece.region;
    return add(step, {pack});
  }

  void striped(Buffer stripes_in) {
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
          brought.push_back(move(piece.holder, group[i], stripes_in, piece.region));
        }
      }
      collective(StepKind::all_gather, stripes_in, Buffer::target, {}, std::move(members), shard, brought);
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
  const std::function<bool(LocalRank, LocalRank)>& in_reach_;
  std::vector<Element> elements_;
  std::vector<std::vector<Element>> target_elements_;  // by mesh position
  Pattern pattern_;
};

}  // namespace

Pattern build_pattern(const PatternRequest& request) { return PatternBuilder(request).take(); }

}  // namespace isthmus::test

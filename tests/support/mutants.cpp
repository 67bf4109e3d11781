#include "tests/support/mutants.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "tests/support/mutant_tools.hpp"

namespace isthmus::test {
namespace {

bool drop_step(Plan& plan, const Refit&, Random& random) {
  Pattern* pattern = pick_pattern(plan, random);
  if (pattern == nullptr) return false;
  std::vector<std::uint32_t> kept(pattern->steps.size());
  std::iota(kept.begin(), kept.end(), 0U);
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(random.below(kept.size())));
  rearrange(plan, *pattern, kept);
  return true;
}

bool duplicate_step(Plan& plan, const Refit&, Random& random) {
  Pattern* pattern = pick_pattern(plan, random);
  if (pattern == nullptr) return false;
  std::vector<std::uint32_t> kept(pattern->steps.size());
  std::iota(kept.begin(), kept.end(), 0U);
  kept.push_back(static_cast<std::uint32_t>(random.below(kept.size())));
  rearrange(plan, *pattern, kept);
  return true;
}

bool shift_region(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random);
  if (step == nullptr) return false;
  const std::size_t d = random.below(step->region.dimensions);
  const std::int64_t by = random.below(2) == 0 ? 1 : -1;
  step->region.begin[d] += by;
  step->region.end[d] += by;
  return true;
}

bool shrink_box(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random);
  if (step == nullptr) return false;
  const std::size_t d = random.below(step->region.dimensions);
  random.below(2) == 0 ? ++step->region.begin[d] : --step->region.end[d];
  return true;
}

bool grow_box(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random);
  if (step == nullptr) return false;
  const std::size_t d = random.below(step->region.dimensions);
  random.below(2) == 0 ? --step->region.begin[d] : ++step->region.end[d];
  return true;
}

bool other_source(Plan& plan, const Refit& refit, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return s.kind == StepKind::send; });
  if (step == nullptr) return false;
  const LocalRank before = step->source;
  const bool target_side = before.value >= LocalRank::target_side;
  const std::size_t offset = random.below(refit.ranks());
  step->source = target_side ? LocalRank::target(offset) : LocalRank::source(offset);
  return step->source != before;
}

bool other_root(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return s.kind == StepKind::broadcast; });
  if (step == nullptr) return false;
  const std::vector<LocalRank>& members = pattern_of(plan, step).members[step->members];
  const LocalRank before = step->source;
  step->source = members[random.below(members.size())];
  return step->source != before;
}

bool swap_targets(Plan& plan, const Refit&, Random& random) {
  const auto send = [](const Step& s) { return s.kind == StepKind::send; };
  Step* a = pick_step(plan, random, send);
  Step* b = pick_step(plan, random, send);
  if (a == nullptr || a->target == b->target) return false;
  std::swap(a->target, b->target);
  return true;
}

bool swap_regions(Plan& plan, const Refit&, Random& random) {
  Pattern* pattern = pick_pattern(plan, random);
  if (pattern == nullptr) return false;
  Step& a = pattern->steps[random.below(pattern->steps.size())];
  Step& b = pattern->steps[random.below(pattern->steps.size())];
  if (a.region == b.region) return false;
  std::swap(a.region, b.region);
  return true;
}

bool wrong_tensor(Plan& plan, const Refit& refit, Random& random) {
  if (plan.instances.empty()) return false;
  Instance& instance = plan.instances[random.below(plan.instances.size())];
  const auto tensor =
      static_cast<std::uint32_t>(random.below(refit.tensors.size() + 1));  // one past the last
  return std::exchange(instance.tensor.value, tensor) != tensor;
}

bool wrong_base(Plan& plan, const Refit&, Random& random) {
  if (plan.instances.empty()) return false;
  Instance& instance = plan.instances[random.below(plan.instances.size())];
  Rank& base = random.below(2) == 0 ? instance.source_base : instance.target_base;
  base.value = random.below(2) == 0 || base.value == 0 ? base.value + 1 : base.value - 1;
  return true;
}

bool wrong_pattern(Plan& plan, const Refit&, Random& random) {
  if (plan.instances.empty()) return false;
  unroll_schedule(plan);
  Instance& instance = plan.instances[random.below(plan.instances.size())];
  const auto pattern = static_cast<std::uint32_t>(random.below(plan.patterns.size()));
  return std::exchange(instance.pattern.value, pattern) != pattern;
}

bool drop_instance(Plan& plan, const Refit&, Random& random) {
  if (plan.instances.empty()) return false;
  plan.instances.erase(plan.instances.begin() +
                       static_cast<std::ptrdiff_t>(random.below(plan.instances.size())));
  return true;
}

bool repeat_instance(Plan& plan, const Refit&, Random& random) {
  if (plan.instances.empty()) return false;
  plan.instances.push_back(Instance(plan.instances[random.below(plan.instances.size())]));
  return true;
}

/// A read from staging that nobody filled.
bool stale_buffer(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return s.from != Buffer::staging; });
  if (step == nullptr) return false;
  step->from = Buffer::staging;
  return true;
}

bool read_own_source(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return s.from != Buffer::source; });
  if (step == nullptr) return false;
  if (step->kind == StepKind::load) step->kind = StepKind::copy;
  step->from = Buffer::source;
  return true;
}

bool wrong_destination(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random);
  if (step == nullptr) return false;
  const Buffer before = step->to;
  step->to = random.below(4) == 0       ? Buffer::source
             : before == Buffer::target ? Buffer::staging
                                        : Buffer::target;
  return true;
}

bool drop_member(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, collective);
  if (step == nullptr) return false;
  std::vector<LocalRank>& members = pattern_of(plan, step).members[step->members];
  if (members.empty()) return false;
  members.erase(members.begin() + static_cast<std::ptrdiff_t>(random.below(members.size())));
  return true;
}

bool repeat_member(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, collective);
  if (step == nullptr) return false;
  std::vector<LocalRank>& members = pattern_of(plan, step).members[step->members];
  members.push_back(LocalRank(members[random.below(members.size())]));
  return true;
}

bool add_member(Plan& plan, const Refit& refit, Random& random) {
  Step* step = pick_step(plan, random, collective);
  if (step == nullptr) return false;
  pattern_of(plan, step).members[step->members].push_back(LocalRank::source(random.below(refit.ranks())));
  return true;
}

bool far_rank(Plan& plan, const Refit& refit, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return !collective(s); });
  if (step == nullptr) return false;
  step->target = LocalRank::target(refit.ranks() + random.below(3));
  return true;
}

/// Every lane on the communicators of one split, by the parity of ranks.
bool split_by_parity(Plan& plan, const Refit& refit, Random&) {
  Split split;
  for (std::uint32_t rank = 0; rank < refit.ranks(); ++rank) split.callers.push_back({Rank{rank}, rank % 2});
  plan.splits = {split};
  for (Lane& lane : plan.lanes) lane.split = 0;
  return !plan.lanes.empty();
}

bool stay_away_from_split(Plan& plan, const Refit& refit, Random& random) {
  Split split;
  const std::size_t away = random.below(refit.ranks());
  for (std::uint32_t rank = 0; rank < refit.ranks(); ++rank) {
    if (rank != away) split.callers.push_back({Rank{rank}, 0});
  }
  plan.splits = {split};
  return !split.callers.empty();
}

}  // namespace

std::vector<MutationOperator> mutation_operators() {
  std::vector<MutationOperator> all{
      {"drop_step", drop_step},
      {"duplicate_step", duplicate_step},
      {"shift_region", shift_region},
      {"shrink_box", shrink_box},
      {"grow_box", grow_box},
      {"other_source", other_source},
      {"other_root", other_root},
      {"swap_targets", swap_targets},
      {"swap_regions", swap_regions},
      {"wrong_tensor", wrong_tensor},
      {"wrong_base", wrong_base},
      {"wrong_pattern", wrong_pattern},
      {"drop_instance", drop_instance},
      {"repeat_instance", repeat_instance},
      {"stale_buffer", stale_buffer},
      {"read_own_source", read_own_source},
      {"wrong_destination", wrong_destination},
      {"drop_member", drop_member},
      {"repeat_member", repeat_member},
      {"add_member", add_member},
      {"far_rank", far_rank},
      {"split_by_parity", split_by_parity},
      {"stay_away_from_split", stay_away_from_split},
  };
  for (const std::vector<MutationOperator>& more : {order_mutations(), staging_mutations()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace isthmus::test

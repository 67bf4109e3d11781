// Mutation operators on plans whose sources quantise.

#include "tests/support/mutant_tools.hpp"

namespace isthmus::test {
namespace {

bool quantises(const Step& step) { return step.kind == StepKind::quantize; }

/// What quantised becomes a copy of the same bytes: BF16 travels.
bool send_unquantised(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, quantises);
  if (step == nullptr) return false;
  step->kind = random.below(2) == 0 ? StepKind::pack : StepKind::copy;
  return true;
}

/// Around the step that quantises, straight from the shard.
bool read_raw_shard(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) {
    return s.from == Buffer::staging && s.source.value < LocalRank::target_side && s.kind == StepKind::send;
  });
  if (step == nullptr) return false;
  step->from = Buffer::source;
  return true;
}

/// One value less than whole groups, at either end.
bool cut_group(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) {
    const std::size_t last = s.region.dimensions - 1;
    return quantises(s) && s.region.end[last] - s.region.begin[last] > 1;
  });
  if (step == nullptr) return false;
  const std::size_t last = step->region.dimensions - 1;
  random.below(2) == 0 ? ++step->region.begin[last] : --step->region.end[last];
  return true;
}

/// What has arrived quantised is quantised once more, at a target.
bool quantise_again(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random,
                         [](const Step& s) { return s.kind == StepKind::send && s.to == Buffer::target; });
  if (step == nullptr) return false;
  step->kind = StepKind::quantize;
  return true;
}

}  // namespace

std::vector<MutationOperator> quantising_mutations() {
  return {{"send_unquantised", send_unquantised},
          {"read_raw_shard", read_raw_shard},
          {"cut_group", cut_group},
          {"quantise_again", quantise_again}};
}

}  // namespace isthmus::test

#pragma once
// Mutation operators: each turns a correct plan into one with a fault that plan makers and executors really
// have. Some mutants are equivalent (a dependency that another one implies, a window that no rank needs); the
// twin tells which.

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus::test {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// A number in [0, count).
  std::size_t below(std::size_t count) { return engine_() % count; }

 private:
  std::mt19937_64 engine_;
};

struct MutationOperator {
  std::string_view name;
  /// False when the plan has no place for this fault; then the plan may have changed without effect.
  bool (*apply)(Plan& plan, const Refit& refit, Random& random);
};
std::vector<MutationOperator> mutation_operators();
/// Operators on plans whose sources quantise (tests/support/quantised_refit.hpp); others have no place.
std::vector<MutationOperator> quantising_mutations();

}  // namespace isthmus::test

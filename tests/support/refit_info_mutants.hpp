#pragma once
// Faults planted into right refit descriptions and local maps (tests/support/refit_info_generator.hpp), each
// with what the proof must say. Some have an accepted twin of their own: the same change, declared; of the
// others the unchanged sample is the twin.
// Invariant: a mutant that applies makes the sample wrong; one that does not leaves it unchanged.

#include <cstddef>
#include <string_view>
#include <vector>

#include "tests/support/refit_info_generator.hpp"

namespace isthmus::test {

struct RefitInfoMutant {
  std::string_view name;
  std::string_view says;  // part of the message
  /// False when the sample has nothing to change; `seed` picks where.
  bool (*apply)(OrderedJson& document, const RefitInfoShape& shape, std::size_t seed) = nullptr;
  /// After apply: makes the change right.
  bool (*declare)(OrderedJson& document, const RefitInfoShape& shape, std::size_t seed) = nullptr;
};

std::vector<RefitInfoMutant> refit_info_mutants();

}  // namespace isthmus::test

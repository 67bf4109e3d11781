#include "tests/support/test_scale.hpp"

#include <algorithm>
#include <cstdlib>

namespace isthmus::test {
namespace {

std::uint64_t number_in(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace

SeedRange seeds_of_shard(std::uint64_t shard, std::uint64_t count) {
  const std::uint64_t percent = ISTHMUS_CASES_PERCENT;
  const std::uint64_t scale = std::max<std::uint64_t>(1, number_in("ISTHMUS_TEST_SCALE", 1));
  const std::uint64_t cases = std::max<std::uint64_t>(shards, count * scale * percent / 100);
  const std::uint64_t first = number_in("ISTHMUS_FIRST_SEED", 0);
  return {first + cases * shard / shards, first + cases * (shard + 1) / shards};
}

bool sanitized() { return ISTHMUS_CASES_PERCENT < 100; }

bool full_scale() { return number_in("ISTHMUS_TEST_SCALE", 1) > 1; }

}  // namespace isthmus::test

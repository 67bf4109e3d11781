#pragma once
// How much the tests that count random cases do: their own count is for the gate in an optimised build. The
// sanitizers look at memory, for which a twentieth does; ISTHMUS_TEST_SCALE multiplies (`./check --full`: 10,
// preset `swarm`: 1000). Seeds count from ISTHMUS_FIRST_SEED on (default 0), so a run is there again
// tomorrow. Such tests are cut into shards, each a test of its own with its own seeds.

#include <cstdint>

namespace isthmus::test {

inline constexpr std::uint64_t shards = 16;

struct SeedRange {
  std::uint64_t begin = 0, end = 0;
};
/// The seeds of one shard, where all shards together have `count` times the scale.
SeedRange seeds_of_shard(std::uint64_t shard, std::uint64_t count);

/// Whether ISTHMUS_TEST_SCALE asks for more than the gate does; tests without seeds leave nothing out then.
bool full_scale();
/// Whether this is a build with sanitizers, where large single cases take minutes.
bool sanitized();

}  // namespace isthmus::test

#include <cstdlib>

#include <gtest/gtest.h>

// The seed is fixed wherever the tests run, so that a failure is there again tomorrow. RC_PARAMS in the
// environment takes over: preset `swarm` sets it (random seeds, many more cases), and so does whoever replays
// a failure.
int main(int argc, char** argv) {
  setenv("RC_PARAMS", "seed=20261129 max_success=" ISTHMUS_RANDOM_CASES, /*overwrite=*/0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}

#include "hw/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"

namespace isthmus::hw {
namespace {

using ::testing::HasSubstr;

TEST(Executor, runs_until_each_pass_had_its_turn_and_times_what_was_asked_for) {
  RunOptions options;
  options.warm_up = 1;
  options.repetitions = 2;
  EXPECT_EQ(run_count(options, 1), 3U);
  EXPECT_EQ(run_count(options, 8), 8U);
  EXPECT_FALSE(is_timed(options, 0));
  EXPECT_TRUE(is_timed(options, 1));
  EXPECT_TRUE(is_timed(options, 2));
  EXPECT_FALSE(is_timed(options, 3));
  options.verify = false;
  EXPECT_EQ(run_count(options, 8), 3U);
  options.repetitions = 0;
  EXPECT_EQ(run_count(options, 8), 2U);
}

TEST(Executor, keeps_the_timeline_of_the_fastest_run) {
  Measurement measurement;
  for (const std::int64_t end : {30, 10, 20}) {
    Timeline timeline;
    timeline.end = {end};
    add_repetition(measurement, std::move(timeline));
  }
  EXPECT_EQ(measurement.times.size(), 3U);
  EXPECT_EQ(measurement.timeline.end, Instant{10});
  EXPECT_EQ(measurement.fastest(), Duration{10});
  EXPECT_EQ(measurement.median(), Duration{20});
}

TEST(Executor, is_byte_exact_only_after_all_passes_without_a_mismatch) {
  Measurement measurement;
  EXPECT_FALSE(measurement.byte_exact());  // nobody looked
  measurement.passes_needed = 2;
  measurement.passes = 1;
  EXPECT_FALSE(measurement.byte_exact());
  measurement.passes = 2;
  EXPECT_TRUE(measurement.byte_exact());
  measurement.mismatch_count = 1;
  EXPECT_FALSE(measurement.byte_exact());
}

TEST(Executor, faults_of_the_system_name_call_code_rank_and_step) {
  EXPECT_EQ(to_string(SystemFault{"ncclSend", "unhandled system error", "step 1 of tensor w", 3}),
            "ncclSend: unhandled system error (rank 3; step 1 of tensor w)");
  EXPECT_EQ(to_string(SystemFault{"cudaMalloc", "out of memory", "", 0}),
            "cudaMalloc: out of memory (rank 0)");
  EXPECT_EQ(to_string(SystemFault{"MPI_Init", "failed"}), "MPI_Init: failed");
}

TEST(Executor, of_an_unknown_name_is_refused_with_those_that_are_there) {
  EXPECT_NE(make_executor("host"), nullptr);
  try {
    (void)make_executor("carrier-pigeon");
    ADD_FAILURE() << "it was made";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("found 'carrier-pigeon'; allowed: host"));
  }
  for (const Backend& backend : backends()) {
    if (backend.make == nullptr) {
      EXPECT_THROW(make_executor(backend.name), InputError);
    }
  }
}

}  // namespace
}  // namespace isthmus::hw

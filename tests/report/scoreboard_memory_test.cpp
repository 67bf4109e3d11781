#include <gtest/gtest.h>

#include "report/scoreboard.hpp"

namespace isthmus::report {
namespace {

TEST(ScoreboardMemory, is_that_of_the_presets_gpu_where_it_is_known) {
  FabricSpec fabric;
  fabric.preset = "dgx-h100-superpod";
  EXPECT_EQ(gpu_memory(fabric), Bytes{80'000'000'000});
  fabric.preset = "gb200-nvl72";
  EXPECT_EQ(gpu_memory(fabric), Bytes{186'000'000'000});
  fabric.preset = "dgx-b300";
  EXPECT_EQ(gpu_memory(fabric), std::nullopt);
  FabricSpec joined;
  joined.parts.resize(2);
  EXPECT_EQ(gpu_memory(joined), std::nullopt) << "parts have GPUs of their own";
}

TEST(ScoreboardMemory, counts_staging_and_live_weights_against_it) {
  Scoreboard scoreboard;
  ScoreRow row;
  row.published.id = "A";
  row.published.seconds_low = row.published.seconds_high = 1;
  row.prediction.policy = "p2p";
  row.prediction.proven = true;
  row.prediction.peak_staging_bytes = {30'000'000'000};
  row.live_bytes = {10'000'000'000};
  row.gpu_memory = Bytes{80'000'000'000};
  scoreboard.rows.push_back(row);
  EXPECT_NE(memory_section(scoreboard, false).find("| 80.00 GB | 50 % |"), std::string::npos)
      << memory_section(scoreboard, false);
  EXPECT_EQ(memory_section(scoreboard, true).find("| A |"), std::string::npos);
}

}  // namespace
}  // namespace isthmus::report

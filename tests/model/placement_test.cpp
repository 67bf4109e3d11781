#include "model/placement.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/project_files.hpp"

namespace isthmus {
namespace {

std::vector<std::uint32_t> places(const std::string& ranks, int train, int generate) {
  const std::string text =
      "name: s\nmodel: {config: models/qwen3-4b.json}\n"
      "fabric: {preset: dgx-h100, hosts: 4}\ntrain: {gpus: " +
      std::to_string(train) + "}\ngenerate: {gpus: " + std::to_string(generate) + "}\n" + "ranks: " + ranks +
      "\n";
  const Scenario scenario = parse_scenario(text, project_folder() / "scenarios/s.yaml");
  EXPECT_TRUE(same_content(parse_scenario(to_yaml(scenario), scenario.file), scenario));
  const Fabric fabric(scenario.fabric);
  std::vector<std::uint32_t> gpus;
  for (const GpuId gpu : rank_places(scenario, fabric)) gpus.push_back(gpu.value);
  return gpus;
}

TEST(Placement, fills_host_after_host_unless_told_otherwise) {
  const std::vector<std::uint32_t> gpus = places("{train: {hosts: [2, 0]}, generate: {hosts: 1}}", 16, 8);
  EXPECT_EQ(gpus[0], 16U);
  EXPECT_EQ(gpus[7], 23U);
  EXPECT_EQ(gpus[8], 0U);
  EXPECT_EQ(gpus[16], 8U);
}

TEST(Placement, along_the_rails_takes_one_gpu_of_each_host_in_turn) {
  std::vector<std::uint32_t> gpus =
      places("{train: {hosts: [2, 0], fill: rails}, generate: {hosts: 1, fill: rails}}", 16, 8);
  EXPECT_EQ(std::vector<std::uint32_t>(gpus.begin(), gpus.begin() + 4),
            (std::vector<std::uint32_t>{16, 0, 17, 1}));
  EXPECT_EQ(gpus[16], 8U);  // one host: the same either way
  EXPECT_EQ(gpus[23], 15U);
  std::sort(gpus.begin(), gpus.end());
  EXPECT_EQ(std::unique(gpus.begin(), gpus.end()), gpus.end()) << "every rank has a GPU of its own";
}

TEST(Placement, along_the_rails_leaves_the_last_gpus_of_hosts_free) {
  const std::vector<std::uint32_t> gpus = places("{train: {hosts: 0-1, fill: rails}}", 12, 8);
  EXPECT_EQ(gpus[11], 13U);
  EXPECT_EQ(gpus[12], 16U);
}

}  // namespace
}  // namespace isthmus

// NVML through a library of its interface that tells made-up GPUs (tests/fake_nvml).

#include "hw/nvml.hpp"

#include <cstdlib>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temporary_folder.hpp"

namespace isthmus::hw {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Nvml : public ::testing::Test {
 protected:
  NvmlAnswer ask(const std::string& text) const {
    const std::string file = folder_.write("gpus", text).string();
    ::setenv("ISTHMUS_FAKE_NVML", file.c_str(), 1);
    return ask_nvml(ISTHMUS_FAKE_NVML_LIBRARY);
  }
  TemporaryFolder folder_;
};

TEST_F(Nvml, tells_address_name_and_capability) {
  const NvmlAnswer answer = ask("gpu 0 27 0 9 0 5 16 NVIDIA H200\ngpu 16 160 1 10 0 0 0 NVIDIA GB200\n");
  EXPECT_THAT(answer.refusal, IsEmpty());
  ASSERT_EQ(answer.gpus.size(), 2U);
  EXPECT_EQ(answer.gpus[0].busid, "0000:1b:00.0");
  EXPECT_EQ(answer.gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(answer.gpus[0].sm, 90U);
  EXPECT_EQ(answer.gpus[0].pcie_generation, 5U);
  EXPECT_EQ(answer.gpus[0].pcie_width, 16U);
  EXPECT_EQ(answer.gpus[1].busid, "0010:a0:01.0");
  EXPECT_EQ(answer.gpus[1].sm, 100U);
  EXPECT_EQ(answer.gpus[1].pcie_generation, 0U);
}

TEST_F(Nvml, counts_links_that_are_up_and_join_peers_by_their_other_end) {
  std::size_t links = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    std::mt19937_64 random(seed);
    std::string text = "gpu 0 1 0 9 0 5 16 Made GPU\n";
    std::map<std::string, std::uint32_t> expected;
    std::map<std::string, bool> chips;
    for (std::uint64_t left = random() % 19; left > 0; --left) {
      const bool active = random() % 4 != 0, peers = random() % 4 != 0, placed = random() % 4 != 0;
      const bool hidden = random() % 3 == 0, chip = hidden || random() % 2 == 0;
      const int kind = random() % 3 == 0 ? -1 : chip ? 2 : 0;
      const int bus = chip ? 100 + static_cast<int>(random() % 4) : 2 + static_cast<int>(random() % 3);
      text += fmt::format("link {} {} {} {} {} 0\n", active ? 1 : 0, peers ? 1 : 0, kind,
                          hidden ? 0xFFFFFFF : 0, placed ? bus : -1);
      const bool known_chip = kind == 2;
      if (!active || !peers || (!placed && !known_chip)) continue;
      const std::string end = !placed || hidden ? hidden_chip : fmt::format("0000:{:02x}:00.0", bus);
      ++expected[end];
      if (!chips.contains(end)) chips[end] = known_chip || end == hidden_chip;
      ++links;
    }
    const NvmlAnswer answer = ask(text);
    ASSERT_EQ(answer.gpus.size(), 1U);
    std::map<std::string, std::uint32_t> counted;
    for (const NvmlLink& link : answer.gpus[0].nvlinks) {
      EXPECT_EQ(link.to_chip, chips.at(link.target)) << "seed " << seed;
      counted[link.target] += link.count;
    }
    EXPECT_EQ(counted, expected) << "seed " << seed;
    EXPECT_EQ(answer.gpus[0].nvlinks.size(), expected.size()) << "seed " << seed;
  }
  EXPECT_GT(links, 200U);
}

TEST_F(Nvml, says_why_it_does_not_answer) {
  EXPECT_THAT(ask("init 9\n").refusal, HasSubstr("nvmlInit_v2 failed with code 9"));
  EXPECT_THAT(ask_nvml("no-such-library.so.1").refusal, HasSubstr("no-such-library.so.1"));
  EXPECT_THAT(ask_nvml("libm.so.6").refusal, HasSubstr("not a library of NVML's interface"));
  const NvmlAnswer none = ask("");
  EXPECT_THAT(none.refusal, IsEmpty());
  EXPECT_THAT(none.gpus, IsEmpty());
}

}  // namespace
}  // namespace isthmus::hw

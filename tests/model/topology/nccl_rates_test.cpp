#include "model/topology/nccl_rates.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

Bandwidth gb(double rate) { return gigabytes_per_second(rate); }

TEST(NcclRates, pcie_texts_name_the_rate_of_sixteen_lanes) {
  EXPECT_EQ(pcie_x16_rate("2.5 GT/s PCIe"), gb(4));
  EXPECT_EQ(pcie_x16_rate("5 GT/s"), gb(8));
  EXPECT_EQ(pcie_x16_rate("5.0 GT/s PCIe"), gb(8));
  EXPECT_EQ(pcie_x16_rate("8 GT/s"), gb(15.75));
  EXPECT_EQ(pcie_x16_rate("16.0 GT/s"), gb(31.5));
  EXPECT_EQ(pcie_x16_rate("32.0 GT/s PCIe"), gb(63));
  EXPECT_EQ(pcie_x16_rate("64.0 GT/s PCIe"), gb(121));
  for (const char* text : {"", "Unknown speed", "7 GT/s", "16GT/s", "Gen5"})
    EXPECT_EQ(pcie_x16_rate(text), std::nullopt) << text;
}

TEST(NcclRates, nccl_misses_sixteen_with_a_point_unless_pcie_follows) {
  EXPECT_FALSE(nccl_knows_pcie_speed("16.0 GT/s"));
  EXPECT_TRUE(nccl_knows_pcie_speed("16.0 GT/s PCIe"));
  EXPECT_TRUE(nccl_knows_pcie_speed("16 GT/s"));
  EXPECT_FALSE(nccl_knows_pcie_speed(""));
}

TEST(NcclRates, pcie_words_lead_back_to_their_rate) {
  for (const double rate : {4.0, 8.0, 15.75, 31.5, 63.0, 121.0, 0.25, 7.875, 60.5}) {
    const auto words = pcie_words(gb(rate));
    ASSERT_TRUE(words) << rate;
    EXPECT_EQ(pcie_x16_rate(words->speed)->value * words->width / 16, gb(rate).value) << rate;
    EXPECT_TRUE(nccl_knows_pcie_speed(words->speed)) << rate;
  }
  EXPECT_EQ(pcie_words(gb(31.5))->width, 16U);
  EXPECT_FALSE(pcie_words(gb(50)));
  EXPECT_FALSE(pcie_words({}));
}

TEST(NcclRates, nvlink_rates_follow_the_compute_capability) {
  for (const auto& [sm, rate] : {std::pair(60, 20.0),
                                 {70, 25.0},
                                 {80, 25.0},
                                 {86, 14.0625},
                                 {89, 25.0},
                                 {90, 25.0},
                                 {100, 50.0},
                                 {103, 50.0},
                                 {121, 50.0}})
    EXPECT_EQ(nvlink_rate(sm), gb(rate)) << sm;
  EXPECT_EQ(nvlink_rate(52), std::nullopt);
  EXPECT_EQ(nvlink_sm(gb(25)), 90);
  EXPECT_EQ(nvlink_sm(gb(50)), 100);
  EXPECT_EQ(nvlink_sm(gb(30)), std::nullopt);
}

TEST(NcclRates, sockets_get_what_nccl_plans) {
  EXPECT_EQ(socket_rate({"x86_64", "GenuineIntel", 6, 79}), gb(6));  // Broadwell
  EXPECT_EQ(socket_rate({"x86_64", "GenuineIntel", 6, 85}), gb(10));
  EXPECT_EQ(socket_rate({"x86_64", "GenuineIntel", 6, 143}), gb(22));
  EXPECT_EQ(socket_rate({"x86_64", "GenuineIntel", 6, 207}), gb(40));
  EXPECT_EQ(socket_rate({"x86_64", "AuthenticAMD", 175, 1}), gb(16));
  EXPECT_EQ(socket_rate({"arm64", "", 0, 0}), gb(6));
  EXPECT_EQ(socket_rate({"ppc64", "", 0, 0}), gb(32));
  EXPECT_EQ(socket_rate({"x86_64", "", 0, 0}), std::nullopt);
  EXPECT_EQ(socket_rate({}), std::nullopt);
  for (const double rate : {6.0, 10.0, 16.0, 22.0, 32.0, 40.0})
    EXPECT_EQ(socket_rate(*socket_words(gb(rate))), gb(rate)) << rate;
  EXPECT_FALSE(socket_words(gb(50)));
}

}  // namespace
}  // namespace isthmus

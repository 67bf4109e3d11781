#include "model/quantity.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus {
namespace {

TEST(Quantity, bits_and_bytes_are_told_apart) {
  EXPECT_EQ(parse_bandwidth("400 Gbit/s"), Bandwidth{50'000'000'000});
  EXPECT_EQ(parse_bandwidth("400 GB/s"), Bandwidth{400'000'000'000});
  EXPECT_EQ(parse_bandwidth("8 bit/s"), Bandwidth{1});
}

TEST(Quantity, decimal_prefixes_are_powers_of_1000_and_binary_ones_of_1024) {
  EXPECT_EQ(parse_bytes("1 GB"), Bytes{1'000'000'000});
  EXPECT_EQ(parse_bytes("1 GiB"), Bytes{1'073'741'824});
  EXPECT_EQ(parse_bytes("1 kB"), Bytes{1'000});
  EXPECT_EQ(parse_bandwidth("1 MiB/s"), Bandwidth{1'048'576});
}

TEST(Quantity, fractions_are_exact) {
  EXPECT_EQ(parse_bytes("1.7 GB"), Bytes{1'700'000'000});
  EXPECT_EQ(parse_bandwidth("26.5625 Gbit/s"), Bandwidth{3'320'312'500});
  EXPECT_EQ(parse_duration("0.2 ms"), Duration{200'000'000});
  EXPECT_EQ(parse_bytes("0.000000001 GB"), Bytes{1});
}

TEST(Quantity, what_is_no_whole_number_is_rounded_to_the_nearest) {
  EXPECT_EQ(parse_bytes("1.3 GiB"), Bytes{1'395'864'371});  // 1395864371.2
  EXPECT_EQ(parse_bytes("1.5 B"), Bytes{2});
}

TEST(Quantity, space_before_the_unit_is_optional) {
  EXPECT_EQ(parse_bytes("2GiB"), parse_bytes("2 GiB"));
  EXPECT_EQ(parse_duration("25us"), Duration{25'000'000});
}

TEST(Quantity, another_kind_is_refused) {
  for (const char* text : {"450GB", "450 GB", "450 Gbit", "450 s", "450"})
    EXPECT_FALSE(parse_bandwidth(text)) << text;
  for (const char* text : {"1 GB/s", "1 Gbit", "1 s", "1"}) EXPECT_FALSE(parse_bytes(text)) << text;
  for (const char* text : {"1 GB", "1 GB/s", "1", "0"}) EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Quantity, ambiguous_or_malformed_text_is_refused) {
  for (const char* text :
       {"",     " ",     "GB",    "-1 GB",  "+1 GB",  "1e9 B", ".5 GB", "5. GB",  "1.2.3 GB", "1 KB",
        "1 gb", "1 GB ", " 1 GB", "1 GB B", "0x10 B", "nan B", "inf B", "1,5 GB", "0 B",      "0.0 GB"}) {
    EXPECT_FALSE(parse_bytes(text)) << text;
  }
  for (const char* text : {"1 Gbps", "1 Gb/s", "0 GB/s", "-450 GB/s"})
    EXPECT_FALSE(parse_bandwidth(text)) << text;
}

TEST(Quantity, zero_is_a_time_but_what_rounds_to_zero_is_not) {
  EXPECT_EQ(parse_duration("0 us"), Duration{0});
  EXPECT_FALSE(parse_duration("0.1 ps"));
  EXPECT_FALSE(parse_bandwidth("1 bit/s"));
}

TEST(Quantity, what_does_not_fit_is_refused) {
  EXPECT_EQ(parse_bytes("9000000 TB"), Bytes{9'000'000'000'000'000'000});
  EXPECT_FALSE(parse_bytes("10000000 TB"));
  EXPECT_FALSE(parse_bytes("10000000000000000000 B"));
  EXPECT_FALSE(parse_duration("99999999999999 s"));
}

TEST(Quantity, texts_use_the_largest_unit_that_is_exact) {
  EXPECT_EQ(to_string(Bandwidth{50'000'000'000}), "50 GB/s");
  EXPECT_EQ(to_string(Bytes{1'700'000'000}), "1700 MB");
  EXPECT_EQ(to_string(Bytes{2'147'483'648}), "2 GiB");
  EXPECT_EQ(to_string(Bytes{999}), "999 B");
  EXPECT_EQ(to_string(Duration{25'000'000}), "25 us");
  EXPECT_EQ(to_string(Duration{0}), "0 s");
}

RC_GTEST_PROP(Quantity, text_reads_back_to_the_same_value, ()) {
  const auto value = *rc::gen::inRange<std::int64_t>(1, std::numeric_limits<std::int64_t>::max() / 10);
  const auto round = *rc::gen::element<std::int64_t>(1, 1'000, 1'024, 1'000'000'000, 1'073'741'824);
  const std::int64_t used = value / round > 0 ? value / round * round : value;
  RC_ASSERT(parse_bandwidth(to_string(Bandwidth{used})) == Bandwidth{used});
  RC_ASSERT(parse_bytes(to_string(Bytes{used})) == Bytes{used});
  RC_ASSERT(parse_duration(to_string(Duration{used})) == Duration{used});
}

}  // namespace
}  // namespace isthmus

#include "model/topology/topology_text.hpp"

#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

namespace isthmus {
namespace {

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

TEST(TopologyText, lines_have_numbers_and_no_line_ends) {
  TextLines lines("a\r\n\nb");
  std::vector<std::string> read;
  for (std::string_view line; lines.next(line);)
    read.push_back(fmt::format("{}{}{}", lines.number(), line, lines.at_cut_line() ? "!" : ""));
  EXPECT_EQ(read, (std::vector<std::string>{"1a", "2", "3b!"}));
}

RC_GTEST_PROP(TopologyText, numbers_are_read_exactly_up_to_their_limit, (std::uint64_t value)) {
  RC_ASSERT(whole_number(fmt::format("{}", value), 10, largest) == value);
  RC_ASSERT(whole_number(fmt::format("{:x}", value), 16, largest) == value);
  RC_ASSERT(whole_number(fmt::format("000{:X}", value), 16, value) == value);
  if (value > 0) RC_ASSERT(!whole_number(fmt::format("{}", value), 10, value - 1));
  RC_ASSERT(!whole_number(fmt::format("{}0", largest), 10, largest));
}

TEST(TopologyText, numbers_are_digits_alone) {
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "1.0", "1e3", "a"})
    EXPECT_EQ(whole_number(text, 10, largest), std::nullopt) << text;
}

TEST(TopologyText, decimals_are_exact_and_have_no_comma_sign_or_exponent) {
  EXPECT_EQ(decimal_in_billionths("370.8", 1000), 370'800'000'000);
  EXPECT_EQ(decimal_in_billionths("5", 5), 5'000'000'000);
  EXPECT_EQ(decimal_in_billionths("0.000000001", 5), 1);
  for (const char* text : {"", ".", ".5", "5.", "5.0000000001", "5,0", "-5", "5e1", "5.1"})
    EXPECT_EQ(decimal_in_billionths(text, 5), std::nullopt) << text;
}

RC_GTEST_PROP(TopologyText, names_are_in_order_of_their_numbers, (std::uint16_t a, std::uint16_t b)) {
  const std::string left = fmt::format("r{}-x", a), right = fmt::format("r{}-x", b);
  RC_ASSERT(natural_less(left, right) == (a < b));
}

RC_GTEST_PROP(TopologyText, the_order_of_names_is_strict, ()) {
  const auto name = rc::gen::container<std::string>(rc::gen::element('a', '-', '0', '1', '9'));
  const std::string a = *name, b = *name, c = *name;
  RC_ASSERT(!natural_less(a, a));
  RC_ASSERT((a == b) == (!natural_less(a, b) && !natural_less(b, a)));
  if (natural_less(a, b) && natural_less(b, c)) RC_ASSERT(natural_less(a, c));
}

TEST(TopologyText, findings_of_one_code_are_counted_beyond_a_limit) {
  Findings findings;
  for (int i = 0; i < 100; ++i) findings.add("many", "a\nline");
  findings.add("one", "other");
  const std::vector<Finding> list = findings.take();
  ASSERT_EQ(list.size(), max_findings_of_a_code + 2);
  EXPECT_EQ(list.front().text, "a?line");
  EXPECT_EQ(list.back(), (Finding{"many", "36 more of this kind"}));
}

TEST(TopologyText, the_most_common_value_is_the_larger_of_two) {
  EXPECT_EQ(most_common({3, 2, 2, 3, 1}), 3U);
  EXPECT_EQ(most_common({1, 1, 3}), 1U);
}

TEST(TopologyText, rails_follow_the_nearest_gpus) {
  EXPECT_EQ(rails_of({std::nullopt, 1, 0, 0}), (std::vector<std::uint32_t>{3, 2, 0, 1}));
}

}  // namespace
}  // namespace isthmus

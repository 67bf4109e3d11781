#include "model/name_pattern.hpp"

#include <gtest/gtest.h>

namespace isthmus {
namespace {

TEST(NamePattern, what_could_take_exponential_time_is_a_fault) {
  for (const char* good :
       {"mlp", "\\.experts\\.[0-9]+\\.(gate|up)_proj", "^model.*weight$", "[*+?(]", "a{2,3}", "(?:x|y)?z"}) {
    EXPECT_EQ(name_pattern_fault(good), std::nullopt) << good;
  }
  for (const char* bad : {"(a+)+", "(a|a)*b", "((a*)b)*", "(.*){2}", "(a)\\1", "a?a?a?", "a*a*a*a*",
                          "a{1000}", "(", "[", "*", "(?:a*)+"}) {
    EXPECT_NE(name_pattern_fault(bad), std::nullopt) << bad;
  }
  EXPECT_NE(name_pattern_fault(std::string(257, 'a')), std::nullopt);
}

}  // namespace
}  // namespace isthmus

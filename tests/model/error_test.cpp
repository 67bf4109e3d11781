#include "model/error.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/text.hpp"

namespace isthmus {
namespace {

bool is_one_line(std::string_view text) { return first_unprintable(text) == text.size(); }

RC_GTEST_PROP(InputError, is_one_printable_line_whatever_was_found, ()) {
  const auto text = [] {
    const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
    return *rc::gen::element(bytes, bytes + "\n", bytes + "\xE2\x80\xA8" + "x");
  };
  const InputError error({text(), *rc::gen::inRange(0, 9), text()}, text(), text());
  for (const std::string_view part :
       {std::string_view(error.what()), std::string_view(error.message()), std::string_view(error.found()),
        std::string_view(error.allowed()), std::string_view(error.where().file),
        std::string_view(error.where().key)}) {
    RC_ASSERT(is_one_line(part));
  }
}

TEST(InputError, leaves_printable_text_as_it_is) {
  const InputError error({"a/b.yaml", 3, "train.pp"}, "'\xC2\xB5'", "1 to 4");
  EXPECT_STREQ(error.what(), "a/b.yaml:3: train.pp: found '\xC2\xB5'; allowed: 1 to 4");
  EXPECT_EQ(error.found(), "'\xC2\xB5'");
  EXPECT_EQ(error.where().file, "a/b.yaml");
}

TEST(InputError, of_several_is_a_line_each_with_the_parts_of_the_first) {
  const InputError error(
      {InputError({"a.yaml", 1, "x"}, "1", "2"), InputError({"b.yaml", 2, "y"}, "no\nsuch")});
  EXPECT_STREQ(error.what(), "a.yaml:1: x: found 1; allowed: 2\nb.yaml:2: y: no?such");
  EXPECT_EQ(error.where().key, "x");
  EXPECT_EQ(error.allowed(), "2");
}

}  // namespace
}  // namespace isthmus

#include "model/text.hpp"

#include <unistd.h>

#include <fstream>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

TEST(Text, valid_utf8_without_controls_is_printable) {
  for (const char* text : {"", "plain", "\xC2\xB5 \xE6\xBC\xA2 \xF0\x9F\x98\x80"}) {
    EXPECT_EQ(first_unprintable(text), std::string_view(text).size()) << text;
  }
}

TEST(Text, invalid_utf8_and_controls_are_found_where_they_stand) {
  // cut short, continuation alone, overlong, surrogate, above U+10FFFF, C1 control, line separator, escape
  for (const char* bad : {"\xC3", "\x80", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xC2\x85",
                          "\xE2\x80\xA8", "\x1B", "\n", "\x7F"}) {
    EXPECT_EQ(first_unprintable(std::string("ab") + bad + "c"), 2U);
  }
  EXPECT_EQ(first_unprintable("a\tb\n", "\t\n"), 4U);
}

TEST(Text, messages_are_shortened_at_whole_characters) {
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable("\xE6\xBC\xA2\xE6\xBC\xA2", 1), "\xE6\xBC\xA2...");
  EXPECT_EQ(printable("a\nb\x80"), "a?b?");
}

TEST(Text, files_are_read_whole_up_to_the_limit) {
  const auto file = std::filesystem::temp_directory_path() / ("isthmus-text-" + std::to_string(getpid()));
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{16384}, std::size_t{16385},
                                 max_text_bytes, max_text_bytes + 1}) {
    std::string content(size, 'a');
    if (size > 0) content.back() = 'b';
    std::ofstream(file, std::ios::binary) << content;
    if (size <= max_text_bytes) {
      EXPECT_TRUE(read_text_file(file) == content) << size;
    } else {
      EXPECT_THROW(read_text_file(file), InputError) << size;
    }
  }
  std::filesystem::remove(file);
}

TEST(Text, closest_words_come_first_and_ties_keep_their_order) {
  EXPECT_EQ(closest_first("gpu", {"tp", "dp", "gpus"}), (std::vector<std::string_view>{"gpus", "tp", "dp"}));
}

RC_GTEST_PROP(Text, what_is_printable_passes_and_all_else_becomes_printable, (const std::string& text)) {
  const std::string shown = printable(text, text.size() + 1);
  RC_ASSERT(first_unprintable(shown) == shown.size());
  if (first_unprintable(text) == text.size()) RC_ASSERT(shown == text);
}

}  // namespace
}  // namespace isthmus

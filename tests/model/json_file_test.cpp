#include "model/json_file.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"

namespace isthmus::json_file_test {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_json(text, "file");
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(JsonFile, keeps_what_the_text_says) {
  EXPECT_EQ(parse_json(R"({"a": [1, {"a": 2}], "b": {"a": null}})", "file").dump(),
            R"({"a":[1,{"a":2}],"b":{"a":null}})");
}

TEST(JsonFile, names_the_line_of_a_fault) {
  EXPECT_EQ(refusal("{\n\"a\": 1,\n\"b\": tru\n}").substr(0, 18), "file:3: not JSON: ");
  EXPECT_EQ(refusal("{\"a\": 1}\n\n}").substr(0, 18), "file:3: not JSON: ");
  EXPECT_EQ(refusal("").substr(0, 18), "file:1: not JSON: ");
  EXPECT_EQ(refusal("1e999").substr(0, 18), "file:1: not JSON: ");
  EXPECT_EQ(refusal("\"\xff\"").substr(0, 18), "file:1: not JSON: ");
  EXPECT_EQ(refusal(std::string("\0\n", 2)).find('\n'), std::string::npos);
}

TEST(JsonFile, refuses_repeated_keys_within_one_object_only) {
  EXPECT_EQ(refusal(R"({"a": 1, "b": {"c": 1, "c": 2}})"),
            "file: c: the key stands twice in one JSON object");
  EXPECT_EQ(refusal(R"([{"a": 1}, {"a": 2}, {"b": {"a": 1}, "a": 1}])"), "accepted");
}

TEST(JsonFile, refuses_deep_nesting_before_it_fills_the_memory) {
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "accepted");
  EXPECT_NE(refusal(std::string(65, '[') + std::string(65, ']')).find("nested deeper than 64"),
            std::string::npos);
  EXPECT_NE(refusal(std::string(10'000'000, '[')).find("nested deeper than 64"), std::string::npos);
}

TEST(JsonFile, reads_objects_of_very_many_members) {
  // A parser that looks at all members after each one would take a minute here.
  std::string text = "{";
  for (int i = 0; i < 50'000; ++i) text += "\"" + std::to_string(i) + "\": {\"shape\": [1, 2]},";
  text += "\"end\": 0}";
  EXPECT_EQ(parse_json(text, "file").size(), 50'001U);
}

TEST(JsonFile, describes_values_shortly_and_on_one_line) {
  EXPECT_EQ(describe(nlohmann::json::parse("[1, 2]")), "a list of 2");
  EXPECT_EQ(describe(nlohmann::json::object()), "an object");
  EXPECT_EQ(describe(nullptr), "null");
  EXPECT_EQ(describe(4096.0), "4096.0");
  EXPECT_EQ(describe("a\nb"), "\"a\\nb\"");
  EXPECT_LT(describe(std::string(1'000, 'x')).size(), 120U);
}

TEST(JsonFile, reads_files_up_to_the_given_size) {
  EXPECT_THROW(read_text("/does/not/exist", 10), InputError);
  EXPECT_THROW(read_text("/", 10), InputError);
  EXPECT_THROW(read_text("/dev/zero", 1 << 20), InputError);
  EXPECT_EQ(read_text("/dev/null", 0), "");
}

}  // namespace
}  // namespace isthmus::json_file_test

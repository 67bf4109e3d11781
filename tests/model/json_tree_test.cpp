#include "model/json_tree.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <nlohmann/json.hpp>

namespace isthmus {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view text = R"({
  "name": "a",
  "numbers": [1,
    2
  ],
  "inner": {"list": [{}, {"deep": -3}], "real": 1.5, "flag": true, "nothing": null}
})";

std::string message(std::string_view json) {
  try {
    const JsonTree tree(json, "a.json");
    return "no error";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(JsonTree, values_know_their_lines_and_dotted_keys) {
  const JsonTree tree(text, "a.json");
  const JsonValue numbers = tree.root().at("numbers");
  EXPECT_EQ(numbers.line(), 3);
  const std::vector<JsonValue> items = numbers.items(2, "numbers");
  EXPECT_EQ(items[0].line(), 3);
  EXPECT_EQ(items[1].line(), 4);  // although a line break follows
  EXPECT_EQ(items[1].where().key, "numbers.1");
  const JsonValue deep = tree.root().at("inner").at("list").items(9, "a list")[1].at("deep");
  EXPECT_EQ(deep.where().key, "inner.list.1.deep");
  EXPECT_EQ(deep.where().file, "a.json");
  EXPECT_EQ(deep.line(), 6);
  EXPECT_EQ(deep.integer(-5, 5), -3);
}

TEST(JsonTree, readers_say_what_they_found_and_what_is_allowed) {
  const JsonTree tree(text, "a.json");
  const JsonValue root = tree.root(), inner = root.at("inner");
  const auto message_of = [](const auto& call) {
    try {
      call();
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(message_of([&] { root.at("name").integer(0, 7); }),
              HasSubstr("a.json:2: name: found 'a'; allowed: a whole number from 0 to 7"));
  EXPECT_THAT(message_of([&] { inner.at("real").integer(0, 7); }), HasSubstr("no whole number"));
  EXPECT_THAT(message_of([&] { inner.at("flag").text("a name"); }), HasSubstr("found true; allowed: a name"));
  EXPECT_THAT(message_of([&] { root.at("numbers").integers(1, 0, 9); }), HasSubstr("a longer list"));
  EXPECT_THAT(message_of([&] { root.at("numbers").items(1, "one"); }), HasSubstr("more than 1 items"));
  EXPECT_THAT(message_of([&] { root.at("missing"); }), HasSubstr("missing: found nothing"));
  EXPECT_THAT(message_of([&] {
                root.allow_only({"names", "numbers", "inner"});
              }),
              HasSubstr("name: found an unknown key; allowed: names"));
  EXPECT_THAT(root.at("numbers").integers(2, 0, 9), ElementsAre(1, 2));
}

TEST(JsonTree, refuses_what_is_no_plain_json_with_the_line) {
  EXPECT_THAT(message("{\n\"a\": [1, 2\n}"), HasSubstr("a.json:3: not JSON"));
  EXPECT_THAT(message("{\"a\": 1,\n \"a\": 2}"), HasSubstr("a.json:2: a: the key stands twice"));
  EXPECT_THAT(message(""), HasSubstr("not JSON"));
  EXPECT_THAT(message("{} {}"), HasSubstr("not JSON"));
  EXPECT_THAT(message(std::string(65, '[') + std::string(65, ']')), HasSubstr("deeper than 64"));
  EXPECT_EQ(message(std::string(64, '[') + std::string(64, ']')), "no error");
}

nlohmann::json rebuilt(const JsonValue& value) {
  if (value.is_list() || value.is_object()) {
    nlohmann::json result = value.is_list() ? nlohmann::json::array() : nlohmann::json::object();
    for (const JsonValue& item : value.items(100, "items")) {
      if (value.is_list()) result.push_back(rebuilt(item));
      if (value.is_object()) result[std::string(item.key())] = rebuilt(item);
    }
    return result;
  }
  if (value.is_text()) return value.text("text");
  if (value.is_integer()) return value.integer(-1000, 1000);
  return nullptr;
}

nlohmann::json any_json(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 5 : 3)) {
    case 0: return *rc::gen::inRange(-1000, 1000);
    case 1: return fmt::format("text {}", *rc::gen::inRange(0, 9));
    case 2: return nullptr;
    case 3: {
      nlohmann::json list = nlohmann::json::array();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list.push_back(any_json(depth - 1));
      return list;
    }
    default: {
      nlohmann::json object = nlohmann::json::object();
      for (int i = *rc::gen::inRange(0, 4); i > 0; --i) object[fmt::format("key{}", i)] = any_json(depth - 1);
      return object;
    }
  }
}

RC_GTEST_PROP(JsonTree, holds_what_the_text_says, ()) {
  const nlohmann::json value = any_json(4);
  const std::string dumped = value.dump(*rc::gen::element(-1, 0, 2));
  RC_ASSERT(rebuilt(JsonTree(dumped, "a.json").root()) == value);
}

}  // namespace
}  // namespace isthmus

#pragma once
// Internal to the reader and the writer of plan files: the part that says what a plan was made for, and small
// helpers on JSON that both parts share.
// Invariant: read_subject and add_subject are inverse to each other.
// A subject's ranks exist in its refit: no layout names a rank without a GPU.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "model/json_tree.hpp"
#include "model/refit.hpp"
#include "model/text.hpp"

namespace isthmus::plan_file {

class JsonText {
 public:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Values>(values)...);
  }
  /// A list with one item per line; its end stands as far in as its key, or further.
  template <class List, class Write>
  void lines(std::string_view indent, std::string_view key, const List& list, Write write_item,
             std::string_view further = "") {
    add("{}\"{}\": [", indent, key);
    std::string_view separator = "\n";
    for (const auto& item : list) {
      add("{}", separator);
      write_item(item);
      separator = ",\n";
    }
    if (!list.empty()) add("\n{}{}", indent, further);
    add("]");
  }
  std::string take() const { return fmt::to_string(text_); }

 private:
  fmt::memory_buffer text_;
};

std::string json_text(std::string_view text);

struct Subject {
  Scenario scenario;
  Refit refit;
};
/// Reads `scenario`, `geometries` and `tensors` of the root.
Subject read_subject(const JsonValue& root, const std::filesystem::path& file);
/// Writes them, each with a comma behind it.
void add_subject(const Scenario& scenario, const Refit& refit, JsonText& text);

/// The items of a list.
std::vector<JsonValue> list_of(const JsonValue& value, std::size_t most);
std::uint32_t number(const JsonValue& value, std::int64_t least = 0, std::int64_t most = 0xFFFF'FFFE);
/// number() of the value at a key, or what stands for a missing one.
std::uint32_t number_or(const JsonValue& object, std::string_view key, std::uint32_t usual,
                        std::int64_t most = 0xFFFF'FFFE);

constexpr std::string_view name_form = "a text on one line of at most 4096 bytes";

/// The value among first ... last that goes by this name.
template <class Enum>
Enum named(const JsonValue& value, Enum first, Enum last) {
  std::vector<std::string_view> names;
  const std::string name = value.is_text() ? value.text_or_empty(name_form) : "";
  for (auto i = static_cast<int>(first); i <= static_cast<int>(last); ++i) {
    names.push_back(to_string(static_cast<Enum>(i)));
    if (name == names.back()) return static_cast<Enum>(i);
  }
  value.refuse(fmt::format("{}", fmt::join(closest_first(name, std::move(names)), ", ")));
}

}  // namespace isthmus::plan_file

#include "report/page.hpp"

#include <array>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::report {
namespace {

std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<') {
      safe += "&lt;";
    } else if (c == '&') {
      safe += "&amp;";
    } else {
      safe += c;
    }
  }
  return safe;
}

/// In JSON "<" stands in strings only; without it nothing in them can end the element that holds them.
std::string script_json(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

}  // namespace

std::string with_page_data(const std::string& comparison_json, const std::string& data) {
  const std::size_t end = comparison_json.rfind("\n}");
  ISTHMUS_ASSERT(end != std::string::npos, "the comparison is no indented object");
  return fmt::format("{},\n  \"report\": {}\n}}\n", comparison_json.substr(0, end), data);
}

std::string page_document(const PageTexts& texts, const PageAssets& assets) {
  if (assets.library.empty()) {
    throw SystemError(
        "this program was built without D3, which draws the page: install node-d3 (or put "
        "share/nodejs/d3/dist/d3.min.js below ISTHMUS_DEPS) and build again");
  }
  const std::array<std::pair<std::string_view, std::string>, 7> parts{{
      {"@title@", html_text(texts.title)},
      {"@style@", std::string(assets.style)},
      {"@table@", html_text(texts.table)},
      {"@data@", script_json(texts.data)},
      {"@explanation@", script_json(texts.explanation.empty() ? "null" : texts.explanation)},
      {"@library@", std::string(assets.library)},
      {"@script@", std::string(assets.script)},
  }};
  // From place to place in the template: what is put in is not searched.
  std::string page;
  std::string_view rest = assets.html;
  while (true) {
    std::size_t at = std::string_view::npos;
    const std::pair<std::string_view, std::string>* next = nullptr;
    for (const auto& part : parts) {
      const std::size_t found = rest.find(part.first);
      if (found < at) {
        at = found;
        next = &part;
      }
    }
    if (next == nullptr) break;
    page += rest.substr(0, at);
    page += next->second;
    rest.remove_prefix(at + next->first.size());
  }
  page += rest;
  return page;
}

}  // namespace isthmus::report

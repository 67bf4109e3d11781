#include <algorithm>
#include <cctype>
#include <regex>

#include "tests/tidy/house_rules.hpp"

namespace isthmus::tidy {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::size_t after(std::string_view text, std::string_view what, std::size_t from) {
  const std::size_t found = text.find(what, from);
  return found == std::string_view::npos ? text.size() : found + what.size();
}

std::size_t after_quoted(std::string_view text, std::size_t begin) {
  std::size_t i = begin + 1;
  while (i < text.size() && text[i] != text[begin] && text[i] != '\n') i += text[i] == '\\' ? 2U : 1U;
  return std::min(i + 1, text.size());
}

std::size_t after_raw_string(std::string_view text, std::size_t begin) {
  const std::size_t open = text.find('(', begin);
  if (open == std::string_view::npos) return text.size();
  const std::string delimiter(text.substr(begin + 2, open - begin - 2));
  return after(text, ")" + delimiter + "\"", open);
}

/// A preprocessor line with the lines it continues on.
std::size_t after_directive(std::string_view text, std::size_t begin) {
  std::size_t end = text.find('\n', begin);
  while (end != std::string_view::npos && end > 0 && text[end - 1] == '\\') end = text.find('\n', end + 1);
  return std::min(end, text.size());
}

bool opens_line(std::string_view text, std::size_t i) {
  while (i > 0 && text[i - 1] != '\n') {
    if (!is_blank(text[--i])) return false;
  }
  return true;
}

/// Where the comment, literal or directive that begins at i ends; i itself where none begins.
std::size_t after_non_code(std::string_view text, std::size_t i) {
  const std::string_view rest = text.substr(i);
  const bool in_word = i > 0 && is_word(text[i - 1]);
  if (rest.starts_with("//")) return std::min(text.find('\n', i), text.size());
  if (rest.starts_with("/*")) return after(text, "*/", i + 2);
  if (rest.starts_with("R\"") && !in_word) return after_raw_string(text, i);
  if (rest.starts_with("\"")) return after_quoted(text, i);
  if (rest.starts_with("'") && !in_word) return after_quoted(text, i);  // within a word it separates digits
  if (rest.starts_with("#") && opens_line(text, i)) return after_directive(text, i);
  return i;
}

/// What stands outside all (), [] and <>, so that template arguments and parameters do not mislead.
std::string outer(std::string_view head) {
  std::string result;
  int depth = 0;
  for (const char c : head) {
    if (c == ')' || c == ']' || c == '>') depth = std::max(0, depth - 1);
    if (depth == 0) result += c;
    if (c == '(' || c == '[' || c == '<') ++depth;
  }
  return result;
}

/// Whether braces after `head` hold declarations, so that functions are to be looked for inside.
bool opens_scope(std::string_view head) {
  static const std::regex keyword(R"(\b(namespace|class|struct|union|enum|extern)\b)");
  return std::regex_search(outer(head), keyword);
}

bool opens_function(std::string_view head) {
  const auto open = std::count(head.begin(), head.end(), '(');
  const auto close = std::count(head.begin(), head.end(), ')');
  const auto last = std::find_if_not(head.rbegin(), head.rend(), is_blank);
  return open > 0 && open == close && *last != '=';
}

std::size_t skip_blanks(std::string_view text, std::size_t i) {
  while (i < text.size() && is_blank(text[i])) ++i;
  return i;
}

std::size_t line_of(std::string_view text, std::size_t i) {
  return 1 + static_cast<std::size_t>(
                 std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n'));
}

/// The brace that closes the one at `open`.
std::size_t closing_brace(std::string_view code, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < code.size(); ++i) {
    if (code[i] == '{') ++depth;
    if (code[i] == '}' && --depth == 0) return i;
  }
  return code.size();
}

}  // namespace

std::string code_only(std::string_view text) {
  std::string code(text);
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t end = after_non_code(text, i);
    std::replace_if(
        code.begin() + static_cast<std::ptrdiff_t>(i), code.begin() + static_cast<std::ptrdiff_t>(end),
        [](char c) { return c != '\n'; }, ' ');
    i = std::max(end, i + 1);
  }
  return code;
}

std::vector<Function> functions(std::string_view text) {
  const std::string code = code_only(text);
  std::vector<Function> found;
  std::size_t head = 0;  // where the declaration began that we are in
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == ';' || code[i] == '}') head = i + 1;
    if (code[i] != '{') continue;
    const std::string_view signature = std::string_view(code).substr(head, i - head);
    if (opens_scope(signature)) {
      head = i + 1;
      continue;
    }
    i = closing_brace(code, i);
    // After the braces of an initialiser the declaration goes on: A::A(B b = {}) : a_{b}, b_{b} { ... }
    const std::size_t next = skip_blanks(code, i + 1);
    if (next < code.size() && std::string_view(",){").find(code[next]) != std::string_view::npos) continue;
    if (opens_function(signature)) {
      found.push_back({line_of(code, skip_blanks(code, head)), line_of(code, std::min(i, code.size() - 1))});
    }
    head = i + 1;
  }
  return found;
}

}  // namespace isthmus::tidy

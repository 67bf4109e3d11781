#include "model/error.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

#include "model/text.hpp"

namespace isthmus {
namespace {

std::string prefix(const Location& where) {
  std::string text = where.file;
  if (where.line > 0) text += fmt::format(":{}", where.line);
  if (!where.key.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", where.key);
  return text.empty() ? "" : text + ": ";
}

// Parts of messages come from the input: here is the one place that all of them pass.
std::string one_line(std::string_view text) { return printable(text, text.size() + 1); }

std::string lines_of(const std::vector<InputError>& all) {
  std::string text;
  for (const InputError& error : all) text += fmt::format("{}{}", text.empty() ? "" : "\n", error.what());
  return text;
}

}  // namespace

InputError::InputError(const Location& where, std::string_view found, std::string_view allowed)
    : InputError(where, fmt::format("found {}; allowed: {}", found, allowed)) {
  found_ = one_line(found);
  allowed_ = one_line(allowed);
}

InputError::InputError(const Location& where, std::string_view message)
    : std::runtime_error(one_line(prefix(where) + std::string(message))),
      where_{one_line(where.file), where.line, one_line(where.key)},
      message_(one_line(message)),
      found_(message_) {}

InputError::InputError(const std::vector<InputError>& all)
    : std::runtime_error(lines_of(all)),
      where_(all.front().where_),
      message_(all.front().message_),
      found_(all.front().found_),
      allowed_(all.front().allowed_) {}

void assertion_failed(std::string_view expression, std::string_view file, int line, std::string_view values) {
  fmt::print(stderr, "isthmus: internal error: {}:{}: {} does not hold: {}\n", file, line, expression,
             values);
  std::fflush(stderr);
  std::abort();
}

}  // namespace isthmus

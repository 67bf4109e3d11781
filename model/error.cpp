#include "model/error.hpp"

#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>

namespace isthmus {
namespace {

std::string prefix(const Location& where) {
  std::string text = where.file;
  if (where.line > 0) text += fmt::format(":{}", where.line);
  if (!where.key.empty()) text += fmt::format("{}{}", text.empty() ? "" : ": ", where.key);
  return text.empty() ? "" : text + ": ";
}

}  // namespace

InputError::InputError(const Location& where, std::string_view found, std::string_view allowed)
    : InputError(where, fmt::format("found {}; allowed: {}", found, allowed)) {
  found_ = found;
  allowed_ = allowed;
}

InputError::InputError(const Location& where, std::string_view message)
    : std::runtime_error(prefix(where) + std::string(message)),
      where_(where),
      message_(message),
      found_(message) {}

void assertion_failed(std::string_view expression, std::string_view file, int line, std::string_view values) {
  fmt::print(stderr, "isthmus: internal error: {}:{}: {} does not hold: {}\n", file, line, expression,
             values);
  std::fflush(stderr);
  std::abort();
}

}  // namespace isthmus

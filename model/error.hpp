#pragma once
// The mechanisms for the kinds of failure that are no verdicts (ARCHITECTURE: four kinds, four mechanisms):
//   ISTHMUS_ASSERT  a bug of ours: always on, prints the values, aborts
//   InputError      bad input: file, line, key, what was found, what is allowed; caught once in main, exit
//   status 2 SystemError     the system failed (files, processes, CUDA, NCCL, MPI): call, code, rank, step;
//   exit status 3
// A verdict that a caller branches on is a [[nodiscard]] value, never an exception.

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {

/// Where in the user's input something stands. `line` is 1-based; 0 when the source has no lines (command
/// line).
struct Location {
  std::string file;
  int line = 0;
  std::string key;  // dotted, as in train.pp
};

class InputError : public std::runtime_error {
 public:
  /// One printable line, whatever the parts hold: "file:line: key: found ...; allowed: ...".
  InputError(const Location& where, std::string_view found, std::string_view allowed);
  /// The same with one free sentence, where found/allowed does not fit.
  InputError(const Location& where, std::string_view message);
  /// Several at once, a line each; the parts are those of the first. Requires at least one.
  explicit InputError(const std::vector<InputError>& all);

  const Location& where() const { return where_; }
  /// The sentence without its location, for a caller that knows the place better.
  const std::string& message() const { return message_; }
  /// Both parts of the sentence; a free sentence is all `found`.
  const std::string& found() const { return found_; }
  const std::string& allowed() const { return allowed_; }

 private:
  Location where_;
  std::string message_, found_, allowed_;
};

class SystemError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void assertion_failed(std::string_view expression, std::string_view file, int line,
                                   std::string_view values);

}  // namespace isthmus

/// ISTHMUS_ASSERT(condition, "format with values", ...): fmt-style; compiled into every build.
#define ISTHMUS_ASSERT(condition, ...) \
  ((condition) ? static_cast<void>(0)  \
               : ::isthmus::assertion_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)))

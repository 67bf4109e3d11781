#pragma once
// The house rules that a program can judge, as functions of a file's name and text: sizes (headers 300 lines,
// sources 500, functions 70, lines 110 characters), the dependency rule between modules, the comment that
// opens a header, one definition of each type in the program, and what the project does without: shared
// pointers, raw allocation, marks of unfinished work, Boost.Graph in headers. Function lengths come from
// counting braces, not from parsing: a length counts from the signature to the last brace.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus::tidy {

struct Finding {
  std::size_t line = 0;  // 1-based
  std::string message;
  friend bool operator==(const Finding&, const Finding&) = default;
};

/// `path` is relative to the project root and decides which rules apply: "model/units.hpp".
std::vector<Finding> find_violations(std::string_view path, std::string_view text);

/// The text with comments, literals and preprocessor lines replaced by blanks; every character keeps its
/// place.
std::string code_only(std::string_view text);

struct Function {
  std::size_t first_line = 0, last_line = 0;  // 1-based, both included
  friend bool operator==(const Function&, const Function&) = default;
};

/// The functions of a file, member functions included; lambdas and local types belong to the function around
/// them.
std::vector<Function> functions(std::string_view text);

/// Types that a file defines at namespace scope, with their namespaces: "isthmus::Finding". Those in unnamed
/// namespaces are left out. Two of the same name in one program are a fault that no linker reports.
std::vector<std::string> defined_types(std::string_view text);

}  // namespace isthmus::tidy

#pragma once
// Where results go: standard output, or a file that is complete or not there.
// Invariant: what cannot be written leaves as SystemError; a file of that name is then still the old one, and
// nothing else is left in its folder.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace isthmus::cli {

void print(const std::string& text);

/// Writes beside `file` and renames. "-" is standard output.
void write_output(const std::string& file, const std::string& text);

/// The same for what comes in pieces: `produce` hands them to the function it is given. No "-".
void write_pieces(const std::string& file,
                  const std::function<void(const std::function<void(std::string_view)>&)>& produce);

}  // namespace isthmus::cli

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

/// Adds whole lines to the end of a file, or nothing: what could not be written in full is taken back. A file
/// whose last line has no end is refused, and left alone.
void append_lines(const std::string& file, const std::string& lines);

std::string today();  // 2026-11-30, UTC

}  // namespace isthmus::cli

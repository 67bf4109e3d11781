#pragma once
// Small helpers on text for readers and messages: what is printable UTF-8, what may stand in a one-line
// message, and which allowed word a misspelt one is closest to.
// Invariant: what printable() returns holds no line break and is valid UTF-8, whatever it was given.

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace isthmus {

/// Position of the first byte that is no valid UTF-8, or begins a control character or line separator that is
/// not in `allowed`; text.size() when there is none.
std::size_t first_unprintable(std::string_view text, std::string_view allowed = {});

/// A text as it may stand in a message: on one line, valid UTF-8, shortened to about `most` bytes.
std::string printable(std::string_view text, std::size_t most = 80);

inline constexpr std::size_t max_text_bytes = std::size_t{4} << 20;

/// The content of a file of at most `most` bytes; InputError when it cannot be read.
std::string read_text_file(const std::filesystem::path& file, std::size_t most = max_text_bytes);

/// The words by edit distance from `word`, closest first; ties keep their order.
std::vector<std::string_view> closest_first(std::string_view word, std::vector<std::string_view> words);

/// A text as a YAML value of one line: plain where YAML takes it for this very text, else in double quotes.
std::string yaml_text(std::string_view text);

}  // namespace isthmus

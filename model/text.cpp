#include "model/text.hpp"

#include <algorithm>
#include <array>
#include <fstream>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/units.hpp"

namespace isthmus {
namespace {

/// Length of the valid UTF-8 sequence at the front of `text`, and its code point; length 0 when there is
/// none.
struct CodePoint {
  std::size_t length = 0;
  char32_t value = 0;
};

CodePoint front_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {1, first};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return {};
  char32_t value = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    value = value << 6U | (byte(i) & 0x3FU);
  }
  const bool overlong = value < (length == 2 ? 0x80U : length == 3 ? 0x800U : 0x10000U);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  return overlong || surrogate || value > 0x10FFFF ? CodePoint{} : CodePoint{length, value};
}

bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFEFF;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::size_t first_unprintable(std::string_view text, std::string_view allowed) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = front_code_point(text.substr(at));
    const bool may_stand =
        c.value < 0x80 && allowed.find(static_cast<char>(c.value)) != std::string_view::npos;
    if (c.length == 0 || (is_control(c.value) && !may_stand)) return at;
    at += c.length;
  }
  return text.size();
}

std::string printable(std::string_view text, std::size_t most) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (result.size() >= most) return result + "...";
    const CodePoint c = front_code_point(text.substr(at));
    const std::size_t length = std::max<std::size_t>(c.length, 1);
    if (c.length == 0 || is_control(c.value)) {
      result += '?';
    } else {
      result += text.substr(at, length);
    }
    at += length;
  }
  return result;
}

std::vector<std::string_view> closest_first(std::string_view word, std::vector<std::string_view> words) {
  const std::string_view compared = word.substr(0, 64);
  std::stable_sort(words.begin(), words.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(compared, a) < edit_distance(compared, b);
  });
  return words;
}

std::string read_text_file(const std::filesystem::path& file, std::size_t most) {
  const Location where{printable(file.string(), 4096), 0, {}};
  std::error_code code;
  const auto type = std::filesystem::status(file, code).type();
  if (type == std::filesystem::file_type::not_found)
    throw InputError(where, "no such file", "a file that exists");
  if (type == std::filesystem::file_type::directory) throw InputError(where, "a folder", "a file");
  std::ifstream stream(file, std::ios::binary);
  if (!stream) throw InputError(where, "a file that cannot be opened", "a readable file");
  std::string text;
  std::array<char, 1 << 14> block{};
  while (text.size() <= most && stream.good()) {
    stream.read(block.data(), block.size());
    text.append(block.data(), to_size(stream.gcount()));
  }
  if (stream.bad()) throw InputError(where, "a file that cannot be read", "a readable file");
  if (text.size() > most) {
    throw InputError(where, fmt::format("more than {} MiB", most >> 20),
                     fmt::format("at most {} MiB", most >> 20));
  }
  return text;
}

std::string yaml_text(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_plain = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '/';
  };
  const bool nothing = text == "null" || text == "Null" || text == "NULL";
  const bool plain =
      !text.empty() && is_letter(text.front()) && std::all_of(text.begin(), text.end(), is_plain);
  if (plain && !nothing) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace isthmus

#include "model/json_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

// Deeper than any known configuration; a parsed level costs tens of bytes, so a file of brackets would fill
// memory.
constexpr std::size_t max_depth = 64;

int line_of(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
}

// nlohmann::json: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
std::string plain_reason(std::string_view text) {
  const std::size_t column = text.find("column");
  const std::size_t colon = text.find(": ", column == std::string_view::npos ? 0 : column);
  return printable(colon == std::string_view::npos ? text : text.substr(colon + 2), 200);
}

/// Refuses what is no JSON, repeated keys, of which the parser would silently keep the last one, and deep
/// nesting. A pass of its own: nlohmann's parser with a callback looks through the whole parent object after
/// each member.
class Guard : public nlohmann::json_sax<nlohmann::json> {
 public:
  Guard(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (open_.back().insert(name).second) return true;
    throw InputError({file_, 0, printable(name)}, "the key stands twice in one JSON object");
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& error) override {
    throw InputError({file_, line_of(text_, byte == 0 ? 0 : byte - 1), ""},
                     "not JSON: " + plain_reason(error.what()));
  }

 private:
  bool open() {
    if (open_.size() >= max_depth) {
      throw InputError({file_, 0, ""}, fmt::format("JSON nested deeper than {} levels", max_depth),
                       "flatter JSON");
    }
    open_.emplace_back();
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& file_;
  std::vector<std::set<std::string>> open_;  // keys of the objects that are open; arrays have none
};

}  // namespace

std::string read_text(const std::filesystem::path& file, std::size_t max_bytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw InputError({file.string(), 0, ""}, "a directory", "a file");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream)
    throw InputError({file.string(), 0, ""}, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::string text;
  std::vector<char> buffer(1 << 16);
  while (stream.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), stream.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > max_bytes) {
      throw InputError({file.string(), 0, ""}, fmt::format("more than {} bytes", max_bytes),
                       "a smaller file");
    }
  }
  return text;
}

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  Guard guard(text, file);
  nlohmann::json::sax_parse(text, &guard);
  return nlohmann::json::parse(text);
}

std::string describe(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("a list of {}", value.size());
  if (value.is_object()) return "an object";
  if (value.is_null()) return "null";
  return printable(value.dump(-1, ' ', true));  // ASCII only
}

}  // namespace isthmus

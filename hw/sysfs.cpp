#include "hw/sysfs.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <system_error>

namespace isthmus::hw {
namespace {

constexpr std::size_t longest_value = 200;

bool is_value_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view(" .,:;/_-+@()").find(c) != std::string_view::npos;
}

bool is_hexadecimal(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
}

/// With each number as wide as any: the order of such keys is that of numbers.
std::string natural_key(const std::string& name) {
  std::string key, digits;
  for (const char c : name + '\0') {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      digits += c;
      continue;
    }
    if (!digits.empty()) key += std::string(20 - std::min<std::size_t>(digits.size(), 20), '0') + digits;
    digits.clear();
    key += c;
  }
  return key;
}

}  // namespace

bool Sysfs::has(std::string_view path) const {
  std::error_code ignored;
  return std::filesystem::exists(at(path), ignored);
}

std::vector<std::string> Sysfs::list(std::string_view folder) const {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator entry(at(folder), error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end(),
            [](const std::string& a, const std::string& b) { return natural_key(a) < natural_key(b); });
  return names;
}

std::string sysfs_value(std::string_view line) {
  std::string value;
  for (const char c : line.substr(0, longest_value))
    if (is_value_character(c)) value += c;
  const std::size_t begin = value.find_first_not_of(' ');
  if (begin == std::string::npos) return "";
  return value.substr(begin, value.find_last_not_of(' ') + 1 - begin);
}

std::string sysfs_text(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return "";
  std::ifstream stream(file);
  std::string line(longest_value, '\0');
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<std::size_t>(stream.gcount()));
  return sysfs_value(line.substr(0, line.find('\n')));
}

std::optional<std::int64_t> sysfs_number(const std::filesystem::path& file) {
  const std::string text = sysfs_text(file);
  std::int64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != text.data() + text.size())
    return std::nullopt;
  return number;
}

std::string sysfs_hexadecimal(const std::filesystem::path& file) {
  const std::string text = sysfs_text(file);
  const bool of_form =
      text.starts_with("0x") && text.size() <= 18 && is_hexadecimal(std::string_view(text).substr(2));
  return of_form ? text : "";
}

std::string first_value(const std::string& text, std::string_view name) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    std::string_view key = line.substr(0, colon);
    key = key.substr(0, key.find_last_not_of(" \t") + 1);
    if (key == name) return sysfs_value(line.substr(colon + 1));
  }
  return "";
}

bool is_busid(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4 || colon > 8 || text.size() != colon + 8) return false;
  return text[colon + 3] == ':' && text[colon + 6] == '.' && is_hexadecimal(text.substr(0, colon)) &&
         is_hexadecimal(text.substr(colon + 1, 2)) && is_hexadecimal(text.substr(colon + 4, 2)) &&
         is_hexadecimal(text.substr(colon + 7));
}

std::filesystem::path pci_path(const std::filesystem::path& device) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(device, error);
  if (error) return {};
  for (int levels = 0; levels < 64 && path.has_relative_path(); ++levels, path = path.parent_path())
    if (is_busid(path.filename().string())) return path;
  return {};
}

}  // namespace isthmus::hw

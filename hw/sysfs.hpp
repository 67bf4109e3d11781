#pragma once
// Linux's folders sys and proc, read without trust: values are short, on one line, and of the characters that
// addresses, names, numbers and rates consist of; whatever is not of its form counts as absent.
// Invariant: nothing is raised; a file that is missing or cannot be read is empty.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace isthmus::hw {

class Sysfs {
 public:
  explicit Sysfs(std::filesystem::path root) : root_(std::move(root)) {}

  /// Below the root: "sys/class/net".
  std::filesystem::path at(std::string_view path) const { return root_ / path; }
  bool has(std::string_view path) const;
  /// The names in a folder, numbers in them by value: mlx5_2 before mlx5_10.
  std::vector<std::string> list(std::string_view folder) const;

 private:
  std::filesystem::path root_;
};

/// Without blanks around it, at most 200 characters, others than those above left out.
std::string sysfs_value(std::string_view line);
/// The first line of a file, as such a value.
std::string sysfs_text(const std::filesystem::path& file);
/// Decimal.
std::optional<std::int64_t> sysfs_number(const std::filesystem::path& file);
/// "0x10de", or empty.
std::string sysfs_hexadecimal(const std::filesystem::path& file);
/// A file of many lines, such as /proc/cpuinfo, as "name : value": the first value of that name.
std::string first_value(const std::string& text, std::string_view name);

/// "0000:1b:00.0"
bool is_busid(std::string_view text);
/// Where a device really stands, or the path above it that is a PCI function; empty where there is none.
std::filesystem::path pci_path(const std::filesystem::path& device);

}  // namespace isthmus::hw

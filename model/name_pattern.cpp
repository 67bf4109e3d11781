#include "model/name_pattern.hpp"

#include <regex>
#include <vector>

#include <fmt/format.h>

namespace isthmus {
namespace {

constexpr std::size_t max_length = 256;
constexpr int max_repetitions = 3;  // * + {}: each multiplies the steps by the length of the name
constexpr int max_options = 2;      // ?: each at most doubles the steps
constexpr std::size_t max_count_digits = 2;

/// Reads a pattern once, keeping for each open group whether it repeats or has alternatives.
class Scan {
 public:
  explicit Scan(std::string_view pattern) : pattern_(pattern) {}

  std::optional<std::string> fault() {
    while (at_ < pattern_.size() && !fault_) step();
    return fault_;
  }

 private:
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  char next() const { return at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0'; }

  void step() {
    const char c = pattern_[at_];
    const bool after_group = after_ambiguous_group_;
    after_ambiguous_group_ = false;
    if (c == '\\') {
      if (is_digit(next())) fault_ = "a back reference";
      ++at_;
    } else if (c == '[') {
      skip_class();
    } else if (c == '(') {
      ambiguous_.push_back(false);
      if (next() == '?') ++at_;
    } else if (c == ')' && ambiguous_.size() > 1) {
      after_ambiguous_group_ = ambiguous_.back();
      ambiguous_.pop_back();
      if (after_ambiguous_group_) ambiguous_.back() = true;
    } else if (c == '|') {
      ambiguous_.back() = true;
    } else if (c == '*' || c == '+' || c == '?' || c == '{') {
      repetition(c, after_group);
    }
    ++at_;
  }

  void skip_class() {
    while (++at_ < pattern_.size() && pattern_[at_] != ']') {
      if (pattern_[at_] == '\\') ++at_;
    }
  }

  void repetition(char operation, bool after_ambiguous_group) {
    ambiguous_.back() = true;
    if (after_ambiguous_group && operation != '?')
      fault_ = "a repeated group that repeats or has alternatives inside";
    int& used = operation == '?' ? options_ : repetitions_;
    const int most = operation == '?' ? max_options : max_repetitions;
    if (++used > most)
      fault_ = fmt::format("more than {} times {}", most, operation == '?' ? "?" : "* + or {}");
    if (operation == '{') refuse_large_counts();
    if (next() == '?') ++at_;  // the lazy form of the same repetition
  }

  void refuse_large_counts() {
    std::size_t digits = 0;
    while (at_ + 1 < pattern_.size() && pattern_[at_] != '}') {
      ++at_;
      digits = is_digit(pattern_[at_]) ? digits + 1 : 0;
      if (digits > max_count_digits) fault_ = "a repetition of 100 or more";
    }
  }

  std::string_view pattern_;
  std::size_t at_ = 0;
  std::vector<bool> ambiguous_{false};  // per open group; the first is the whole pattern
  bool after_ambiguous_group_ = false;
  int repetitions_ = 0;
  int options_ = 0;
  std::optional<std::string> fault_;
};

}  // namespace

std::optional<std::string> name_pattern_fault(std::string_view pattern) {
  if (pattern.size() > max_length) return fmt::format("a pattern of {} characters", pattern.size());
  if (std::optional<std::string> fault = Scan(pattern).fault()) return fault;
  try {
    const std::regex compiled(pattern.begin(), pattern.end());
  } catch (const std::regex_error&) {
    return "an invalid regular expression";
  }
  return std::nullopt;
}

}  // namespace isthmus

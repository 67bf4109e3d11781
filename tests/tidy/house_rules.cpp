#include "tests/tidy/house_rules.hpp"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

namespace isthmus::tidy {
namespace {

constexpr std::size_t max_header_lines = 300;
constexpr std::size_t max_source_lines = 500;
constexpr std::size_t max_function_lines = 70;
constexpr std::size_t max_line_length = 110;
constexpr std::size_t min_opening_comment = 3;
constexpr std::size_t max_opening_comment = 15;

/// What each module may include besides itself. Folders that are no modules (tests, bench) may include
/// everything.
const std::map<std::string, std::set<std::string>>& allowed_includes() {
  static const std::map<std::string, std::set<std::string>> allowed{
      {"model", {}},
      {"planner", {"model"}},
      {"sim", {"model", "planner"}},
      {"report", {"model", "planner", "sim", "hw"}},
      {"hw", {"model", "planner"}},
      {"cli", {"model", "planner", "sim", "report", "hw"}},
  };
  return allowed;
}

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_header(std::string_view path) { return path.ends_with(".hpp") || path.ends_with(".cuh"); }

/// Characters, not bytes: continuation bytes of UTF-8 do not count.
std::size_t length(std::string_view line) {
  const auto starts = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  return static_cast<std::size_t>(std::count_if(line.begin(), line.end(), starts));
}

class Judge {
 public:
  Judge(std::string_view path, std::string_view text) : path_(path), text_(text), lines_(split_lines(text)) {}

  std::vector<Finding> violations() {
    check_sizes();
    check_words();
    check_includes();
    if (is_header(path_)) check_opening();
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const Finding& a, const Finding& b) { return a.line < b.line; });
    return std::move(findings_);
  }

 private:
  void report(std::size_t line, std::string message) { findings_.push_back({line, std::move(message)}); }

  void limit(std::size_t line, const std::string& what, std::size_t size, std::size_t max) {
    if (size > max) report(line, what + ": " + std::to_string(size) + ", at most " + std::to_string(max));
  }

  void check_sizes() {
    limit(lines_.size(), "lines of the file", lines_.size(),
          is_header(path_) ? max_header_lines : max_source_lines);
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      limit(i + 1, "characters of the line", length(lines_[i]), max_line_length);
    }
    for (const auto& [first, last] : functions(text_)) {
      limit(first, "lines of the function", last - first + 1, max_function_lines);
    }
  }

  void check_words() {
    static const std::regex unfinished(
        "\\b(TO"
        "DO|FIX"
        "ME|XX"
        "X|HA"
        "CK)\\b");
    static const std::regex shared(R"(\b(shared_ptr|make_shared)\b)");
    static const std::regex allocation(R"(\bnew\b)");
    const std::vector<std::string> code = split_lines(code_only(text_));
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (std::regex_search(lines_[i], unfinished)) report(i + 1, "mark of unfinished work");
      if (std::regex_search(code[i], shared)) report(i + 1, "shared pointer");
      if (std::regex_search(code[i], allocation)) report(i + 1, "raw new");
    }
  }

  void check_includes() {
    static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"])");
    const std::string folder = path_.substr(0, path_.find('/'));
    const auto module = allowed_includes().find(folder);
    std::smatch match;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (!std::regex_search(lines_[i], match, include)) continue;
      const std::string header = match[2];
      if (is_header(path_) && header.starts_with("boost/graph/")) report(i + 1, "Boost.Graph in a header");
      if (match[1] != "\"") continue;
      const std::string other = header.substr(0, header.find('/'));
      if (!header.ends_with(".hpp") && !header.ends_with(".cuh"))
        report(i + 1, "include of something else than a header");
      if (other == header || other.starts_with('.')) report(i + 1, "include not named from the project root");
      if (module != allowed_includes().end() && other != folder && !module->second.contains(other)) {
        report(i + 1, folder + " may not include " + header);
      }
    }
  }

  void check_opening() {
    if (std::find(lines_.begin(), lines_.end(), "#pragma once") == lines_.end())
      report(1, "#pragma once is missing");
    auto line = lines_.begin();
    while (line != lines_.end() && (line->empty() || *line == "#pragma once")) ++line;
    const auto end =
        std::find_if_not(line, lines_.end(), [](const std::string& l) { return l.starts_with("//"); });
    const auto size = static_cast<std::size_t>(end - line);
    if (size < min_opening_comment) report(1, "opening comment of less than 3 lines");
    limit(1, "lines of the opening comment", size, max_opening_comment);
  }

  std::string path_;
  std::string_view text_;
  std::vector<std::string> lines_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> find_violations(std::string_view path, std::string_view text) {
  return Judge(path, text).violations();
}

std::vector<std::string> defined_types(std::string_view text) {
  static const std::regex opens(R"(^(inline )?namespace( [A-Za-z_:]+)? \{$)");
  static const std::regex closes(R"(^\}  // namespace)");
  static const std::regex type(
      R"(^(struct|class|enum class|enum|union) ([A-Za-z_]\w*)( final)?( : [^;]*)? \{)");
  std::vector<std::string> scopes, types;
  for (const std::string& line : split_lines(text)) {
    std::smatch match;
    if (std::regex_search(line, match, opens)) {
      scopes.push_back(match[2].matched ? match[2].str().substr(1) : std::string());
    } else if (std::regex_search(line, closes)) {
      if (!scopes.empty()) scopes.pop_back();
    } else if (std::regex_search(line, match, type)) {
      std::string name;
      for (const std::string& scope : scopes) name += scope + "::";
      const bool local = std::find(scopes.begin(), scopes.end(), "") != scopes.end();
      if (!local) types.push_back(name + match[2].str());
    }
  }
  return types;
}

}  // namespace isthmus::tidy

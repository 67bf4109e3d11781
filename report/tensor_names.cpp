#include "report/tensor_names.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace isthmus::report {
namespace {

constexpr std::string_view experts = ".experts.";

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

/// Without the number of an expert; empty where there is none.
std::string stacked_name(std::string_view name) {
  const std::size_t at = name.find(experts);
  if (at == std::string_view::npos) return "";
  const std::size_t digits = at + experts.size();
  const std::size_t end = name.find_first_not_of("0123456789", digits);
  if (end == digits || end == std::string_view::npos || name[end] != '.') return "";
  return std::string(name.substr(0, digits)) + std::string(name.substr(end + 1));
}

}  // namespace

TensorNames::TensorNames(const Refit& refit) {
  for (std::uint32_t t = 0; t < refit.tensors.size(); ++t)
    names_.try_emplace(refit.tensors[t].tensor.name, TensorId{t});
}

std::optional<TensorId> TensorNames::find(std::string_view name) const {
  if (const auto found = names_.find(name); found != names_.end()) return found->second;
  const std::string stacked = stacked_name(name);
  const auto found = names_.find(stacked);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<TensorId> TensorNames::find_in(std::string_view text) const {
  std::optional<TensorId> best;
  std::size_t longest = 0;
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), in_word);
    const auto end = std::find_if_not(begin, text.end(), in_word);
    const std::string_view word(text.data() + (begin - text.begin()), static_cast<std::size_t>(end - begin));
    begin = end;
    if (word.size() <= longest) continue;
    if (const std::optional<TensorId> found = find(word)) {
      best = found;
      longest = word.size();
    }
  }
  return best;
}

}  // namespace isthmus::report

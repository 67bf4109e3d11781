#pragma once
// Finds the tensor that a text speaks of, such as the name of a profiler's range: the longest word in it that
// names one. Words are runs of letters, digits, '_', '-' and '.'. The name of an expert's tensor
// ("...experts.17.gate_proj.weight") stands for the stacked one. Of equal names the first tensor counts.

#include <optional>
#include <string_view>
#include <unordered_map>

#include "model/refit.hpp"

namespace isthmus::report {

class TensorNames {
 public:
  /// The refit must outlive it.
  explicit TensorNames(const Refit& refit);

  /// The tensor of exactly this name.
  std::optional<TensorId> find(std::string_view name) const;
  /// The one that a text names.
  std::optional<TensorId> find_in(std::string_view text) const;

 private:
  std::unordered_map<std::string_view, TensorId> names_;
};

}  // namespace isthmus::report

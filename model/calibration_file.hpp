#pragma once
// Where a calibration stands, and how one of its constants is read: for the readers of its parts.
// Invariant: every reader finds the same file by the same name, and every constant has the four keys value,
// interval, provenance and source.

#include <filesystem>
#include <optional>
#include <string_view>

#include "model/calibration.hpp"
#include "model/yaml.hpp"

namespace isthmus {

/// The name that needs no file.
inline constexpr std::string_view built_in_calibration = "wire-only";
/// The mapping that model/membership_costs.hpp reads.
inline constexpr std::string_view membership_key = "membership";

/// nullopt where there is none. A name that ends in .yaml is a path, whether or not it is there.
std::optional<std::filesystem::path> find_calibration(std::string_view name,
                                                      const std::filesystem::path& scenario_directory);
/// `unit`: as in ConstantField.
Constant read_constant(const YamlValue& entry, std::string_view unit);

}  // namespace isthmus

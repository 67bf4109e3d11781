#pragma once
// Internal to the readers of scenarios, recipes and configurations: limits, and the parts that read the two
// sides and bare tensors. The limits bound what a file can make the reader allocate; they are far above
// real machines.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario.hpp"
#include "model/yaml.hpp"

namespace isthmus {

inline constexpr std::int64_t max_gpus = 1'048'576;  // also hosts, ranks and parallel sizes
inline constexpr std::int64_t max_layers = 100'000;
inline constexpr std::int64_t max_in_flight = 1'024;  // streams, buffers
inline constexpr std::size_t max_tensors = 100'000;
inline constexpr std::size_t max_published = 1'000;
inline constexpr std::size_t max_alternatives = 100;
inline constexpr std::size_t max_name_patterns = 100;
inline constexpr std::size_t max_stages = 10'000;
inline constexpr std::size_t max_mesh_axes = 8;
inline constexpr std::size_t max_holders = 4'096;  // sources of one bare tensor
inline constexpr std::size_t max_slots = 65'536;
inline constexpr std::int64_t max_mesh_positions = 4'194'304;  // over all meshes of a scenario
inline constexpr std::int64_t max_tensor_bytes = std::int64_t{1} << 60;

/// A whole number from 1 to `most`.
int read_count(const YamlValue& value, std::int64_t most = max_gpus);
/// The same below `key`; nothing changes when it is missing.
void read_count(const YamlValue& mapping, std::string_view key, int& into, std::int64_t most = max_gpus);
void read_count(const YamlValue& mapping, std::string_view key, std::optional<int>& into,
                std::int64_t most = max_gpus);

ModelSpec read_model(const YamlValue& value);
BulkRule read_bulk(const YamlValue& value);
/// All of `refit` but bulk and streams.
RefitSpec read_refit_rest(const YamlValue& value);
TrainSpec read_train(const YamlValue& value);
GenerateSpec read_generate(const YamlValue& value);

/// Names of policies and calibrations: what may also stand in file names and on the command line.
bool is_name(std::string_view text);

std::vector<Published> read_published_rows(const YamlValue& value);
/// One item of the list `published`, as it reads back.
std::string published_yaml(const Published& row);

/// `tensor`, `source`, `target` of the root, or the items of `tensors`.
std::vector<TensorSpec> read_tensors(const YamlValue& root);

}  // namespace isthmus

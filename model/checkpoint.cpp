#include "model/checkpoint.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/json_file.hpp"
#include "model/stored_tensors.hpp"
#include "model/tensor_name.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_list_bytes = std::size_t{512}
                                       << 20;            // manifests and indexes of half a million tensors
constexpr std::uint64_t max_header_bytes = 100'000'000;  // as the safetensors library
constexpr std::size_t max_shards = 100'000;

// The library's forms without an error code throw for a folder that may not be looked into.
bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

const nlohmann::json& member(const nlohmann::json& entry, const char* key, const Location& where) {
  if (!entry.is_object()) throw InputError(where, describe(entry), "an object with shape and dtype");
  const auto found = entry.find(key);
  if (found == entry.end()) throw InputError(where, fmt::format("no {}", key), "shape and dtype");
  return *found;
}

std::vector<std::int64_t> read_shape(const nlohmann::json& entry, const Location& where) {
  const nlohmann::json& shape = member(entry, "shape", where);
  constexpr std::size_t most = 8;
  const bool integers = shape.is_array() && shape.size() <= most &&
                        std::all_of(shape.begin(), shape.end(), [](const nlohmann::json& extent) {
                          return extent.is_number_unsigned() && extent.get<std::uint64_t>() < std::uint64_t{1}
                                                                                                  << 60;
                        });
  if (!integers) {
    throw InputError(where, fmt::format("shape {}", describe(shape)),
                     fmt::format("a list of at most {} whole numbers", most));
  }
  return shape.get<std::vector<std::int64_t>>();
}

StoredTensor read_entry(const std::string& name, const nlohmann::json& entry, const std::string& file) {
  const Location where{file, 0, printable(name)};
  StoredTensor tensor{name, read_shape(entry, where), Dtype::bf16};
  const nlohmann::json& dtype = member(entry, "dtype", where);
  const auto known = dtype.is_string() ? parse_stored_dtype(dtype.get<std::string>()) : std::nullopt;
  if (!known) {
    throw InputError(where, fmt::format("dtype {}", describe(dtype)),
                     "BF16, F16, F32, F64, F8_E4M3, F8_E5M2, or their torch names");
  }
  tensor.dtype = *known;
  return tensor;
}

std::vector<StoredTensor> read_entries(const nlohmann::json& json, const std::string& file) {
  if (!json.is_object()) throw InputError({file, 1, ""}, describe(json), "an object: name -> shape, dtype");
  std::vector<StoredTensor> tensors;
  for (const auto& [name, entry] : json.items()) {
    if (name != "__metadata__") tensors.push_back(read_entry(name, entry, file));
  }
  return tensors;
}

/// A tensor's bytes within the data.
struct Place {
  std::uint64_t begin = 0, end = 0;
  std::string name;
};

Place read_place(const StoredTensor& tensor, const nlohmann::json& entry, std::uint64_t data_bytes,
                 const std::string& file) {
  const Location where{file, 0, printable(tensor.name)};
  const nlohmann::json& offsets = member(entry, "data_offsets", where);
  const bool pair = offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
                    offsets[1].is_number_unsigned();
  if (!pair) throw InputError(where, fmt::format("data_offsets {}", describe(offsets)), "[begin, end]");
  Place place{offsets[0].get<std::uint64_t>(), offsets[1].get<std::uint64_t>(), tensor.name};
  if (place.begin > place.end || place.end > data_bytes) {
    throw InputError(where, fmt::format("bytes {} to {}", place.begin, place.end),
                     fmt::format("an ascending range within the {} bytes of data", data_bytes));
  }
  Uint128 needed = static_cast<Uint128>(element_size(tensor.dtype).value);
  for (const std::int64_t extent : tensor.shape) {
    needed *= static_cast<Uint128>(extent);
    if (needed > data_bytes) break;  // before it overflows
  }
  if (needed != place.end - place.begin) {
    throw InputError(where, fmt::format("{} bytes for its shape and dtype", place.end - place.begin),
                     needed > data_bytes ? "more than the file has"
                                         : fmt::format("{}", static_cast<std::uint64_t>(needed)));
  }
  return place;
}

void require_exact_cover(std::vector<Place> places, std::uint64_t data_bytes, const std::string& file) {
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  places.push_back({data_bytes, data_bytes, "the end of the file"});
  std::uint64_t covered = 0;
  for (const Place& place : places) {
    if (place.begin != covered) {
      const char* what =
          place.begin < covered ? "bytes {} to {} belong to two tensors" : "bytes {} to {} belong to none";
      throw InputError(
          {file, 0, printable(place.name)},
          fmt::format(fmt::runtime(what), std::min(covered, place.begin), std::max(covered, place.begin)),
          "tensors one after the other");
    }
    covered = place.end;
  }
}

// The header's text. Allocates only what the file can hold.
std::string read_header(const fs::path& path, std::uint64_t file_bytes) {
  const std::string file = path.string();
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 8> length_bytes{};
  if (!stream.read(length_bytes.data(), length_bytes.size())) {
    throw InputError({file, 0, ""}, "less than 8 bytes, or unreadable", "a safetensors file");
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < 8; ++i)
    length |= std::uint64_t{static_cast<unsigned char>(length_bytes[i])} << (8 * i);
  if (length > file_bytes - 8 || length > max_header_bytes) {
    const bool pointer = std::string_view(length_bytes.data(), 8) == "version ";
    throw InputError({file, 0, ""},
                     fmt::format("a header of {} bytes{}", length, pointer ? ", a git-lfs pointer" : ""),
                     fmt::format("at most {}", std::min(file_bytes - 8, max_header_bytes)));
  }
  std::string header(length, '\0');
  if (!stream.read(header.data(), static_cast<std::streamsize>(length))) {
    throw InputError({file, 0, ""}, "a file that ends within its header", "a safetensors file");
  }
  return header;
}

std::vector<StoredTensor> read_safetensors(const fs::path& path) {
  const std::string file = path.string();
  std::error_code error;
  const std::uint64_t file_bytes = fs::file_size(path, error);
  if (error) throw InputError({file, 0, ""}, fmt::format("cannot be read: {}", error.message()));
  if (file_bytes < 8)
    throw InputError({file, 0, ""}, fmt::format("{} bytes", file_bytes), "a safetensors file");
  const std::string header = read_header(path, file_bytes);
  const nlohmann::json json = parse_json(header, file);
  const std::uint64_t data_bytes = file_bytes - 8 - header.size();
  std::vector<StoredTensor> tensors = read_entries(json, file);
  std::vector<Place> places;
  places.reserve(tensors.size());
  for (const StoredTensor& tensor : tensors) {
    places.push_back(read_place(tensor, json.at(tensor.name), data_bytes, file));
  }
  require_exact_cover(std::move(places), data_bytes, file);
  return tensors;
}

/// shard -> the tensors that the index puts there
std::map<std::string, std::vector<std::string>> read_weight_map(const nlohmann::json& index,
                                                                const std::string& file) {
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (map == index.end() || !map->is_object() || map->empty()) {
    throw InputError({file, 0, "weight_map"}, "nothing", "an object: tensor -> shard");
  }
  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [name, shard] : map->items()) {
    const std::string text = shard.is_string() ? shard.get<std::string>() : "";
    const fs::path path(text);
    if (path.extension() != ".safetensors" || path.filename() != path) {
      throw InputError({file, 0, "weight_map." + printable(name)}, describe(shard),
                       "a .safetensors file beside the index");
    }
    shards[text].push_back(name);
  }
  if (shards.size() > max_shards)
    throw InputError({file, 0, "weight_map"}, "too many shards", std::to_string(max_shards));
  return shards;
}

std::vector<StoredTensor> read_index(const fs::path& path, const nlohmann::json& index) {
  std::vector<StoredTensor> tensors;
  for (auto& [shard, names] : read_weight_map(index, path.string())) {
    const fs::path file = path.parent_path() / shard;
    std::vector<StoredTensor> stored = read_safetensors(file);
    const auto by_name = [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; };
    std::sort(stored.begin(), stored.end(), by_name);
    std::sort(names.begin(), names.end());
    for (std::size_t i = 0; i < std::max(stored.size(), names.size()); ++i) {
      if (i < stored.size() && i < names.size() && stored[i].name == names[i]) continue;
      const bool missing = i >= stored.size() || (i < names.size() && names[i] < stored[i].name);
      throw InputError({file.string(), 0, printable(missing ? names[i] : stored[i].name)},
                       missing ? "the index puts the tensor here, the shard lacks it"
                               : "the shard holds the tensor, the index does not put it here");
    }
    std::move(stored.begin(), stored.end(), std::back_inserter(tensors));
  }
  return tensors;
}

/// Files of a folder whose name ends so, sorted.
std::vector<fs::path> files_ending(const fs::path& folder, std::string_view suffix) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().filename().string().ends_with(suffix)) files.push_back(entry->path());
  }
  if (error) throw InputError({folder.string(), 0, ""}, fmt::format("cannot be read: {}", error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

nlohmann::json read_json(const fs::path& path) {
  return parse_json(read_text(path, max_list_bytes), path.string());
}

std::vector<StoredTensor> read_folder(const fs::path& folder) {
  const std::vector<fs::path> indexes = files_ending(folder, ".safetensors.index.json");
  if (indexes.size() > 1) {
    throw InputError({folder.string(), 0, ""}, fmt::format("{} index files", indexes.size()),
                     "one; name the one meant");
  }
  if (indexes.size() == 1) return read_index(indexes.front(), read_json(indexes.front()));
  std::vector<StoredTensor> tensors;
  for (const fs::path& file : files_ending(folder, ".safetensors")) {
    std::vector<StoredTensor> stored = read_safetensors(file);
    std::move(stored.begin(), stored.end(), std::back_inserter(tensors));
  }
  if (tensors.empty()) throw InputError({folder.string(), 0, ""}, "no .safetensors files", "a checkpoint");
  return tensors;
}

// The folder's name for model.safetensors and its index, else the file's.
std::string name_of(const fs::path& path) {
  const fs::path full = fs::absolute(path).lexically_normal();
  if (is_folder(full)) return (full.has_filename() ? full : full.parent_path()).filename().string();
  const std::string file = full.filename().string();
  return file.starts_with("model.safetensors") ? full.parent_path().filename().string()
                                               : full.stem().string();
}

Inventory from_manifest(const fs::path& file, const nlohmann::json& json) {
  return group_tensors(read_entries(json, file.string()), file.string(), name_of(file));
}

}  // namespace

Inventory read_manifest(const fs::path& file) { return from_manifest(file, read_json(file)); }

Inventory read_checkpoint(const fs::path& path) {
  const auto read = [&] {
    if (is_folder(path)) return read_folder(path);
    return path.extension() == ".json" ? read_index(path, read_json(path)) : read_safetensors(path);
  };
  return group_tensors(read(), path.string(), name_of(path));
}

Inventory read_inventory(const fs::path& path) {
  if (path.extension() == ".safetensors") return read_checkpoint(path);
  if (is_folder(path)) {
    const bool stored = !files_ending(path, ".safetensors").empty();
    return stored || !is_file(path / "config.json") ? read_checkpoint(path)
                                                    : read_model_config(path / "config.json");
  }
  const nlohmann::json json = read_json(path);
  if (json.is_object() && json.contains("weight_map"))
    return group_tensors(read_index(path, json), path.string(), name_of(path));
  return json.is_object() && json.contains("model_type") ? read_model_config(path)
                                                         : from_manifest(path, json);
}

}  // namespace isthmus

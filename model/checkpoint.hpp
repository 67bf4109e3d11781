#pragma once
// Inventories of models that no family covers, read from what lists their tensors:
//   manifest    JSON: {name: {"shape": [...], "dtype": "BF16"}, ...}; other keys of an entry are ignored
//   checkpoint  safetensors: 8 bytes header length (little endian), a JSON header, the data, which is never
//   read
// Invariant: a header is believed only as far as the file's size bears it out: its length, and every tensor's
// place, which must fit its shape and dtype; together the tensors cover the data exactly, without overlap.
// Names, shapes and dtypes become patterns by model/stored_tensors.hpp.

#include <filesystem>

#include "model/inventory.hpp"

namespace isthmus {

Inventory read_manifest(const std::filesystem::path& file);

/// `path`: a .safetensors file, an index (JSON with weight_map) whose shards lie beside it, or a folder with
/// either.
Inventory read_checkpoint(const std::filesystem::path& path);

/// Whatever `path` is: a config.json, a manifest, a checkpoint, or a folder with a checkpoint or a
/// config.json. In a folder with both the checkpoint counts, as its shapes are facts.
Inventory read_inventory(const std::filesystem::path& path);

}  // namespace isthmus

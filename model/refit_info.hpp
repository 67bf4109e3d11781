#pragma once
// NeMo RL's description of a reshard refit (`nccl_reshard_refit_info`) as plain data, and the local maps that
// go with it: for each rank, which box of which global tensor lies where in which live buffer. The JSON of
// both is in docs/refit-info.md. What the values must satisfy is judged by model/refit_info_faults.hpp, not
// here: a RefitInfo may describe a wrong refit.
// Ranks: meshes speak of group ranks. The group of stage s has n = train_world_size / pp_size training ranks
// 0 ... n - 1 (global s n + r), then all generation ranks n ... n + gen_world_size - 1. Local maps count the
// ranks of their side from 0.
// Invariant: counts, shapes, strides and products fit the limits of model/scenario_reader.hpp. Layouts have
// the chunk rule `ceil`, that of NeMo RL's exact transport; it is `even` where the shards divide.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/error.hpp"
#include "model/layout.hpp"

namespace isthmus {

inline constexpr std::size_t max_local_entries = 4'194'304;  // of all maps together
inline constexpr std::size_t max_entries_per_base = 4'096;

/// One entry of per_layer_params.
struct BulkTensor {
  std::string name;
  std::string layer;      // the entry of layer_names it stands under
  Layout source, target;  // group ranks; same shape and dtype
  std::vector<std::string> source_axes,
      target_axes;                    // names of the mesh axes by dim_map; "" where it has none
  std::optional<std::int64_t> stage;  // pp_stage
  std::string projection;             // grouped_expert_proj; empty for other tensors
  Location where;
};

/// One entry of misc_meta.
struct MiscTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  Dtype dtype = Dtype::bf16;
  Location where;
};

enum class Side : std::uint8_t { train, generate };
std::string_view to_string(Side side);  // "training", "generation"

/// The scales that go with a base of quantised values.
struct ScaleBuffer {
  std::vector<std::int64_t> shape;
  std::optional<Dtype> dtype;
  friend bool operator==(const ScaleBuffer&, const ScaleBuffer&) = default;
};

/// A live buffer, as a strided view.
struct LocalBase {
  std::string name;
  std::vector<std::int64_t> shape, strides;  // in elements
  std::optional<Dtype> dtype;                // unset: the tensor's
  std::string storage = "canonical";         // how the backend keeps the values: docs/refit-info.md
  std::optional<ScaleBuffer> scale;
  friend bool operator==(const LocalBase&, const LocalBase&) = default;
};

/// The rank receives (sends) `before`, a box of the tensor's global indices, in `after`, a box of the base.
struct LocalEntry {
  std::string tensor;
  std::uint32_t base = 0;  // in LocalMap::bases
  Region before, after;
  int line = 0;
};

/// A name of this rank that is filled from another one, such as an output layer tied to the embedding.
struct Tie {
  std::string name, source;
};

struct LocalMap {
  Side side = Side::generate;
  std::int64_t rank = 0;         // within its side
  std::vector<LocalBase> bases;  // distinct; a name that stands twice is described in two ways
  std::vector<LocalEntry> entries;
  std::optional<std::size_t> misc_order;  // in LocalMaps::misc_orders
  std::vector<Tie> ties;
  Location where;
  /// Of the entry with this number.
  Location at(std::size_t entry) const;
};

struct LocalMaps {
  std::vector<LocalMap> maps;
  std::vector<std::vector<std::string>> misc_orders;  // names in the order of transfer; distinct
};

struct RefitInfo {
  std::vector<std::string> layer_names;
  std::vector<BulkTensor> tensors;  // in transfer order: by layer_names, then as recorded
  std::vector<MiscTensor> misc;     // in order
  std::int64_t train_ranks = 1, generate_ranks = 1, stages = 1, generate_tp = 1;
  LocalMaps local;
  std::vector<std::string> notes;  // keys that this reader does not know, spellings that it settled
  std::filesystem::path file;
  std::string key;  // of the description in the file; empty when it is the root

  /// Training ranks of a stage; requires a stage count that divides.
  std::int64_t stage_ranks() const { return train_ranks / stages; }
  /// Where a key of the description stands.
  Location at(std::string_view name) const;
};

/// The description, and the local maps when both are in one file. `file` names the text in messages.
RefitInfo parse_refit_info(const std::string& text, const std::filesystem::path& file);
/// Adds the maps of a text: one map, a list of them, or {"local_maps": [...]}.
void parse_local_maps(const std::string& text, const std::filesystem::path& file, LocalMaps& into);
/// `path`: a file of local maps, or a folder whose .json files are all read, in the order of their names.
void read_local_maps(const std::filesystem::path& path, LocalMaps& into);

/// As parse_refit_info when the text is JSON with the keys of such a description; nullopt when it is anything
/// else.
std::optional<RefitInfo> find_refit_info(const std::string& text, const std::filesystem::path& file);

}  // namespace isthmus

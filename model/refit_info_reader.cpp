#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/refit_info.hpp"
#include "model/refit_info_values.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {

void add_local_maps(const JsonValue& value, LocalMaps& into);  // local_map_reader.cpp

namespace {

constexpr std::string_view wrapper = "nccl_reshard_refit_info";
constexpr std::size_t max_misc = 1'000'000;  // scales of experts travel one by one

/// What goes on from tensor to tensor.
struct Reader {
  RefitInfo& info;
  std::int64_t positions = 0;                // of all meshes so far
  std::map<std::string, std::size_t> notes;  // by text: how often
};

/// NeMo RL may add keys of its own: they are named, not refused.
void note_unknown_keys(const JsonValue& value, std::initializer_list<std::string_view> known,
                       std::string_view what, Reader& reader) {
  for (const JsonValue& item : value.items(max_tensors, "an object")) {
    if (std::find(known.begin(), known.end(), item.key()) != known.end()) continue;
    ++reader.notes[fmt::format("the key '{}' of {} is not known here and not judged", printable(item.key()),
                               what)];
  }
}

std::vector<Placement> read_placements(const JsonValue& value, std::size_t dimensions, Reader& reader) {
  std::vector<Placement> placements;
  for (const JsonValue& item : value.items(max_mesh_axes, "a list of placements, one per mesh axis")) {
    WrittenPlacement written = read_written_placement(item);
    if (written.shard && written.dimension < 0) {
      written.dimension += static_cast<std::int64_t>(dimensions);
      ++reader.notes
            ["dimensions of placements below 0 count from the end, as in torch; NeMo RL's golden transport "
             "takes "
             "them for dimensions of their own"];
      // -1 would stand for a replica.
      if (written.dimension < 0) item.refuse("a dimension that the tensor does not have", "another one");
    }
    placements.push_back({written.shard ? static_cast<int>(written.dimension) : Placement::replicated});
  }
  return placements;
}

BulkTensor read_tensor(const JsonValue& value, const std::string& layer, Reader& reader) {
  note_unknown_keys(value,
                    {"name", "global_shape", "dtype", "src_mesh_info", "src_placements", "dst_mesh_info",
                     "dst_placements", "pp_stage", "grouped_expert_proj"},
                    "tensors", reader);
  BulkTensor tensor;
  tensor.where = value.where();
  tensor.layer = layer;
  const auto name = value.find("name");
  tensor.name =
      name || value.key().empty() ? value.at("name").text("a tensor's name") : printable(value.key(), 4096);
  Layout& source = tensor.source;
  source.chunk_rule = ChunkRule::ceil;
  source.dtype = read_dtype_name(value.at("dtype"));
  source.shape = read_extents(value.at("global_shape"), 1, element_size(source.dtype).value);
  tensor.target = source;
  NamedMesh source_mesh = read_named_mesh(value.at("src_mesh_info"), reader.positions);
  NamedMesh target_mesh = read_named_mesh(value.at("dst_mesh_info"), reader.positions);
  source.mesh = std::move(source_mesh.mesh);
  tensor.target.mesh = std::move(target_mesh.mesh);
  tensor.source_axes = std::move(source_mesh.axes);
  tensor.target_axes = std::move(target_mesh.axes);
  source.placements = read_placements(value.at("src_placements"), source.shape.size(), reader);
  tensor.target.placements = read_placements(value.at("dst_placements"), source.shape.size(), reader);
  const auto stage = value.find("pp_stage");
  if (stage && !stage->is_null()) tensor.stage = stage->integer(0, max_gpus);
  const auto projection = value.find("grouped_expert_proj");
  if (projection && !projection->is_null())
    tensor.projection = projection->text("gate_proj, up_proj or down_proj");
  return tensor;
}

MiscTensor make_misc(std::string name, const JsonValue& shape, const JsonValue& dtype, Location where) {
  MiscTensor tensor{std::move(name), shape.integers(16, 0, max_tensor_bytes), read_dtype_name(dtype),
                    std::move(where)};
  require_bounded(shape, tensor.shape, element_size(tensor.dtype).value);
  return tensor;
}

/// name: {"shape", "dtype"}; name: [shape, dtype]; or items of a list: {"name", ...}, [name, shape, dtype].
MiscTensor read_misc(const JsonValue& value) {
  constexpr std::string_view form = "{\"shape\": [...], \"dtype\": ...} or [shape, dtype]";
  const bool named = !value.key().empty();
  std::string key = named ? printable(value.key(), 4096) : "";
  if (value.is_object()) {
    if (!named) key = value.at("name").text("a tensor's name");
    return make_misc(std::move(key), value.at("shape"), value.at("dtype"), value.where());
  }
  const std::vector<JsonValue> parts = value.items(3, form);
  const std::size_t before = named ? 0 : 1;
  if (parts.size() != before + 2) value.refuse("another number of items", form);
  if (!named) key = parts[0].text("a tensor's name");
  return make_misc(std::move(key), parts[before], parts[before + 1], value.where());
}

void read_layers(const JsonValue& description, Reader& reader) {
  RefitInfo& info = reader.info;
  const JsonValue layers = description.at("per_layer_params");
  if (!layers.is_object()) layers.refuse("an object: layer name -> list of tensors");
  std::map<std::string_view, JsonValue> by_name;
  for (const JsonValue& layer : layers.items(max_tensors, "layers")) by_name.emplace(layer.key(), layer);
  std::set<std::string> seen;
  const auto add = [&](const std::string& name, const JsonValue& layer) {
    for (const JsonValue& tensor : layer.items(max_tensors, "a list of tensors")) {
      if (info.tensors.size() >= max_tensors)
        tensor.refuse("too many tensors", fmt::format("at most {}", max_tensors));
      info.tensors.push_back(read_tensor(tensor, name, reader));
    }
  };
  for (const JsonValue& item : description.at("layer_names").items(max_tensors, "a list of layer names")) {
    info.layer_names.push_back(item.text("a layer's name"));
    const std::string& name = info.layer_names.back();
    if (!seen.insert(name).second) item.refuse(fmt::format("'{}' twice", printable(name)), "each layer once");
    const auto layer = by_name.find(name);
    if (layer == by_name.end())
      item.refuse(fmt::format("'{}', which per_layer_params lacks", name), "its keys");
    add(name, layer->second);
  }
  for (const auto& [name, layer] : by_name) {
    if (!seen.contains(std::string(name)))
      throw InputError(layer.where(), "a layer that layer_names lacks", "every layer in layer_names");
  }
}

void read_description(const JsonValue& description, RefitInfo& info) {
  Reader reader{info, 0, {}};
  note_unknown_keys(description,
                    {"layer_names", "per_layer_params", "train_world_size", "gen_world_size", "pp_size",
                     "gen_tp_size", "misc_meta"},
                    "the refit info", reader);
  info.key = description.where().key;
  info.train_ranks = description.at("train_world_size").integer(1, max_gpus);
  info.generate_ranks = description.at("gen_world_size").integer(1, max_gpus);
  const auto stages = description.find("pp_size");
  if (stages && !stages->is_null()) info.stages = stages->integer(1, max_gpus);
  const auto tp = description.find("gen_tp_size");
  if (tp && !tp->is_null()) info.generate_tp = tp->integer(1, max_gpus);
  read_layers(description, reader);
  const auto misc = description.find("misc_meta");
  if (misc && !misc->is_null()) {
    for (const JsonValue& item : misc->items(max_misc, "an ordered object: name -> shape and dtype"))
      info.misc.push_back(read_misc(item));
  }
  for (const auto& [text, count] : reader.notes) {
    info.notes.push_back(count == 1 ? text : fmt::format("{} ({} times)", text, count));
  }
}

bool has_content(const JsonValue& root) { return root.find(wrapper) || root.find("per_layer_params"); }

RefitInfo read_root(const JsonValue& root, const std::filesystem::path& file) {
  RefitInfo info;
  info.file = file;
  const auto inner = root.find(wrapper);
  if (inner) root.allow_only({wrapper, "local_maps"});
  if (!has_content(root)) root.refuse(fmt::format("an object with {} or per_layer_params", wrapper));
  read_description(inner ? *inner : root, info);
  const auto maps = inner ? root.find("local_maps") : std::nullopt;
  if (maps && !maps->is_null()) add_local_maps(*maps, info.local);
  return info;
}

}  // namespace

Location RefitInfo::at(std::string_view name) const {
  return {printable(file.string(), 4096), 0, fmt::format("{}{}{}", key, key.empty() ? "" : ".", name)};
}

std::string_view to_string(Side side) { return side == Side::train ? "training" : "generation"; }

RefitInfo parse_refit_info(const std::string& text, const std::filesystem::path& file) {
  const JsonTree tree(text, file.string());
  return read_root(tree.root(), file);
}

std::optional<RefitInfo> find_refit_info(const std::string& text, const std::filesystem::path& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || text[first] != '{') return std::nullopt;
  const bool named = text.find("\"per_layer_params\"") != std::string::npos ||
                     text.find("\"" + std::string(wrapper) + "\"") != std::string::npos;
  if (!named) return std::nullopt;
  const JsonTree tree(text, file.string());
  if (!has_content(tree.root())) return std::nullopt;
  return read_root(tree.root(), file);
}

}  // namespace isthmus

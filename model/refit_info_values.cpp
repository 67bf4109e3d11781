#include "model/refit_info_values.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "model/scenario_reader.hpp"
#include "model/tensor_name.hpp"

namespace isthmus {
namespace {

constexpr std::string_view placement_form =
    "replicated or shard(D) with the tensor's dimension, such as \"Shard(0)\" or {\"shard\": 0}";
constexpr std::string_view mesh_form =
    "{\"shape\": [...], \"ranks\": [...], \"dim_map\": {...}}, or nested lists of ranks";

/// In lower case, without blanks.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == ' ') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

bool is_replicated(std::string_view text) {
  return text == "replicate" || text == "replicate()" || text == "replicated" || text == "replicated()";
}

std::optional<std::int64_t> shard_of(std::string_view text) {
  for (const std::string_view word : {"sharded(", "shard("}) {
    if (!text.starts_with(word) || !text.ends_with(")")) continue;
    std::string_view inner = text.substr(word.size(), text.size() - word.size() - 1);
    if (inner.starts_with("dim=")) inner.remove_prefix(4);
    std::int64_t dimension = 0;
    const auto [stop, error] = std::from_chars(inner.data(), inner.data() + inner.size(), dimension);
    if (error == std::errc{} && stop == inner.data() + inner.size()) return dimension;
  }
  return std::nullopt;
}

WrittenPlacement read_placement_object(const JsonValue& value) {
  constexpr std::int64_t least = -1'000, most = 1'000;
  for (const std::string_view key : {"shard", "sharded"}) {
    if (const auto dimension = value.find(key)) return {true, dimension->integer(least, most)};
  }
  const auto type = value.find("type");
  if (!type) value.refuse(placement_form);
  const std::string name = plain(type->text(placement_form));
  if (is_replicated(name)) return {};
  if (name != "shard" && name != "sharded") type->refuse(placement_form);
  const auto dimension = value.find("dim");
  return {true, (dimension ? *dimension : value.at("dimension")).integer(least, most)};
}

/// The extents found on the way down to the first rank.
std::vector<std::int64_t> nested_shape(JsonValue value) {
  std::vector<std::int64_t> shape;
  while (value.is_list()) {
    if (shape.size() >= max_mesh_axes)
      value.refuse("deeper lists", fmt::format("a mesh of at most {} axes", max_mesh_axes));
    const std::vector<JsonValue> items = value.items(to_size(max_gpus), mesh_form);
    if (items.empty()) value.refuse("no rank", mesh_form);
    shape.push_back(static_cast<std::int64_t>(items.size()));
    value = items.front();
  }
  if (shape.empty()) value.refuse(mesh_form);
  return shape;
}

void append_ranks(const JsonValue& value, std::size_t depth, NamedMesh& named) {
  const std::vector<JsonValue> items = value.items(to_size(max_gpus), mesh_form);
  if (static_cast<std::int64_t>(items.size()) != named.mesh.shape[depth])
    value.refuse(fmt::format("a list of {} items beside one of {}", items.size(), named.mesh.shape[depth]),
                 mesh_form);
  for (const JsonValue& item : items) {
    if (depth + 1 < named.mesh.shape.size()) {
      append_ranks(item, depth + 1, named);
      continue;
    }
    if (named.mesh.ranks.size() >= to_size(max_gpus))
      value.refuse("a larger mesh", fmt::format("at most {} ranks", max_gpus));
    named.mesh.ranks.push_back({static_cast<std::uint32_t>(item.integer(0, 2 * max_gpus))});
  }
}

std::vector<std::string> read_axes(const JsonValue& value, std::size_t axes) {
  std::vector<std::string> names(axes);
  const std::vector<JsonValue> items = value.items(64, "{\"tp\": 1, ...}, the array axis of each name");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].is_null()) continue;
    if (value.is_list()) {
      if (i >= axes) value.refuse("more names than the mesh has axes", fmt::format("at most {}", axes));
      names[i] = items[i].text("the name of a mesh axis");
      continue;
    }
    const auto axis = items[i].integer(0, static_cast<std::int64_t>(axes) - 1);
    names[to_size(axis)] = std::string(items[i].key());
  }
  return names;
}

}  // namespace

Dtype read_dtype_name(const JsonValue& value) {
  constexpr std::string_view form = "a dtype such as bfloat16, float8_e4m3fn, float32 or uint8";
  const std::string name = value.text(form);
  if (const auto known = parse_dtype(name)) return *known;
  const auto stored = parse_stored_dtype(name);
  if (!stored) value.refuse(form);
  return *stored;
}

void require_bounded(const JsonValue& value, const std::vector<std::int64_t>& extents, std::int64_t bytes) {
  std::int64_t product = bytes;
  for (const std::int64_t extent : extents) {
    const std::int64_t factor = std::max<std::int64_t>(extent, 1);
    if (factor > max_tensor_bytes / product) value.refuse("a size above 2^60", "at most 2^60");
    product *= factor;
  }
}

std::vector<std::int64_t> read_extents(const JsonValue& value, std::int64_t least, std::int64_t bytes) {
  std::vector<std::int64_t> extents = value.integers(max_dimensions, least, max_tensor_bytes);
  if (extents.empty()) value.refuse("no dimension", fmt::format("1 to {} dimensions", max_dimensions));
  require_bounded(value, extents, bytes);
  return extents;
}

Region read_box(const JsonValue& value) {
  constexpr std::string_view form = "[[begin, end], ...], one pair per dimension, begin at most end";
  Region box;
  std::int64_t product = 1;
  for (const JsonValue& item : value.items(max_dimensions, form)) {
    const std::vector<std::int64_t> ends = item.integers(2, 0, max_tensor_bytes);
    if (ends.size() != 2 || ends[0] > ends[1]) item.refuse(fmt::format("[{}]", fmt::join(ends, ", ")), form);
    const std::int64_t extent = std::max<std::int64_t>(ends[1] - ends[0], 1);
    if (extent > max_tensor_bytes / product) value.refuse("a box of more than 2^60 elements", "at most 2^60");
    product *= extent;
    box.begin[box.dimensions] = ends[0];
    box.end[box.dimensions++] = ends[1];
  }
  if (box.dimensions == 0) value.refuse("no dimension", form);
  return box;
}

WrittenPlacement read_written_placement(const JsonValue& value) {
  if (value.is_null()) return {};
  if (value.is_object()) return read_placement_object(value);
  const std::string text = plain(value.text(placement_form));
  if (is_replicated(text)) return {};
  const auto dimension = shard_of(text);
  if (!dimension) value.refuse(placement_form);
  return {true, *dimension};
}

NamedMesh read_named_mesh(const JsonValue& value, std::int64_t& positions) {
  if (!value.is_list()) value.allow_only({"shape", "ranks", "mesh", "dim_map"});
  const auto mesh_key = value.find("mesh");
  const JsonValue ranks = value.is_list() ? value : mesh_key ? *mesh_key : value.at("ranks");
  NamedMesh named;
  named.mesh.shape = nested_shape(ranks);
  append_ranks(ranks, 0, named);
  if (const auto shape = value.find("shape")) {
    std::int64_t product = 1;
    const std::vector<std::int64_t> written = shape->integers(max_mesh_axes, 1, max_gpus);
    for (const std::int64_t extent : written) {
      product *= extent;
      if (product > max_gpus) shape->refuse("a larger mesh", fmt::format("at most {} ranks", max_gpus));
    }
    const bool flat = named.mesh.shape.size() == 1;
    if (written.empty() || (!flat && written != named.mesh.shape)) {
      shape->refuse("another shape than that of ranks", "the same shape");
    }
    named.mesh.shape = written;
  }
  positions += static_cast<std::int64_t>(named.mesh.size());
  if (positions > max_mesh_positions) {
    value.refuse("too many mesh positions", fmt::format("at most {} in all meshes", max_mesh_positions));
  }
  named.axes.resize(named.mesh.shape.size());
  const auto axes = value.find("dim_map");
  if (axes && !axes->is_null()) named.axes = read_axes(*axes, named.mesh.shape.size());
  return named;
}

}  // namespace isthmus

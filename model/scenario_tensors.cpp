// Reads bare tensors: one tensor with its two layouts, or a list of them.

#include <set>

#include <fmt/format.h>

#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

struct Reader {
  std::set<std::string> names;
  std::int64_t positions = 0;  // of all meshes so far
};

Dtype read_dtype(const YamlValue& value) {
  constexpr std::string_view form = "bf16, f16, f32, f64, fp8_e4m3, fp8_e5m2, u8, i8, i32 or i64";
  const std::optional<Dtype> dtype = parse_dtype(value.text(form));
  if (!dtype) value.refuse(form);
  return *dtype;
}

std::vector<std::int64_t> read_shape(const YamlValue& value, Dtype dtype) {
  std::vector<std::int64_t> shape;
  std::int64_t bytes = element_size(dtype).value;
  for (const YamlValue& item : value.items(max_dimensions)) {
    shape.push_back(item.integer(1, max_tensor_bytes));
    if (shape.back() > max_tensor_bytes / bytes)
      value.refuse("a tensor above 2^60 bytes", "at most 2^60 bytes");
    bytes *= shape.back();
  }
  return shape;
}

Placement read_placement(const YamlValue& value) {
  constexpr std::string_view form = "replicated or shard(0), with the tensor's dimension";
  const std::string text = value.text(form);
  if (text == "replicated") return {};
  for (int dimension = 0; dimension < static_cast<int>(max_dimensions); ++dimension) {
    if (text == to_string(Placement{dimension})) return {dimension};
  }
  value.refuse(form);
}

std::vector<std::int64_t> read_mesh_shape(const YamlValue& value, Reader& reader) {
  std::vector<std::int64_t> shape;
  std::int64_t positions = 1;
  for (const YamlValue& item : value.items(max_mesh_axes)) {
    shape.push_back(item.integer(1, max_gpus));
    positions *= shape.back();  // at most 2^20 x 2^20
    if (positions > max_gpus) {
      value.refuse(fmt::format("a mesh of more than {} ranks", max_gpus),
                   fmt::format("at most {}", max_gpus));
    }
  }
  reader.positions += positions;
  if (reader.positions > max_mesh_positions) {
    value.refuse("too many mesh positions", fmt::format("at most {} in all meshes", max_mesh_positions));
  }
  return shape;
}

Mesh read_mesh(const YamlValue& layout, Reader& reader) {
  std::vector<std::int64_t> shape = read_mesh_shape(layout.at("mesh"), reader);
  std::int64_t positions = 1;
  for (const std::int64_t extent : shape) positions *= extent;
  const auto first = layout.find("first_rank");
  const auto ranks = layout.find("ranks");
  if (first && ranks) ranks->refuse("ranks beside first_rank", "one of them");
  if (first) {
    const std::int64_t first_rank = first->integer(0, max_gpus - positions);
    return contiguous_mesh(std::move(shape), Rank{static_cast<std::uint32_t>(first_rank)});
  }
  if (!ranks) layout.refuse("neither first_rank nor ranks", "one of them");
  Mesh mesh{std::move(shape), {}};
  for (const std::int64_t rank : ranks->ranges(max_gpus))
    mesh.ranks.push_back({static_cast<std::uint32_t>(rank)});
  if (static_cast<std::int64_t>(mesh.size()) != positions) {
    ranks->refuse(fmt::format("{} ranks", mesh.size()), fmt::format("{}, one per mesh position", positions));
  }
  return mesh;
}

/// `frame`: extents that the shards cut; `origin`: where the tensor begins in them, zeros unless given.
void read_frame(const YamlValue& value, Layout& layout) {
  const auto extents = value.find("frame");
  const auto origins = value.find("origin");
  if (origins && !extents) origins->refuse("origin without frame", "frame: the extents that the shards cut");
  if (!extents) return;
  Frame frame{{}, std::vector<std::int64_t>(layout.shape.size(), 0)};
  for (const YamlValue& item : extents->items(max_dimensions))
    frame.extent.push_back(item.integer(1, max_tensor_bytes));
  if (origins) {
    frame.origin.clear();
    for (const YamlValue& item : origins->items(max_dimensions))
      frame.origin.push_back(item.integer(0, max_tensor_bytes));
  }
  layout.frame = std::move(frame);
}

Layout read_layout(const YamlValue& value, const std::vector<std::int64_t>& shape, Dtype dtype,
                   Reader& reader) {
  value.allow_only({"mesh", "first_rank", "ranks", "placements", "chunk_rule", "frame", "origin"});
  Layout layout;
  layout.shape = shape;
  layout.dtype = dtype;
  layout.mesh = read_mesh(value, reader);
  const YamlValue placements = value.at("placements");
  for (const YamlValue& item : placements.items(max_mesh_axes))
    layout.placements.push_back(read_placement(item));
  if (layout.placements.size() != layout.mesh.shape.size()) {
    placements.refuse(fmt::format("{} placements", layout.placements.size()),
                      fmt::format("{}, one per mesh axis", layout.mesh.shape.size()));
  }
  if (const auto rule = value.find("chunk_rule")) {
    constexpr std::string_view form = "even, ceil or balanced";
    const std::optional<ChunkRule> known = parse_chunk_rule(rule->text(form));
    if (!known) rule->refuse(form);
    layout.chunk_rule = *known;
  }
  read_frame(value, layout);
  const std::vector<std::string> found = faults(layout);
  if (!found.empty()) throw InputError(value.where(), found.front());
  return layout;
}

TensorSpec read_tensor(const YamlValue& parent, const std::string& default_name, Reader& reader) {
  const YamlValue tensor = parent.at("tensor");
  tensor.allow_only({"name", "shape", "dtype"});
  TensorSpec spec;
  const auto name = tensor.find("name");
  spec.name = name ? name->text("a name of one line") : default_name;
  if (!reader.names.insert(spec.name).second) {
    (name ? *name : tensor)
        .refuse(fmt::format("the name '{}' a second time", printable(spec.name)), "each name once");
  }
  const Dtype dtype = read_dtype(tensor.at("dtype"));
  const std::vector<std::int64_t> shape = read_shape(tensor.at("shape"), dtype);
  spec.source = read_layout(parent.at("source"), shape, dtype, reader);
  spec.target = read_layout(parent.at("target"), shape, dtype, reader);
  return spec;
}

}  // namespace

std::vector<TensorSpec> read_tensors(const YamlValue& root) {
  Reader reader;
  const auto list = root.find("tensors");
  if (!list) return {read_tensor(root, "tensor", reader)};
  for (const std::string_view key : {"tensor", "source", "target"}) {
    if (const auto single = root.find(key)) single->refuse("this key beside tensors", "one of the two forms");
  }
  std::vector<TensorSpec> tensors;
  for (const YamlValue& item : list->items(max_tensors)) {
    item.allow_only({"tensor", "source", "target"});
    tensors.push_back(read_tensor(item, fmt::format("tensor.{}", tensors.size()), reader));
  }
  return tensors;
}

}  // namespace isthmus

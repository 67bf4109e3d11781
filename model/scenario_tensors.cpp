// Reads bare tensors: one tensor with its two layouts, or a list of them.

#include <optional>
#include <set>
#include <string_view>

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

std::vector<std::int64_t> read_numbers(const YamlValue& value, std::size_t count, std::int64_t least,
                                       std::int64_t most) {
  std::vector<std::int64_t> numbers;
  for (const YamlValue& item : value.items(count)) numbers.push_back(item.integer(least, most));
  return numbers;
}

/// Where the shards of a side stand in a larger buffer. Unless given, a view is one block from the begin on.
FusedView read_view(const YamlValue& value) {
  value.allow_only({"base", "dimension", "offset", "block", "stride", "extent", "storage"});
  FusedView view;
  view.base = value.at("base").text("the name of the buffer that holds the shard");
  view.extent = value.at("extent").integer(1, max_tensor_bytes);
  view.block = view.extent;
  if (const auto dimension = value.find("dimension"))
    view.dimension = static_cast<int>(dimension->integer(0, max_dimensions - 1));
  if (const auto offset = value.find("offset")) view.offset = offset->integer(0, max_tensor_bytes);
  if (const auto block = value.find("block")) view.block = block->integer(1, max_tensor_bytes);
  view.stride = view.block;
  if (const auto stride = value.find("stride")) view.stride = stride->integer(1, max_tensor_bytes);
  if (const auto storage = value.find("storage"))
    view.storage = storage->text("a layout tag such as block128");
  return view;
}

/// One side of a tensor, with what it says beyond the layout.
struct Side {
  Layout layout;
  std::optional<FusedView> view;
  bool transformed = false;
  std::vector<std::int64_t> local_shape, slots;
};

Layout read_layout(const YamlValue& value, const Layout& tensor, Reader& reader) {
  Layout layout = tensor;
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
  return layout;
}

void require_layout(const YamlValue& value, const Layout& layout) {
  const std::vector<std::string> found = faults(layout);
  if (!found.empty()) value.refuse(found.front(), "a mesh and placements that fit the tensor");
}

void read_slots(const YamlValue& value, Side& side) {
  const auto slots = value.find("slots");
  if (!slots) return;
  if (value.find("frame")) slots->refuse("slots beside frame", "one of them: slots are the frame");
  if (side.view) slots->refuse("slots beside view", "one of them");
  side.slots = read_numbers(*slots, max_slots, 0, max_tensor_bytes);
}

Side read_side(const YamlValue& value, const Layout& tensor, bool source, Reader& reader) {
  std::vector<std::string_view> keys{"mesh",  "first_rank", "ranks", "placements", "chunk_rule",
                                     "frame", "origin",     "view",  "local_shape"};
  if (!source) keys.emplace_back("slots");
  value.allow_only(keys);
  Side side;
  side.layout = read_layout(value, tensor, reader);
  if (const auto view = value.find("view")) {
    side.transformed = source && !view->is_mapping();
    if (side.transformed && view->text("transformed, or a mapping with base and extent") != "transformed")
      view->refuse("transformed, or a mapping with base and extent");
    if (!side.transformed) side.view = read_view(*view);
  }
  if (const auto shape = value.find("local_shape"))
    side.local_shape = read_numbers(*shape, max_dimensions, 1, max_tensor_bytes);
  read_slots(value, side);
  Layout cut = side.layout;  // the slots are what the mesh cuts
  if (!side.slots.empty()) cut.shape[0] = static_cast<std::int64_t>(side.slots.size());
  require_layout(value, cut);
  return side;
}

/// One holder, or a list of them; then each has a layout only.
void read_source(const YamlValue& value, TensorSpec& spec, Reader& reader) {
  const Layout tensor = spec.source;
  if (!value.is_list()) {
    Side side = read_side(value, tensor, true, reader);
    spec.source = std::move(side.layout);
    spec.source_view = std::move(side.view);
    spec.claims.transformed = side.transformed;
    spec.claims.source_shape = std::move(side.local_shape);
    return;
  }
  std::vector<Layout> holders;
  for (const YamlValue& item : value.items(max_holders)) {
    item.allow_only({"mesh", "first_rank", "ranks", "placements", "chunk_rule", "frame", "origin"});
    holders.push_back(read_layout(item, tensor, reader));
    require_layout(item, holders.back());
  }
  spec.source = std::move(holders.front());
  holders.erase(holders.begin());
  spec.claims.other_sources = std::move(holders);
}

void read_target(const YamlValue& value, TensorSpec& spec, Reader& reader) {
  Side side = read_side(value, spec.target, false, reader);
  spec.target = std::move(side.layout);
  spec.target_view = std::move(side.view);
  spec.claims.target_shape = std::move(side.local_shape);
  spec.claims.slots = std::move(side.slots);
}

void read_claims(const YamlValue& parent, const YamlValue& tensor, TensorClaims& claims) {
  const auto source = parent.find("source");
  if (const auto replicas = tensor.find("replicas")) {
    claims.replicas = replicas->flag();
    if (!source || !source->is_list() || source->node().children.size() < 2)
      replicas->refuse("replicas without several sources", "it with source: [{...}, {...}] only");
  }
  if (const auto install = tensor.find("install")) claims.install = install->flag();
  if (const auto tie = tensor.find("tied_to")) {
    claims.tied_to = tie->text("the name of the tensor whose source it has");
    if (source) source->refuse("a source beside tied_to", "one of them");
  }
}

TensorSpec read_tensor(const YamlValue& parent, const std::string& default_name, Reader& reader) {
  const YamlValue tensor = parent.at("tensor");
  tensor.allow_only({"name", "shape", "dtype", "replicas", "tied_to", "install"});
  TensorSpec spec;
  const auto name = tensor.find("name");
  spec.name = name ? name->text("a name of one line") : default_name;
  if (!reader.names.insert(spec.name).second) {
    (name ? *name : tensor)
        .refuse(fmt::format("the name '{}' a second time", printable(spec.name)), "each name once");
  }
  const Dtype dtype = read_dtype(tensor.at("dtype"));
  spec.source.shape = spec.target.shape = read_shape(tensor.at("shape"), dtype);
  spec.source.dtype = spec.target.dtype = dtype;
  read_claims(parent, tensor, spec.claims);
  const auto source = parent.find("source"), target = parent.find("target");
  if (!source && !target) parent.refuse("neither source nor target", "both of them");
  if (source) read_source(*source, spec, reader);
  if (target) read_target(*target, spec, reader);
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

// What a plan was made for: the scenario and, of a whole model, every tensor with its layouts.

#include <set>

#include <nlohmann/json.hpp>

#include "model/error.hpp"
#include "model/placement.hpp"
#include "planner/plan_file.hpp"
#include "planner/plan_file_parts.hpp"

namespace isthmus::plan_file {
namespace {

constexpr std::size_t max_scenario_lines = 262'144;
constexpr std::size_t max_mesh_axes = 8;

/// The scenario, with the lines of its text as places in the plan file.
Scenario read_scenario_text(const JsonValue& value, const std::filesystem::path& file) {
  constexpr std::string_view form = "the scenario, a list of its lines (docs/scenario.md)";
  if (!value.is_list()) value.refuse(form);
  std::string text;
  std::vector<int> lines;
  for (const JsonValue& line : value.items(max_scenario_lines, form)) {
    text += line.text_or_empty("a line of the scenario, a text", max_text_bytes) + "\n";
    lines.push_back(line.line());
    if (text.size() > max_text_bytes) value.refuse("more than 4194304 bytes", form);
  }
  const auto line_of = [&](int line) {
    return line > 0 && to_size(line) <= lines.size() ? lines[to_size(line) - 1] : value.line();
  };
  const std::string name = printable(file.string(), 4096);
  try {
    Scenario scenario = parse_scenario(text, file);
    for (auto& [key, place] : scenario.locations) {
      if (place.file == name) place.line = line_of(place.line);
    }
    return scenario;
  } catch (const InputError& error) {
    const Location& where = error.where();
    const Location place{where.file, where.file == name ? line_of(where.line) : where.line, where.key};
    if (error.allowed().empty()) throw InputError(place, error.found());
    throw InputError(place, error.found(), error.allowed());
  }
}

Placement read_placement(const JsonValue& value) {
  constexpr std::string_view form = "replicated or shard(0), with the tensor's dimension";
  const std::string text = value.is_text() ? value.text_or_empty(form) : "";
  if (text == "replicated") return {};
  for (int dimension = 0; dimension < static_cast<int>(max_dimensions); ++dimension) {
    if (text == to_string(Placement{dimension})) return {dimension};
  }
  value.refuse(form);
}

class SubjectReader {
 public:
  SubjectReader(const JsonValue& root, Refit& refit) : root_(root), refit_(refit) {}

  void read() {
    for (const JsonValue& value : list_of(root_.at("geometries"), PlanFileLimits::geometries))
      read_geometry(value);
    for (const JsonValue& value : list_of(root_.at("tensors"), PlanFileLimits::tensors)) read_tensor(value);
  }

 private:
  void read_geometry(const JsonValue& value);
  Layout read_layout(const JsonValue& value, Layout layout);
  Mesh read_mesh(const JsonValue& layout);
  void read_tensor(const JsonValue& value);
  void require_ranks(const JsonValue& value, const Layout& layout, Rank base) const;
  void require_size(const JsonValue& value, const Layout& layout);

  JsonValue root_;
  Refit& refit_;
  Int128 bytes_ = 0;  // of all tensors on all their ranks
  std::int64_t positions_ = 0;
  std::set<std::string> names_;
};

Mesh SubjectReader::read_mesh(const JsonValue& layout) {
  const JsonValue value = layout.at("mesh");
  Mesh mesh{value.integers(max_mesh_axes, 1, PlanFileLimits::ranks), {}};
  std::int64_t positions = 1;
  for (const std::int64_t extent : mesh.shape) {
    positions *= extent;  // at most 2^20 x 2^20
    if (positions > PlanFileLimits::ranks)
      value.refuse("a larger mesh", fmt::format("at most {} ranks", PlanFileLimits::ranks));
  }
  positions_ += positions;
  if (positions_ > PlanFileLimits::mesh_positions) {
    value.refuse("too many mesh positions",
                 fmt::format("at most {} in all meshes", PlanFileLimits::mesh_positions));
  }
  const auto first = layout.find("first_rank");
  const auto ranks = layout.find("ranks");
  if (first.has_value() == ranks.has_value())
    layout.refuse("both or none of first_rank, ranks", "one of them");
  if (first) return contiguous_mesh(mesh.shape, {number(*first, 0, PlanFileLimits::ranks - positions)});
  for (const std::int64_t rank : ranks->integers(to_size(positions), 0, PlanFileLimits::ranks - 1))
    mesh.ranks.push_back({static_cast<std::uint32_t>(rank)});
  return mesh;
}

Layout SubjectReader::read_layout(const JsonValue& value, Layout layout) {
  value.allow_only({"mesh", "first_rank", "ranks", "placements", "chunk_rule", "frame", "origin"});
  layout.mesh = read_mesh(value);
  for (const JsonValue& placement : list_of(value.at("placements"), max_mesh_axes))
    layout.placements.push_back(read_placement(placement));
  layout.chunk_rule = named(value.at("chunk_rule"), ChunkRule::even, ChunkRule::balanced);
  const auto frame = value.find("frame"), origin = value.find("origin");
  if (frame.has_value() != origin.has_value())
    value.refuse("one of frame, origin", "both or none of frame and origin");
  if (frame) {
    layout.frame = Frame{frame->integers(max_dimensions, 1, PlanFileLimits::size),
                         origin->integers(max_dimensions, 0, PlanFileLimits::size)};
  }
  if (const std::vector<std::string> found = faults(layout); !found.empty())
    value.refuse(found.front(), "a layout (docs/scenario.md)");
  return layout;
}

void SubjectReader::read_geometry(const JsonValue& value) {
  value.allow_only({"shape", "dtype", "source", "target"});
  Layout layout;
  layout.dtype = named(value.at("dtype"), Dtype::bf16, Dtype::f64);
  const JsonValue shape = value.at("shape");
  layout.shape = shape.integers(max_dimensions, 1, PlanFileLimits::size);
  std::int64_t bytes = element_size(layout.dtype).value;
  for (const std::int64_t extent : layout.shape) {
    if (extent > PlanFileLimits::size / bytes)
      shape.refuse("a tensor above 2^60 bytes", "at most 2^60 bytes");
    bytes *= extent;
  }
  if (layout.shape.empty()) shape.refuse("one to four extents");
  const Layout source = read_layout(value.at("source"), layout);
  refit_.geometries.push_back({source, read_layout(value.at("target"), layout)});
}

void SubjectReader::require_ranks(const JsonValue& value, const Layout& layout, Rank base) const {
  for (const Rank rank : layout.mesh.ranks) {
    if (base.index() + rank.index() < refit_.members()) continue;
    value.refuse(fmt::format("rank {}", base.index() + rank.index()),
                 fmt::format("ranks below {}, the GPUs of both sides", refit_.members()));
  }
}

void SubjectReader::require_size(const JsonValue& value, const Layout& layout) {
  bytes_ += Int128{layout.bytes().value} * static_cast<std::int64_t>(layout.mesh.size());
  if (bytes_ > PlanFileLimits::size)
    value.refuse("more than 2^60 bytes", "2^60 bytes of all tensors on all their ranks");
}

void SubjectReader::read_tensor(const JsonValue& value) {
  value.allow_only(
      {"name", "geometry", "source_base", "target_base", "role", "copy", "install", "quantized"});
  RefitEntry entry;
  const auto geometries = static_cast<std::int64_t>(refit_.geometries.size());
  if (geometries == 0) value.refuse("a tensor", "no tensors without geometries");
  entry.tensor.name = value.at("name").text(name_form);
  if (!names_.insert(entry.tensor.name).second)
    value.refuse(fmt::format("'{}' twice", printable(entry.tensor.name)), "names that differ");
  entry.geometry = number(value.at("geometry"), 0, geometries - 1);
  entry.source_base = {number(value.at("source_base"), 0, PlanFileLimits::ranks - 1)};
  entry.target_base = {number(value.at("target_base"), 0, PlanFileLimits::ranks - 1)};
  const auto role = value.find("role"), copy = value.find("copy"), install = value.find("install");
  entry.tensor.role = role ? named(*role, Role::bulk, Role::vision) : Role::misc;
  entry.tensor.copy = copy && copy->flag();
  entry.tensor.install = install && install->flag();
  if (const auto part = value.find("quantized"))
    entry.tensor.quantised = named(*part, QuantisedPart::values, QuantisedPart::scales);
  const Geometry& geometry = refit_.geometries[entry.geometry];
  entry.tensor.shape = geometry.source.shape;
  entry.tensor.dtype = geometry.source.dtype;
  require_ranks(value, geometry.source, entry.source_base);
  require_ranks(value, geometry.target, entry.target_base);
  require_size(value, geometry.source);
  require_size(value, geometry.target);
  refit_.tensors.push_back(std::move(entry));
}

void add_layout(std::string_view side, const Layout& layout, JsonText& text) {
  std::vector<std::string> placements;
  for (const Placement placement : layout.placements)
    placements.push_back(fmt::format("\"{}\"", to_string(placement)));
  text.add(",\n     \"{}\": {{\"mesh\": [{}], ", side, fmt::join(layout.mesh.shape, ", "));
  const std::vector<Rank>& ranks = layout.mesh.ranks;
  if (layout.mesh == contiguous_mesh(layout.mesh.shape, ranks.front())) {
    text.add("\"first_rank\": {}", ranks.front().value);
  } else {
    std::vector<std::uint32_t> numbers;
    for (const Rank rank : ranks) numbers.push_back(rank.value);
    text.add("\"ranks\": [{}]", fmt::join(numbers, ", "));
  }
  text.add(", \"placements\": [{}], \"chunk_rule\": \"{}\"", fmt::join(placements, ", "),
           to_string(layout.chunk_rule));
  if (layout.frame) {
    text.add(", \"frame\": [{}], \"origin\": [{}]", fmt::join(layout.frame->extent, ", "),
             fmt::join(layout.frame->origin, ", "));
  }
  text.add("}}");
}

/// A path below `from`, as it is written in `to`.
std::string seen_path(const std::string& path, const std::filesystem::path& from,
                      const std::filesystem::path& to) {
  const auto canonical = [](const std::filesystem::path& place) {
    std::error_code code;  // what does not exist is taken as it is written
    const std::filesystem::path found = std::filesystem::weakly_canonical(place, code);
    return code ? std::filesystem::absolute(place).lexically_normal() : found;
  };
  return canonical(from / path).lexically_proximate(canonical(to.empty() ? "." : to)).string();
}

void move_imports(FabricSpec& spec, const std::filesystem::path& from, const std::filesystem::path& to) {
  if (!spec.import_file.empty()) spec.import_file = seen_path(spec.import_file, from, to);
  for (FabricSpec& part : spec.parts) move_imports(part, from, to);
}

}  // namespace

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<JsonValue> list_of(const JsonValue& value, std::size_t most) {
  const std::string form = fmt::format("a list of at most {} items", most);
  if (!value.is_list()) value.refuse(form);
  return value.items(most, form);
}

std::uint32_t number(const JsonValue& value, std::int64_t least, std::int64_t most) {
  return static_cast<std::uint32_t>(value.integer(least, most));
}

std::uint32_t number_or(const JsonValue& object, std::string_view key, std::uint32_t usual,
                        std::int64_t most) {
  const auto value = object.find(key);
  return value ? number(*value, 0, most) : usual;
}

Subject read_subject(const JsonValue& root, const std::filesystem::path& file) {
  Scenario scenario = read_scenario_text(root.at("scenario"), file);
  const auto tensors = root.find("tensors"), geometries = root.find("geometries");
  if (!tensors && !geometries) {
    Refit refit = resolve(scenario);
    return {std::move(scenario), std::move(refit)};
  }
  if (!scenario.model) {
    (tensors ? *tensors : *geometries)
        .refuse("tensors beside a scenario that names them", "tensors and geometries of whole models only");
  }
  Fabric fabric = scenario_fabric(scenario);
  Refit refit{scenario.name, std::move(fabric), {}, 0, 0, 1, {}, {}, scenario.refit, {}};
  refit.train_ranks = to_size(scenario.train->gpus);
  refit.generate_ranks = to_size(scenario.generate->gpus);
  refit.stages = scenario.train->pp;
  refit.gpu_of_rank = rank_places(scenario, refit.fabric);
  add_relay_ranks(refit);
  SubjectReader(root, refit).read();
  return {std::move(scenario), std::move(refit)};
}

void add_subject(const Scenario& scenario, const Refit& refit, JsonText& text) {
  std::vector<std::string> lines;
  const std::string yaml = to_yaml(scenario);
  for (std::size_t begin = 0; begin < yaml.size();) {
    const std::size_t end = std::min(yaml.find('\n', begin), yaml.size());
    lines.push_back(yaml.substr(begin, end - begin));
    begin = end + 1;
  }
  text.lines("  ", "scenario", lines, [&](const std::string& line) { text.add("    {}", json_text(line)); });
  text.add(",\n");
  if (!scenario.model) return;
  text.lines("  ", "geometries", refit.geometries, [&](const Geometry& geometry) {
    text.add("    {{\"shape\": [{}], \"dtype\": \"{}\"", fmt::join(geometry.source.shape, ", "),
             to_string(geometry.source.dtype));
    add_layout("source", geometry.source, text);
    add_layout("target", geometry.target, text);
    text.add("}}");
  });
  text.add(",\n");
  text.lines("  ", "tensors", refit.tensors, [&](const RefitEntry& entry) {
    text.add("    {{\"name\": {}, \"geometry\": {}, \"source_base\": {}, \"target_base\": {}",
             json_text(entry.tensor.name), entry.geometry, entry.source_base.value, entry.target_base.value);
    if (entry.tensor.role != Role::misc) text.add(", \"role\": \"{}\"", to_string(entry.tensor.role));
    text.add("{}{}", entry.tensor.copy ? ", \"copy\": true" : "",
             entry.tensor.install ? ", \"install\": true" : "");
    if (entry.tensor.quantised != QuantisedPart::none)
      text.add(", \"quantized\": \"{}\"", to_string(entry.tensor.quantised));
    text.add("}}");
  });
  text.add(",\n");
}

}  // namespace isthmus::plan_file

namespace isthmus {

Scenario seen_from(const Scenario& scenario, const std::filesystem::path& folder) {
  Scenario seen = scenario;
  const std::filesystem::path from = scenario.file.parent_path();
  if (seen.model) seen.model->config = plan_file::seen_path(seen.model->config, from, folder);
  plan_file::move_imports(seen.fabric, from, folder);
  return seen;
}

}  // namespace isthmus

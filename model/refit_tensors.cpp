// refit_tensors() of inventory.hpp: from stored patterns to the tensors that one refit moves.
#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <tuple>
#include <utility>

#include "model/inventory.hpp"
#include "model/precision.hpp"

namespace isthmus {
namespace {

/// What one layer's worth of a pattern becomes: one tensor, or two for fused gate and up. The name still has
/// its {l}.
struct Template {
  std::string before, after;  // name around {l}; `after` is empty without one
  RefitTensor tensor;
};

std::string without(std::string name, std::string_view part) {
  const std::size_t at = name.find(part);
  return at == std::string::npos ? name : name.erase(at, part.size());
}

// Regions have 1 to max_dimensions dimensions. Merging trailing ones moves no element.
std::vector<std::int64_t> merged(std::vector<std::int64_t> shape) {
  if (shape.empty()) return {1};
  while (shape.size() > max_dimensions) {
    shape[shape.size() - 2] *= shape.back();
    shape.pop_back();
  }
  return shape;
}

Template make_template(const TensorPattern& pattern, const std::string& name,
                       std::vector<std::int64_t> shape) {
  Template made;
  const std::size_t layer = name.find("{l}");
  made.before = name.substr(0, layer);
  if (layer != std::string::npos) made.after = name.substr(layer + 3);
  made.tensor.shape = merged(std::move(shape));
  made.tensor.tensor_parallel = pattern.tensor_parallel;
  made.tensor.home = pattern.home;
  made.tensor.expert = pattern.experts > 0;
  made.tensor.parts = pattern.fused_experts ? 1 : std::max<std::int64_t>(pattern.experts, 1);
  made.tensor.key_value_heads = pattern.key_value_heads;
  made.tensor.dtype = pattern.wire;
  made.tensor.block = pattern.block;
  made.tensor.receiver_quantises = pattern.receiver_quantises;
  made.tensor.quantised = pattern.quantised;
  return made;
}

// Fused experts: [experts, 2 x inner, hidden] holds gate and up. Each half is cut over ranks by itself, so
// they travel as two tensors in every role. A transposed pattern is moved as [experts, out, in]; its exporter
// swaps and untangles.
std::vector<Template> fused_templates(const TensorPattern& pattern) {
  std::vector<std::int64_t> shape = pattern.shape;
  if (pattern.transposed) std::swap(shape.at(1), shape.at(2));
  constexpr std::string_view gate_up = "experts.gate_up_proj", down = "experts.down_proj";
  if (pattern.name.ends_with(gate_up)) {
    const std::string stem =
        pattern.name.substr(0, pattern.name.size() - std::string_view("gate_up_proj").size());
    shape.at(1) /= 2;
    return {make_template(pattern, stem + "gate_proj.weight", shape),
            make_template(pattern, stem + "up_proj.weight", shape)};
  }
  return {make_template(pattern, pattern.name + (pattern.name.ends_with(down) ? ".weight" : ""), shape)};
}

std::vector<Template> templates(const TensorPattern& pattern) {
  if (pattern.fused_experts) return fused_templates(pattern);
  std::vector<std::int64_t> shape = pattern.shape;
  if (pattern.experts > 0) shape.insert(shape.begin(), pattern.experts);
  return {make_template(pattern, without(pattern.name, ".{e}"), std::move(shape))};
}

/// One template at one layer. Ordered as the refit transfers.
struct Place {
  Home home;
  int layer;            // -1 without {l}
  std::size_t pattern;  // position in the inventory

  auto key() const {
    constexpr std::array<int, 3> stage{1, 0, 2};  // Home: layer, first_stage, last_stage
    return std::tuple(stage.at(static_cast<std::size_t>(home)), layer, pattern);
  }
};

std::vector<Place> places(const Inventory& inventory, PayloadOptions options) {
  std::vector<Place> places;
  for (std::size_t i = 0; i < inventory.patterns.size(); ++i) {
    const TensorPattern& pattern = inventory.patterns[i];
    if (!takes_part(pattern.role, options) || pattern.count() == 0) continue;
    if (pattern.layers.empty()) places.push_back({pattern.home, -1, i});
    for (const int layer : pattern.layers) {
      const bool appended = pattern.home == Home::layer && layer >= inventory.layers;
      places.push_back({appended ? Home::last_stage : pattern.home, layer, i});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.key() < b.key(); });
  return places;
}

Role refit_role(const TensorPattern& pattern, const std::function<bool(const TensorPattern&)>& is_bulk) {
  const bool extra = pattern.role == Role::mtp || pattern.role == Role::vision;
  return !extra && is_bulk(pattern) ? Role::bulk : Role::misc;
}

}  // namespace

std::vector<RefitTensor> refit_tensors(const Inventory& inventory, PayloadOptions options,
                                       const std::function<bool(const TensorPattern&)>& is_bulk) {
  std::vector<std::vector<Template>> of_pattern;
  for (const TensorPattern& pattern : inventory.patterns) {
    of_pattern.push_back(templates(pattern));
    for (Template& made : of_pattern.back()) made.tensor.role = refit_role(pattern, is_bulk);
  }
  std::vector<RefitTensor> tensors;
  const std::vector<Place> order = places(inventory, options);
  tensors.reserve(order.size() * 5 / 4);
  for (const Place& place : order) {
    for (const Template& made : of_pattern[place.pattern]) {
      RefitTensor& tensor = tensors.emplace_back(made.tensor);
      tensor.name = place.layer < 0 ? made.before : made.before + std::to_string(place.layer) + made.after;
      tensor.home = place.home;
      tensor.layer = place.home == Home::layer ? place.layer : -1;
    }
  }
  return tensors;
}

}  // namespace isthmus

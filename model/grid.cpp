#include "model/grid.hpp"

#include <map>
#include <numeric>

#include <fmt/format.h>

namespace isthmus {
namespace {

struct Axis {
  std::int64_t size;
  Placement placement;
  std::string_view key;    // the setting that sizes it
  std::int64_t block = 1;  // its shards keep so many elements together
};

/// The dimension that tensor parallelism cuts; experts are stacked in front.
Placement tensor_parallel_placement(const RefitTensor& tensor) {
  const int shift = tensor.expert ? 1 : 0;
  const auto dimensions = static_cast<int>(tensor.shape.size()) - shift;
  switch (tensor.tensor_parallel) {
    case TensorParallel::replicated: break;
    case TensorParallel::rows:
    case TensorParallel::vocabulary: return {shift};
    case TensorParallel::columns: return {dimensions > 1 ? shift + 1 : Placement::replicated};
  }
  return {};
}

std::vector<Axis> train_axes(const TrainSpec& train, const RefitTensor& tensor) {
  const std::int64_t ranks = train.gpus / train.pp;
  const Placement split = tensor_parallel_placement(tensor);
  if (!tensor.expert)
    return {{ranks / train.tp, {}, "train.gpus"}, {train.tp, split, "train.tp", tensor.block}};
  const std::int64_t etp = train.etp.value_or(train.tp);
  return {{ranks / (train.ep * etp), {}, "train.gpus"},
          {train.ep, {0}, "train.ep"},
          {etp, split, train.etp ? "train.etp" : "train.tp", tensor.block}};
}

std::vector<Axis> generate_axes(const GenerateSpec& generate, const RefitTensor& tensor) {
  const bool whole_experts = tensor.expert && generate.ep > 1;
  const Placement split = whole_experts ? Placement{0} : tensor_parallel_placement(tensor);
  return {{generate.gpus / generate.tp, {}, "generate.gpus"},
          {generate.tp, split, whole_experts ? "generate.ep" : "generate.tp",
           whole_experts ? 1 : target_block(tensor)}};
}

/// What one key does to all tensors: how often its size does not divide, and what it would have to divide.
struct Cuts {
  std::int64_t size = 0, extent = 0, block = 1, common_divisor = 0;
  int dimension = 0;
  std::string first_tensor;
  std::size_t uneven = 0;
};

void add_cuts(const std::vector<Axis>& axes, const RefitTensor& tensor,
              std::map<std::string_view, Cuts>& cuts) {
  if (tensor.tensor_parallel == TensorParallel::vocabulary) return;
  for (const Axis& axis : axes) {
    if (axis.size == 1 || axis.placement == Placement{}) continue;
    Cuts& cut = cuts[axis.key];
    const std::int64_t extent = tensor.shape[to_size(axis.placement.dimension)];
    cut.common_divisor = std::gcd(cut.common_divisor, extent % axis.block == 0 ? extent / axis.block : 1);
    if (extent % (axis.size * axis.block) == 0 || cut.uneven++ > 0) continue;
    cut.block = axis.block;
    cut.size = axis.size;
    cut.extent = extent;
    cut.dimension = axis.placement.dimension;
    cut.first_tensor = tensor.name;
  }
}

std::vector<InputFault> faults_of(const Scenario& scenario, const std::map<std::string_view, Cuts>& cuts) {
  std::vector<InputFault> faults;
  for (const auto& [key, cut] : cuts) {
    if (cut.uneven == 0) continue;
    const std::string others = cut.uneven == 1 ? "" : fmt::format(" and {} more tensors", cut.uneven - 1);
    const std::string rule =
        cut.block == 1 ? "a divisor of" : fmt::format("a size that leaves whole blocks of {} of", cut.block);
    faults.push_back({scenario.at(key), fmt::format("{}", cut.size),
                      fmt::format("{} {}, dimension {} of {}{}", rule, cut.extent, cut.dimension,
                                  cut.first_tensor, others),
                      nearest_divisors(cut.size, cut.common_divisor)});
  }
  return faults;
}

Layout make_layout(const Scenario& scenario, const RefitTensor& tensor, const std::vector<Axis>& axes) {
  std::map<std::string_view, Cuts> cuts;
  add_cuts(axes, tensor, cuts);
  raise_first(faults_of(scenario, cuts));
  Layout layout;
  layout.shape = tensor.shape;
  layout.dtype = tensor.dtype;
  layout.chunk_rule =
      tensor.tensor_parallel == TensorParallel::vocabulary ? ChunkRule::ceil : ChunkRule::even;
  std::vector<std::int64_t> mesh_shape;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    mesh_shape.push_back(axis.size);
    layout.placements.push_back(axis.placement);
  }
  if (mesh_shape.empty()) {
    mesh_shape.push_back(1);
    layout.placements.emplace_back();
  }
  layout.mesh = contiguous_mesh(std::move(mesh_shape), Rank{0});
  return layout;
}

}  // namespace

std::vector<InputFault> layout_faults(const Scenario& scenario, std::span<const RefitTensor> tensors) {
  std::map<std::string_view, Cuts> train, generate;
  for (const RefitTensor& tensor : tensors) {
    add_cuts(train_axes(*scenario.train, tensor), tensor, train);
    add_cuts(generate_axes(*scenario.generate, tensor), tensor, generate);
  }
  std::vector<InputFault> faults = faults_of(scenario, train);
  for (InputFault& fault : faults_of(scenario, generate)) faults.push_back(std::move(fault));
  return faults;
}

Layout train_layout(const Scenario& scenario, const RefitTensor& tensor) {
  return make_layout(scenario, tensor, train_axes(*scenario.train, tensor));
}

Layout generate_layout(const Scenario& scenario, const RefitTensor& tensor) {
  return make_layout(scenario, tensor, generate_axes(*scenario.generate, tensor));
}

}  // namespace isthmus

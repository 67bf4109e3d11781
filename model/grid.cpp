#include "model/grid.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "model/precision.hpp"
#include "model/rank_grid.hpp"

namespace isthmus {
namespace {

/// One axis of a mesh, outermost first.
struct Axis {
  std::int64_t size;
  Placement placement;
  std::string_view key;    // the setting that sizes it
  std::int64_t block = 1;  // its shards keep so many elements together
  bool even = true;        // its shards must be equal
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

bool has_heads(const Scenario& scenario, const RefitTensor& tensor) {
  return scenario.model->repeat_kv_heads && tensor.key_value_heads > 0;
}

/// Vocabularies are padded until they divide.
bool is_even(const RefitTensor& tensor) { return tensor.tensor_parallel != TensorParallel::vocabulary; }

/// The axes of tensor parallelism in an engine: heads that are fewer than ranks shard first, then repeat.
void add_generate_tensor_parallel(const Scenario& scenario, const RefitTensor& tensor,
                                  std::vector<Axis>& axes) {
  const std::int64_t tp = scenario.generate->tp;
  const Placement split = tensor_parallel_placement(tensor);
  if (has_heads(scenario, tensor) && tp > tensor.key_value_heads) {
    axes.push_back({tensor.key_value_heads, split, "generate.tp", target_block(tensor)});
    axes.push_back({tp / tensor.key_value_heads, {}, "generate.tp"});
  } else {
    axes.push_back({tp, split, "generate.tp", target_block(tensor), is_even(tensor)});
  }
}

/// Ranks of one stage that shard a tensor once more.
std::int64_t fsdp_shards(const TrainSpec& train, bool expert) {
  if (train.fsdp == 1 || !expert) return train.fsdp;
  const std::int64_t shards =
      std::int64_t{train.tp} * train.fsdp / (std::int64_t{train.ep} * train.etp.value_or(train.tp));
  return std::max<std::int64_t>(shards, 1);  // below 1 the grid has a fault
}

std::vector<Axis> train_axes(const Scenario& scenario, const RefitTensor& tensor) {
  const TrainSpec& train = *scenario.train;
  const std::int64_t ranks = train.gpus / train.pp, shards = fsdp_shards(train, tensor.expert);
  std::vector<Axis> axes;
  if (tensor.expert) {
    const std::int64_t etp = train.etp.value_or(train.tp);
    axes.push_back({ranks / (train.ep * etp * shards), {}, "train.gpus"});
    axes.push_back({train.ep, {0}, "train.ep"});
    axes.push_back(
        {etp, tensor_parallel_placement(tensor), train.etp ? "train.etp" : "train.tp", tensor.block});
  } else {
    axes.push_back({ranks / (train.tp * shards), {}, "train.gpus"});
    axes.push_back({train.tp, tensor_parallel_placement(tensor), "train.tp", tensor.block, is_even(tensor)});
  }
  const std::int64_t experts = tensor.copy_of > 0 ? tensor.copy_of : tensor.shape.front();
  const bool rows = tensor.expert && train.ep * shards > experts && tensor.shape.size() > 1;
  axes.push_back({shards, {rows ? 1 : 0}, "train.fsdp", 1, false});
  return axes;
}

std::vector<Axis> generate_axes(const Scenario& scenario, const RefitTensor& tensor) {
  const GenerateSpec& generate = *scenario.generate;
  const std::int64_t ranks = generate.gpus / generate.pp, etp = generate_etp(generate);
  std::vector<Axis> axes;
  if (tensor.expert && generate.ep > 1) {
    axes.push_back({ranks / (generate.ep * etp), {}, "generate.gpus"});
    axes.push_back({generate.ep, {0}, "generate.ep", 1, false});
    axes.push_back({etp, tensor_parallel_placement(tensor), generate.etp ? "generate.etp" : "generate.ep",
                    target_block(tensor)});
  } else {
    axes.push_back({ranks / generate.tp, {}, "generate.gpus"});
    add_generate_tensor_parallel(scenario, tensor, axes);
  }
  return axes;
}

/// What one key does to all tensors: how often its size does not divide, and what it would have to divide.
struct Cuts {
  std::int64_t size = 0, extent = 0, block = 1, common_divisor = 0;
  std::string what;  // of the first one
  std::size_t uneven = 0;

  void add(std::int64_t count, std::int64_t of, std::int64_t units, bool fits, std::string_view first) {
    common_divisor = std::gcd(common_divisor, units);
    if (fits || uneven++ > 0) return;
    size = count;
    extent = of;
    what = first;
  }
};

enum class Rule : std::uint8_t { divides, heads };
using CutsByKey = std::map<std::pair<std::string_view, Rule>, Cuts>;

/// `generate_tp` is what the key says where heads are repeated.
void add_cuts(const std::vector<Axis>& axes, const RefitTensor& tensor, std::int64_t generate_tp,
              CutsByKey& cuts) {
  if (tensor.copy_of > 0) return;  // what it copies is judged
  for (const Axis& axis : axes) {
    if (axis.size == 1 || axis.placement == Placement{} || !axis.even) continue;
    const std::int64_t extent = tensor.shape[to_size(axis.placement.dimension)];
    const std::int64_t divisible = extent % axis.block == 0 ? extent / axis.block : 1;
    Cuts& cut = cuts[{axis.key, Rule::divides}];
    if (cut.uneven == 0) cut.block = axis.block;
    const bool repeated = axis.key == "generate.tp" && axis.size == tensor.key_value_heads;
    cut.add(repeated ? generate_tp : axis.size, extent, divisible, extent % (axis.size * axis.block) == 0,
            fmt::format("dimension {} of {}", axis.placement.dimension, tensor.name));
  }
}

void add_heads(const Scenario& scenario, const RefitTensor& tensor, std::int64_t size, std::string_view key,
               CutsByKey& cuts) {
  if (!has_heads(scenario, tensor) || tensor.expert) return;
  const std::int64_t heads = tensor.key_value_heads;
  const bool fits = heads % size == 0 || size % heads == 0;
  cuts[{key, Rule::heads}].add(size, heads, heads, fits,
                               fmt::format("the key/value heads of {}", tensor.name));
}

std::vector<InputFault> faults_of(const Scenario& scenario, const CutsByKey& cuts) {
  std::vector<InputFault> faults;
  for (const auto& [key, cut] : cuts) {
    if (cut.uneven == 0) continue;
    const std::string others = cut.uneven == 1 ? "" : fmt::format(" and {} more tensors", cut.uneven - 1);
    std::string rule = "a divisor of";
    if (key.second == Rule::heads) rule = "a divisor or a multiple of";
    if (cut.block > 1) rule = fmt::format("a size that leaves whole blocks of {} of", cut.block);
    faults.push_back({scenario.at(key.first), fmt::format("{}", cut.size),
                      fmt::format("{} {}, {}{}", rule, cut.extent, cut.what, others),
                      nearest_divisors(cut.size, cut.common_divisor)});
  }
  return faults;
}

void add_train_cuts(const Scenario& scenario, const RefitTensor& tensor, CutsByKey& cuts) {
  add_heads(scenario, tensor, scenario.train->tp, "train.tp", cuts);
  add_cuts(train_axes(scenario, tensor), tensor, 0, cuts);
}

void add_generate_cuts(const Scenario& scenario, const RefitTensor& tensor, CutsByKey& cuts) {
  add_heads(scenario, tensor, scenario.generate->tp, "generate.tp", cuts);
  add_cuts(generate_axes(scenario, tensor), tensor, scenario.generate->tp, cuts);
}

/// `ranks` belong to the mesh of all axes, those of size 1 included.
Layout make_layout(const RefitTensor& tensor, const std::vector<Axis>& axes, std::vector<Rank> ranks) {
  Layout layout;
  layout.shape = tensor.shape;
  layout.dtype = tensor.dtype;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    layout.mesh.shape.push_back(axis.size);
    layout.placements.push_back(axis.placement);
  }
  if (layout.mesh.shape.empty()) {
    layout.mesh.shape.push_back(1);
    layout.placements.emplace_back();
  }
  layout.mesh.ranks = std::move(ranks);
  return layout;
}

/// Makes dimension 0 of the tensor the part from `origin` of `extent` rows or slots.
void set_frame(Layout& layout, std::int64_t extent, std::int64_t origin = 0) {
  if (extent == layout.shape.front() && origin == 0) return;
  layout.frame = Frame{layout.shape, std::vector<std::int64_t>(layout.shape.size(), 0)};
  layout.frame->extent.front() = extent;
  layout.frame->origin.front() = origin;
}

std::int64_t rounded_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Ranks of a generation stage, in the order in which its grids count them.
std::vector<Rank> stage_ranks(const GenerateSpec& generate, int stage) {
  std::vector<Rank> ranks;
  ranks.reserve(to_size(generate.gpus / generate.pp));
  for (int first = stage * generate.tp; first < generate.gpus; first += generate.pp * generate.tp) {
    for (int t = 0; t < generate.tp; ++t) ranks.push_back({static_cast<std::uint32_t>(first + t)});
  }
  return ranks;
}

}  // namespace

std::int64_t generate_etp(const GenerateSpec& generate) {
  if (generate.etp) return *generate.etp;
  if (generate.ep == 1) return generate.tp;
  return generate.tp % generate.ep == 0 ? generate.tp / generate.ep : 1;
}

std::vector<InputFault> layout_faults(const Scenario& scenario, std::span<const RefitTensor> tensors) {
  CutsByKey train, generate;
  for (const RefitTensor& tensor : tensors) {
    add_train_cuts(scenario, tensor, train);
    add_generate_cuts(scenario, tensor, generate);
  }
  std::vector<InputFault> faults = faults_of(scenario, train);
  for (InputFault& fault : faults_of(scenario, generate)) faults.push_back(std::move(fault));
  return faults;
}

Layout train_layout(const Scenario& scenario, const RefitTensor& tensor) {
  CutsByKey cuts;
  add_train_cuts(scenario, tensor, cuts);
  raise_first(faults_of(scenario, cuts));
  const TrainSpec& train = *scenario.train;
  const std::int64_t ranks = train.gpus / train.pp, shards = fsdp_shards(train, tensor.expert);
  const std::int64_t etp = train.etp.value_or(train.tp);
  const RankGrid grid = tensor.expert ? RankGrid{etp, 1, train.ep, ranks / (etp * train.ep)}
                                      : RankGrid{train.tp, train.cp, 1, ranks / (train.tp * train.cp)};
  Layout layout = make_layout(tensor, train_axes(scenario, tensor), grid_ranks(train.order, grid, shards));
  if (shards > 1) layout.chunk_rule = ChunkRule::ceil;
  if (tensor.copy_of > 0) set_frame(layout, tensor.copy_of);
  if (tensor.tensor_parallel == TensorParallel::vocabulary) {
    const std::int64_t multiple = std::int64_t{train.vocabulary_multiple} * train.tp;
    set_frame(layout, rounded_up(tensor.shape.front(), multiple));
  }
  return layout;
}

Layout generate_layout(const Scenario& scenario, const RefitTensor& tensor, int stage) {
  CutsByKey cuts;
  add_generate_cuts(scenario, tensor, cuts);
  raise_first(faults_of(scenario, cuts));
  const GenerateSpec& generate = *scenario.generate;
  Layout layout = make_layout(tensor, generate_axes(scenario, tensor), stage_ranks(generate, stage));
  if (tensor.tensor_parallel == TensorParallel::vocabulary) {
    const std::int64_t multiple =
        std::lcm(std::int64_t{generate.vocabulary_multiple}, std::int64_t{generate.tp});
    set_frame(layout, rounded_up(tensor.shape.front(), multiple));
  }
  if (!tensor.expert || generate.ep == 1) return layout;
  const std::int64_t experts = tensor.copy_of > 0 ? tensor.copy_of : tensor.shape.front();
  if (experts % generate.ep != 0) layout.chunk_rule = ChunkRule::balanced;
  if (generate.redundant_experts == 0) return layout;
  layout.chunk_rule = ChunkRule::even;
  set_frame(layout, experts + generate.redundant_experts, tensor.copy_of > 0 ? experts : 0);
  return layout;
}

}  // namespace isthmus

#include "model/tensor_classes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "model/grid.hpp"
#include "model/precision.hpp"
#include "model/stages.hpp"

namespace isthmus {
namespace {

StageCounts counts(const ClassedTensors& tensors, const StageMap& stages, bool heads_last) {
  StageCounts result(to_size(stages.stages), std::vector<std::int64_t>(tensors.classes.size(), 0));
  for (std::size_t c = 0; c < tensors.classes.size(); ++c) {
    for (const std::uint32_t member : tensors.classes[c].members) {
      const RefitTensor& tensor = tensors.tensors[member];
      const int stage = heads_last && tensor.tied_head ? stages.stages - 1 : stages.stage_of(tensor);
      ++result[to_size(stage)][c];
    }
  }
  return result;
}

/// How many ranks hold a shard equal to that of each mesh position; its elements are not 0.
std::map<Region, std::int64_t> holders_of(const std::vector<Region>& regions) {
  std::map<Region, std::int64_t> holders;
  for (const Region& region : regions) ++holders[region];
  return holders;
}

/// The fullest rank of the fullest stage. `bytes`: per class and rank of a stage, of one tensor.
Bytes fullest(const StageCounts& counts, const std::vector<std::vector<Bytes>>& bytes) {
  Bytes most;
  for (const std::vector<std::int64_t>& of_class : counts) {
    std::vector<Bytes> of_rank;
    for (std::size_t c = 0; c < of_class.size(); ++c) {
      if (of_rank.size() < bytes[c].size()) of_rank.resize(bytes[c].size());
      for (std::size_t r = 0; r < bytes[c].size(); ++r) of_rank[r] += bytes[c][r] * of_class[c];
    }
    for (const Bytes held : of_rank) most = std::max(most, held);
  }
  return most;
}

}  // namespace

ClassedTensors classed(std::vector<RefitTensor> tensors) {
  ClassedTensors result;
  using Key = std::tuple<std::vector<std::int64_t>, Dtype, Role, TensorParallel, bool, std::int64_t,
                         std::int64_t, std::int64_t, std::tuple<bool, bool, std::int64_t, QuantisedPart>>;
  std::map<Key, std::size_t> known;
  for (std::uint32_t t = 0; t < tensors.size(); ++t) {
    const RefitTensor& tensor = tensors[t];
    const Key key{tensor.shape,
                  tensor.dtype,
                  tensor.role,
                  tensor.tensor_parallel,
                  tensor.expert,
                  tensor.key_value_heads,
                  tensor.block,
                  tensor.parts,
                  {tensor.receiver_quantises, tensor.copy, tensor.copy_of, tensor.quantised}};
    const auto [at, is_new] = known.emplace(key, result.classes.size());
    if (is_new) result.classes.push_back({tensor, {}});
    result.classes[at->second].members.push_back(t);
  }
  result.tensors = std::move(tensors);
  return result;
}

StageCounts train_stage_counts(const Scenario& scenario, const ClassedTensors& tensors, int layers) {
  return counts(tensors, train_stage_map(scenario, layers), false);
}

StageCounts generate_stage_counts(const Scenario& scenario, const ClassedTensors& tensors, int layers) {
  return counts(tensors, generate_stage_map(scenario, layers), true);
}

Bytes train_memory(const Scenario& scenario, const ClassedTensors& tensors, int layers) {
  std::vector<std::vector<Bytes>> bytes;
  for (const TensorClass& each : tensors.classes) {
    const Layout layout = train_layout(scenario, each.tensor);
    const std::vector<Region> regions = layout.regions();
    std::map<Region, std::int64_t> holders = holders_of(regions);
    std::vector<Bytes>& of_rank = bytes.emplace_back(layout.mesh.size());
    // Copies exist on the generation side only, scales that sources compute in no optimiser.
    const bool owned = !each.tensor.copy && each.tensor.quantised != QuantisedPart::scales;
    for (std::size_t i = 0; owned && i < regions.size(); ++i) {
      const std::int64_t elements = regions[i].volume(), replicas = holders[regions[i]];
      of_rank[layout.mesh.ranks[i].index()] = Bytes{elements * 6 + (elements * 12 + replicas - 1) / replicas};
    }
  }
  return fullest(train_stage_counts(scenario, tensors, layers), bytes);
}

Bytes generate_memory(const Scenario& scenario, const ClassedTensors& tensors, int layers) {
  std::vector<std::vector<Bytes>> bytes;
  for (const TensorClass& each : tensors.classes) {
    const Layout layout = generate_layout(scenario, each.tensor);  // stages differ in their ranks only
    std::vector<Bytes>& of_position = bytes.emplace_back();
    std::vector<std::pair<Rank, Bytes>> by_rank;
    const std::vector<Region> regions = layout.regions();
    for (std::size_t i = 0; i < regions.size(); ++i) {
      by_rank.emplace_back(layout.mesh.ranks[i], live_bytes(each.tensor, layout.bytes(regions[i])));
    }
    std::sort(by_rank.begin(), by_rank.end());
    for (const auto& [rank, held] : by_rank) of_position.push_back(held);
  }
  return fullest(generate_stage_counts(scenario, tensors, layers), bytes);
}

}  // namespace isthmus

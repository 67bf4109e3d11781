// What the description says about itself: sizes, meshes, placements, engines, stages.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus::refit_info {
namespace {

Location below(const BulkTensor& tensor, std::string_view key) {
  Location place = tensor.where;
  place.key += fmt::format(".{}", key);
  return place;
}

std::string quoted(const BulkTensor& tensor) { return printable(tensor.name, 200); }

/// Half-open range of group ranks of a side.
struct RankRange {
  std::int64_t begin, end;
};

RankRange range_of(const RefitInfo& info, Side side) {
  const std::int64_t n = info.stage_ranks();
  return side == Side::train ? RankRange{0, n} : RankRange{n, n + info.generate_ranks};
}

/// Ranks of the mesh, of which all must be the side's.
bool judge_ranks(Judged& judged, const BulkTensor& tensor, Side side, const Holders& holders) {
  const RankRange range = range_of(judged.info, side);
  std::vector<std::int64_t> foreign;
  for (const auto& [rank, position] : holders.positions) {
    if (rank.value < range.begin || rank.value >= range.end) foreign.push_back(rank.value);
  }
  if (foreign.empty()) return true;
  const bool train = side == Side::train;
  judged.faults.add(
      fmt::format("ranks {}", to_string(side)),
      {below(tensor, train ? "src_mesh_info" : "dst_mesh_info"),
       fmt::format("{}: {} mesh holds group rank{} {}", quoted(tensor), to_string(side),
                   foreign.size() == 1 ? "" : "s", ranks_text(foreign)),
       train ? fmt::format("0 to {} (train_world_size / pp_size ranks of a stage)", range.end - 1)
             : fmt::format("{} to {} (gen_world_size ranks behind the training ranks)", range.begin,
                           range.end - 1),
       ""});
  return false;
}

/// "engine 0 should hold ranks 1 to 2, engine 1 ranks 3 to 4"
std::string engine_ranks(const RefitInfo& info) {
  constexpr std::int64_t most = 4;
  const std::int64_t engines = info.generate_ranks / info.generate_tp, first = info.stage_ranks();
  std::string text;
  for (std::int64_t engine = 0; engine < std::min(engines, most); ++engine) {
    const std::int64_t begin = first + engine * info.generate_tp;
    text += fmt::format("{} {} {}ranks {} to {}", engine == 0 ? "engine" : ", engine", engine,
                        engine == 0 ? "should hold " : "", begin, begin + info.generate_tp - 1);
  }
  return engines > most ? text + ", and so on" : text;
}

/// Every generation rank stands in the mesh.
bool judge_engine_ranks(Judged& judged, const BulkTensor& tensor, const Holders& holders) {
  const RefitInfo& info = judged.info;
  const auto assigned = static_cast<std::int64_t>(holders.positions.size());
  if (assigned == info.generate_ranks) return true;
  judged.faults.add(
      "engines",
      {below(tensor, "dst_mesh_info"),
       fmt::format("{}: {} ranks assigned on the generation side", quoted(tensor), assigned),
       fmt::format("{} engines x {} ranks need {} ranks; {}", info.generate_ranks / info.generate_tp,
                   info.generate_tp, info.generate_ranks, engine_ranks(info)),
       fmt::format("a mesh of {} ranks", info.generate_ranks)});
  return false;
}

/// Each engine holds the whole tensor: its distinct regions, which are disjoint, have the tensor's volume.
void judge_engines(Judged& judged, const BulkTensor& tensor, const Holders& holders) {
  const RefitInfo& info = judged.info;
  const std::int64_t volume = whole(tensor.target.shape).volume();
  const auto tp = to_size(info.generate_tp);
  for (std::size_t begin = 0; begin < holders.positions.size(); begin += tp) {
    std::set<Region> regions;
    std::int64_t held = 0;
    for (std::size_t i = begin; i < begin + tp; ++i) {
      const Region region = tensor.target.region(holders.positions[i].second);
      if (regions.insert(region).second) held += region.volume();
    }
    if (held == volume) continue;
    judged.faults.add("engine whole",
                      {below(tensor, "dst_mesh_info"),
                       fmt::format("{}: engine {} (group ranks {} to {}) holds {} of {} elements",
                                   quoted(tensor), begin / tp, holders.positions[begin].first.value,
                                   holders.positions[begin + tp - 1].first.value, held, volume),
                       "engines that hold the whole tensor (engine outer, tp inner)", ""});
    return;
  }
}

void note_uneven(Judged& judged, const BulkTensor& tensor, const Layout& layout) {
  Layout even = layout;
  even.chunk_rule = ChunkRule::even;
  if (faults(even).empty()) return;
  judged.notes.add("uneven",
                   fmt::format("{} is cut unevenly: read by the chunk rule ceil, as NeMo RL's exact "
                               "transport does",
                               quoted(tensor)));
}

Holders judge_layout(Judged& judged, const BulkTensor& tensor, Side side) {
  const Layout& layout = side == Side::train ? tensor.source : tensor.target;
  const std::string_view prefix = side == Side::train ? "src" : "dst";
  Holders holders;
  const std::vector<std::string> found = faults(layout);
  for (const std::string& sentence : found) {
    judged.faults.add(fmt::format("layout {} {}", prefix, sentence),
                      {below(tensor, fmt::format("{}_placements", prefix)),
                       fmt::format("{}: {}", quoted(tensor), sentence), "", ""});
  }
  if (!found.empty()) return holders;
  for (std::uint32_t i = 0; i < layout.mesh.ranks.size(); ++i)
    holders.positions.emplace_back(layout.mesh.ranks[i], i);
  std::sort(holders.positions.begin(), holders.positions.end());
  if (!judged.sizes_sound) return holders;
  holders.sound = judge_ranks(judged, tensor, side, holders);
  if (holders.sound && side == Side::generate) {
    holders.sound = judge_engine_ranks(judged, tensor, holders);
    if (holders.sound) judge_engines(judged, tensor, holders);
  }
  note_uneven(judged, tensor, layout);
  return holders;
}

void judge_projection(Judged& judged, const BulkTensor& tensor) {
  if (tensor.projection.empty()) return;
  const auto named = projection_of(tensor.name);
  const bool agrees = named && named->projection == tensor.projection;
  if (agrees && tensor.source.shape.size() == 3) return;
  judged.faults.add("grouped",
                    {below(tensor, "grouped_expert_proj"),
                     fmt::format("{} of {} with {} dimensions", printable(tensor.projection), quoted(tensor),
                                 tensor.source.shape.size()),
                     "the projection that the name ends in (gate_proj, up_proj or down_proj), of a tensor "
                     "[experts, rows, columns]",
                     ""});
}

/// "layers 0 to 1 are on stages 0 to 1", of the tensors that have a stage.
std::string staged_layers(const RefitInfo& info) {
  std::optional<std::pair<std::int64_t, std::int64_t>> layers, stages;
  const auto widen = [](auto& range, std::int64_t value) {
    if (!range) range = {value, value};
    range->first = std::min(range->first, value);
    range->second = std::max(range->second, value);
  };
  for (const BulkTensor& tensor : info.tensors) {
    const auto layer = layer_of(tensor.name);
    if (!tensor.stage || !layer) continue;
    widen(layers, *layer);
    widen(stages, *tensor.stage);
  }
  if (!layers) return "no layer has one";
  return fmt::format("layers {} to {} are on stages {} to {}", layers->first, layers->second, stages->first,
                     stages->second);
}

void judge_stage(Judged& judged, const BulkTensor& tensor, const std::string& others) {
  const RefitInfo& info = judged.info;
  if (!tensor.stage) {
    if (info.stages == 1) return;
    const auto layer = layer_of(tensor.name);
    judged.faults.add("stage missing",
                      {below(tensor, "pp_stage"),
                       fmt::format("tensor {}: {} belongs to no pipeline stage", quoted(tensor),
                                   layer ? fmt::format("layer {}", *layer) : "its layer"),
                       fmt::format("a stage from 0 to {} ({})", info.stages - 1, others),
                       "send it by the misc path or name its owner"});
  } else if (*tensor.stage >= info.stages) {
    judged.faults.add(
        "stage range",
        {below(tensor, "pp_stage"), fmt::format("stage {} of {}", *tensor.stage, quoted(tensor)),
         fmt::format("0 to {} (pp_size is {})", info.stages - 1, info.stages), ""});
  }
}

void judge_repeated(Judged& judged, const BulkTensor& first, const BulkTensor& second) {
  const bool two_stages = first.stage.value_or(0) != second.stage.value_or(0);
  const std::string found = two_stages ? fmt::format("tensor {}: held by stages {} and {}", quoted(first),
                                                     first.stage.value_or(0), second.stage.value_or(0))
                                       : fmt::format("tensor {} a second time", quoted(first));
  judged.faults.add(two_stages ? "stages twice" : "name twice",
                    {second.where, found, "each tensor once, with one owner",
                     two_stages ? "name one owner, or send it by the misc path" : "leave one out"});
}

}  // namespace

void judge_sizes(Judged& judged) {
  const RefitInfo& info = judged.info;
  if (info.train_ranks % info.stages != 0) {
    judged.sizes_sound = false;
    judged.faults.add("train", {info.at("train_world_size"), fmt::format("{}", info.train_ranks),
                                fmt::format("a multiple of pp_size = {}", info.stages),
                                nearest_multiples(info.train_ranks, info.stages)});
  }
  if (info.generate_ranks % info.generate_tp != 0) {
    judged.sizes_sound = false;
    judged.faults.add("generate", {info.at("gen_world_size"), fmt::format("{}", info.generate_ranks),
                                   fmt::format("a multiple of gen_tp_size = {}", info.generate_tp),
                                   nearest_multiples(info.generate_ranks, info.generate_tp)});
  }
}

void judge_tensor_layouts(Judged& judged) {
  for (const BulkTensor& tensor : judged.info.tensors) {
    judged.sources.push_back(judge_layout(judged, tensor, Side::train));
    judged.targets.push_back(judge_layout(judged, tensor, Side::generate));
    judge_projection(judged, tensor);
  }
}

void judge_stages(Judged& judged) {
  const RefitInfo& info = judged.info;
  std::map<std::string_view, const BulkTensor*> first_of_layer;
  const std::string others = staged_layers(info);
  for (std::uint32_t i = 0; i < info.tensors.size(); ++i) {
    const BulkTensor& tensor = info.tensors[i];
    judge_stage(judged, tensor, others);
    const bool out_of_range =
        info.stages > 1 ? !tensor.stage || *tensor.stage >= info.stages : tensor.stage.value_or(0) != 0;
    if (out_of_range) judged.sources[i].sound = false;
    const auto [known, added] = judged.tensor_of_name.emplace(tensor.name, i);
    if (!added) {
      judge_repeated(judged, info.tensors[known->second], tensor);
      continue;
    }
    const BulkTensor& first = *first_of_layer.emplace(tensor.layer, &tensor).first->second;
    if (!tensor.stage || !first.stage || *tensor.stage == *first.stage) continue;
    judged.faults.add(
        "layer " + tensor.layer,
        {below(tensor, "pp_stage"), fmt::format("stage {} of {}", *tensor.stage, quoted(tensor)),
         fmt::format("stage {}, where {} of the same layer is", *first.stage, quoted(first)),
         fmt::format("{}", *first.stage)});
  }
}

}  // namespace isthmus::refit_info

#include "model/engine_views.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace isthmus {
namespace {

/// Names of gate, up and down: HuggingFace's usual ones, and those of Mixtral and its like.
struct Feedforward {
  std::string_view gate, up, down;
};
constexpr std::array feedforward_names{Feedforward{"gate_proj", "up_proj", "down_proj"},
                                       Feedforward{"w1", "w3", "w2"}};
constexpr std::array<std::string_view, 3> attention_names{"q_proj", "k_proj", "v_proj"};

std::vector<std::int64_t> extents_of(const Region& region) {
  std::vector<std::int64_t> extents;
  for (std::size_t d = 0; d < region.dimensions; ++d)
    extents.push_back(region.end.at(d) - region.begin.at(d));
  return extents;
}

}  // namespace

/// "model.layers.0.mlp." "gate_proj" ".weight"
struct EngineViews::Name {
  std::string stem, projection, suffix;

  explicit Name(const std::string& full) {
    const std::size_t last = full.rfind('.');
    const std::size_t before = last == std::string::npos || last == 0 ? last : full.rfind('.', last - 1);
    const std::size_t begin = last == std::string::npos || before == std::string::npos ? 0 : before + 1;
    stem = full.substr(0, begin);
    projection = full.substr(begin, last == std::string::npos ? last : last - begin);
    suffix = last == std::string::npos ? "" : full.substr(last);
  }
  std::string stacked(std::string_view other) const {
    return fmt::format("{}{}_{}", stem, other, suffix.empty() ? "weight" : suffix.substr(1));
  }
  std::string with(std::string_view other) const { return fmt::format("{}{}{}", stem, other, suffix); }
};

struct EngineViews::Shard {
  const RefitTensor* tensor;
  Region region;

  std::int64_t rows() const { return tensor->shape.front(); }
  std::int64_t begin() const { return region.begin.front(); }
  std::int64_t held(std::size_t dimension) const {
    return region.end.at(dimension) - region.begin.at(dimension);
  }
};

EngineViews::EngineViews(const Refit& refit) : refit_(refit) {
  for (std::uint32_t i = 0; i < refit.tensors.size(); ++i) {
    if (!refit.tensors[i].tensor.copy) by_name_.emplace(refit.tensors[i].tensor.name, TensorId{i});
  }
}

/// What a rank holds of a tensor of this name; nothing where there is no such tensor on the rank.
std::optional<EngineViews::Shard> EngineViews::shard(const std::string& name, Engine engine,
                                                     Rank rank) const {
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return std::nullopt;
  const RefitEntry& entry = refit_.tensors[known->second.index()];
  const Geometry& geometry = refit_.geometries[entry.geometry];
  const Layout& layout = engine == Engine::megatron ? geometry.source : geometry.target;
  const Rank base = engine == Engine::megatron ? entry.source_base : entry.target_base;
  const std::vector<Rank>& ranks = layout.mesh.ranks;
  const Rank local{rank.value - base.value};
  std::size_t at = local.value;
  if (at >= ranks.size() || ranks[at] != local)
    at = to_size(std::find(ranks.begin(), ranks.end(), local) - ranks.begin());
  if (at == ranks.size()) return std::nullopt;
  return Shard{&entry.tensor, layout.region(at)};
}

/// Gate or up beside the other one; nothing for any other tensor, or where the other one is missing.
std::optional<FusedView> EngineViews::halves(const Name& name, const Shard& own, Engine engine,
                                             Rank rank) const {
  for (const Feedforward& names : feedforward_names) {
    const bool gate = name.projection == names.gate;
    if (!gate && name.projection != names.up) continue;
    const auto other = shard(name.with(gate ? names.up : names.gate), engine, rank);
    if (!other || other->region != own.region || other->tensor->expert != own.tensor->expert) continue;
    const bool expert = own.tensor->expert && own.region.dimensions > 1;
    const bool stacked = expert && engine == Engine::vllm;
    const int dimension = stacked ? 1 : 0;
    const std::int64_t half = own.held(expert ? 1 : 0);
    const std::string base = engine == Engine::megatron ? name.with("linear_fc1")
                             : stacked                  ? name.stacked("w13")
                                                        : name.with("gate_up_proj");
    return FusedView{base, dimension, gate ? 0 : half, half, half, 2 * half};
  }
  return std::nullopt;
}

bool EngineViews::is_attention(const Name& name) const {
  const bool named =
      std::find(attention_names.begin(), attention_names.end(), name.projection) != attention_names.end();
  return named && std::all_of(attention_names.begin(), attention_names.end(),
                              [&](std::string_view other) { return by_name_.contains(name.with(other)); });
}

/// What the rank holds of q, k and v.
std::vector<std::optional<EngineViews::Shard>> EngineViews::heads(const Name& name, Engine engine,
                                                                  Rank rank) const {
  std::vector<std::optional<Shard>> shards;
  for (const std::string_view other : attention_names)
    shards.push_back(shard(name.with(other), engine, rank));
  return shards;
}

std::optional<FusedView> EngineViews::interleaved(const Name& name, Rank rank) const {
  const auto shards = heads(name, Engine::megatron, rank);
  if (!shards[0] || !shards[1] || !shards[2]) return std::nullopt;
  const std::int64_t groups = shards[1]->tensor->key_value_heads;
  if (groups == 0) return std::nullopt;
  const auto output = by_name_.find(name.stem + "o_proj.weight");
  if (output != by_name_.end() &&
      refit_.tensors[output->second.index()].tensor.shape.back() != shards[0]->rows())
    return std::nullopt;
  FusedView view{name.with("linear_qkv"), 0, 0, 0, 0, 0};
  std::int64_t held_groups = -1;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const Shard& part = *shards[i];
    const std::int64_t rows = part.rows() / groups;  // of one group
    const std::int64_t held = part.held(0);
    if (rows * groups != part.rows() || held % rows != 0 || part.begin() % rows != 0) return std::nullopt;
    if (held_groups >= 0 && held != held_groups * rows) return std::nullopt;
    held_groups = held / rows;
    if (attention_names.at(i) == name.projection) {
      view.offset = view.stride;
      view.block = rows;
    }
    view.stride += rows;
  }
  view.extent = held_groups * view.stride;
  return view;
}

std::optional<FusedView> EngineViews::concatenated(const Name& name, Rank rank) const {
  FusedView view{name.with("qkv_proj"), 0, 0, 0, 0, 0};
  for (const std::optional<Shard>& part : heads(name, Engine::vllm, rank)) {
    if (!part) return std::nullopt;
    if (part->tensor->name == name.with(name.projection)) {
      view.offset = view.extent;
      view.block = view.stride = part->held(0);
    }
    view.extent += part->held(0);
  }
  return view;
}

/// Where a tensor stands that shares its buffer with no other one. `rows`: its extent on dimension 0.
FusedView EngineViews::alone(const Name& name, const RefitTensor& tensor, Engine engine, std::int64_t rows) {
  const bool down = std::any_of(feedforward_names.begin(), feedforward_names.end(),
                                [&](const Feedforward& names) { return name.projection == names.down; });
  std::string base = tensor.name;
  if (tensor.expert && down) base = engine == Engine::megatron ? name.with("linear_fc2") : name.stacked("w2");
  return {std::move(base), 0, 0, rows, rows, rows};
}

std::vector<LocalView> EngineViews::of(TensorId tensor, Engine engine, std::size_t mesh_index) const {
  const RefitEntry& entry = refit_.tensors[tensor.index()];
  const Geometry& geometry = refit_.geometries[entry.geometry];
  const bool megatron = engine == Engine::megatron;
  const Layout& layout = megatron ? geometry.source : geometry.target;
  const Rank base = megatron ? entry.source_base : entry.target_base;
  const Rank rank{base.value + layout.mesh.ranks[mesh_index].value};
  const Shard own{&entry.tensor, layout.region(mesh_index)};
  if (own.region.empty()) return {};
  const Name name(entry.tensor.name);
  std::vector<std::int64_t> extents = extents_of(own.region);
  if (megatron && layout.chunk_rule == ChunkRule::ceil) {  // FSDP: every tensor is cut by itself
    const std::int64_t rows = extents.front();
    return {{entry.tensor.name,
             std::move(extents),
             entry.tensor.dtype,
             {entry.tensor.name, 0, 0, rows, rows, rows}}};
  }
  std::optional<FusedView> view = halves(name, own, engine, rank);
  if (!view && is_attention(name)) {
    view = megatron ? interleaved(name, rank) : concatenated(name, rank);
    if (!view) return {};
  }
  const bool per_expert = megatron && entry.tensor.expert && extents.size() > 1;
  if (per_expert) extents.erase(extents.begin());
  if (!view) view = alone(name, entry.tensor, engine, extents.front());
  if (!per_expert) return {{entry.tensor.name, std::move(extents), entry.tensor.dtype, std::move(*view)}};
  std::vector<LocalView> views;
  for (std::int64_t expert = own.region.begin[0]; expert < own.region.end[0]; ++expert) {
    views.push_back({entry.tensor.name, extents, entry.tensor.dtype, *view});
    views.back().view.base += fmt::format(" of expert {}", expert);
  }
  return views;
}

}  // namespace isthmus

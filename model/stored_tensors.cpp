#include "model/stored_tensors.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/error.hpp"
#include "model/families/family.hpp"
#include "model/tensor_name.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::int64_t max_elements = 2'000'000'000'000'000;  // as for configurations
constexpr std::size_t max_name = 1'000;

using Extents = std::vector<std::int64_t>;

std::int64_t elements(const Extents& shape) {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) product *= extent;
  return product;
}

bool is_no_parameter(std::string_view name) {
  return name.ends_with("_scale_inv") || has_name_suffix(name, "rotary_emb.inv_freq");
}

bool is_float(Dtype dtype) {
  return dtype != Dtype::u8 && dtype != Dtype::i8 && dtype != Dtype::i32 && dtype != Dtype::i64;
}

void require_plain(const StoredTensor& tensor, const std::string& file) {
  const auto refuse = [&](std::string_view found, std::string_view allowed) {
    throw InputError({file, 0, printable(tensor.name)}, found, allowed);
  };
  if (tensor.name.empty() || tensor.name.size() > max_name ||
      tensor.name.find_first_of("{}") != tensor.name.npos ||
      first_unprintable(tensor.name) != tensor.name.size()) {
    refuse("a tensor of this name",
           fmt::format("names of 1 to {} printable characters without braces", max_name));
  }
  if (!is_float(tensor.dtype)) {
    refuse(fmt::format("dtype {}", to_string(tensor.dtype)),
           "floating-point tensors; packed or integer weights do not show the model's shapes");
  }
  std::int64_t product = 1;
  for (const std::int64_t extent : tensor.shape) {
    if (extent < 1) refuse(fmt::format("a dimension of {}", extent), "dimensions from 1");
    if (extent > max_elements / product) refuse("more elements", fmt::format("at most {}", max_elements));
    product *= extent;
  }
}

/// What the list as a whole tells.
struct Decoder {
  std::string stack;  // "model.layers."
  int layers = 0;
};

bool is_extra(std::string_view name) {
  const Role role = role_of(name, std::numeric_limits<int>::max());
  return role == Role::mtp || role == Role::vision;
}

Decoder find_decoder(const std::vector<StoredTensor>& tensors) {
  std::map<std::string, std::pair<std::int64_t, int>> stacks;  // parameters, layers
  int first_appended = std::numeric_limits<int>::max();
  for (const StoredTensor& tensor : tensors) {
    const PatternName name = take_apart(tensor.name);
    if (name.layer < 0 || is_extra(tensor.name)) continue;
    auto& [parameters, layers] = stacks[name.stack];
    parameters += elements(tensor.shape);
    layers = std::max(layers, name.layer + 1);
    if (name.text == "model.layers.{l}.eh_proj.weight") first_appended = std::min(first_appended, name.layer);
  }
  const auto largest = std::max_element(stacks.begin(), stacks.end(), [](const auto& a, const auto& b) {
    return a.second.first < b.second.first;
  });
  if (largest == stacks.end()) return {};
  const bool appended = largest->first == "model.layers.";
  return {largest->first,
          appended ? std::min(largest->second.second, first_appended) : largest->second.second};
}

Home home_of(const PatternName& name, Role role, const Decoder& decoder) {
  if (role == Role::mtp) return Home::last_stage;
  if (role == Role::vision) return Home::first_stage;
  if (name.layer >= 0) return name.stack == decoder.stack ? Home::layer : Home::first_stage;
  return name.text.find("embed") != std::string::npos ? Home::first_stage : Home::last_stage;
}

// Tensors of one key are one pattern, if each of their layers holds the same number of experts.
using Key = std::tuple<std::string, Extents, Dtype, Role, Home>;
using Members = std::map<int, std::set<std::int64_t>>;  // layer (-1 without) -> experts (-1 without)

std::int64_t expert_count(const Key& key, int layer, const std::set<std::int64_t>& experts,
                          const std::string& file) {
  if (*experts.begin() < 0) return 0;
  const auto count = static_cast<std::int64_t>(experts.size());
  if (*experts.rbegin() == count - 1) return count;
  throw InputError({file, 0, std::get<0>(key)},
                   fmt::format("{} experts of shape [{}] up to number {} in layer {}", count,
                               fmt::join(std::get<1>(key), ", "), *experts.rbegin(), layer),
                   "experts 0, 1, 2, ... of one shape and dtype in each layer");
}

void add_patterns(Inventory& inventory, const Key& key, const Members& members, const std::string& file) {
  std::map<std::int64_t, std::vector<int>> layers_by_count;
  for (const auto& [layer, experts] : members) {
    layers_by_count[expert_count(key, layer, experts, file)].push_back(layer);
  }
  for (auto& [count, layers] : layers_by_count) {
    TensorPattern& pattern = inventory.patterns.emplace_back();
    std::tie(pattern.name, pattern.shape, pattern.stored, pattern.role, pattern.home) = key;
    pattern.tensor_parallel =
        pattern.role == Role::vision ? TensorParallel::replicated : split_of(pattern.name);
    pattern.experts = count;
    if (layers.front() >= 0) pattern.layers = std::move(layers);
    inventory.experts = std::max(inventory.experts, count);
  }
}

// [experts, 2 x inner, hidden] with [experts, hidden, inner], or both transposed: the pair tells which.
bool is_transposed(const Extents& gate_up, const Extents& down, const Location& where) {
  if (gate_up.size() == 3 && down.size() == 3 && gate_up[0] == down[0]) {
    if (gate_up[1] == 2 * down[2] && gate_up[2] == down[1]) return false;
    if (gate_up[2] == 2 * down[1] && gate_up[1] == down[2]) return true;
  }
  throw InputError(where,
                   fmt::format("[{}] beside down_proj [{}]", fmt::join(gate_up, ", "), fmt::join(down, ", ")),
                   "[experts, 2 x inner, hidden] beside [experts, hidden, inner], or both transposed");
}

std::vector<TensorPattern*> patterns_named(Inventory& inventory, std::string_view name) {
  std::vector<TensorPattern*> found;
  for (TensorPattern& pattern : inventory.patterns) {
    if (pattern.name == name) found.push_back(&pattern);
  }
  return found;
}

// `stem` ends in "experts.". Every gate_up_proj must fit every down_proj.
void mark_fused_experts_of(Inventory& inventory, const std::string& stem, const std::string& file) {
  std::vector<TensorPattern*> fused = patterns_named(inventory, stem + "gate_up_proj");
  const std::vector<TensorPattern*> downs = patterns_named(inventory, stem + "down_proj");
  const Location where{file, 0, stem + "gate_up_proj"};
  bool transposed = is_transposed(fused.empty() ? Extents{} : fused.front()->shape,
                                  downs.empty() ? Extents{} : downs.front()->shape, where);
  for (const TensorPattern* gate_up : fused) {
    for (const TensorPattern* down : downs) {
      if (is_transposed(gate_up->shape, down->shape, where) != transposed) {
        throw InputError(where, "experts of both orientations", "one orientation in all layers");
      }
    }
  }
  fused.insert(fused.end(), downs.begin(), downs.end());
  for (TensorPattern* pattern : fused) pattern->transposed = transposed;
  for (const char* bias : {"gate_up_proj_bias", "down_proj_bias"}) {
    for (TensorPattern* pattern : patterns_named(inventory, stem + bias)) {
      if (pattern->shape.size() == 2) fused.push_back(pattern);
    }
  }
  for (TensorPattern* pattern : fused) {
    pattern->experts = pattern->shape.front();
    pattern->fused_experts = true;
    inventory.experts = std::max(inventory.experts, pattern->experts);
  }
}

void mark_fused_experts(Inventory& inventory, const std::string& file) {
  std::set<std::string> stems;
  for (const TensorPattern& pattern : inventory.patterns) {
    for (const std::string_view name : {"gate_up_proj", "down_proj"}) {
      if (!has_name_suffix(pattern.name, "experts." + std::string(name))) continue;
      stems.insert(pattern.name.substr(0, pattern.name.size() - name.size()));
    }
  }
  for (const std::string& stem : stems) mark_fused_experts_of(inventory, stem, file);
}

}  // namespace

Inventory group_tensors(const std::vector<StoredTensor>& tensors, const std::string& file,
                        std::string model) {
  std::set<std::string_view> names;
  std::int64_t sum = 0;
  for (const StoredTensor& tensor : tensors) {
    require_plain(tensor, file);
    sum += elements(tensor.shape);
    if (!names.insert(tensor.name).second) {
      throw InputError({file, 0, tensor.name}, "the tensor stands there twice");
    }
    if (sum > max_elements) {
      throw InputError({file, 0, ""}, fmt::format("more than {} parameters", max_elements),
                       "a smaller model");
    }
  }
  const Decoder decoder = find_decoder(tensors);
  std::map<Key, Members> groups;
  for (const StoredTensor& tensor : tensors) {
    if (is_no_parameter(tensor.name)) continue;
    const PatternName name = take_apart(tensor.name);
    const Role role = role_of(tensor.name, decoder.layers);
    const Key key{name.text, tensor.shape, tensor.dtype, role, home_of(name, role, decoder)};
    groups[key][name.layer].insert(name.expert);
  }
  if (groups.empty()) throw InputError({file, 0, ""}, "no tensors", "at least one tensor");
  Inventory inventory;
  inventory.model = std::move(model);
  inventory.layers = decoder.layers;
  for (const auto& [key, members] : groups) add_patterns(inventory, key, members, file);
  mark_fused_experts(inventory, file);
  return inventory;
}

}  // namespace isthmus

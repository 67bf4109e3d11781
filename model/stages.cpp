#include "model/stages.hpp"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

namespace isthmus {
namespace {

using Faults = std::vector<InputFault>;

/// True when `layers` fill the stages with these numbers on the outer ones.
bool fits(int layers, int stages, std::optional<int> first, std::optional<int> last) {
  const int rest = layers - first.value_or(0) - last.value_or(0);
  const int even_stages = stages - (first ? 1 : 0) - (last ? 1 : 0);
  if (rest < 0 || even_stages < 0) return false;
  return even_stages == 0 ? rest == 0 : rest % even_stages == 0;
}

/// The layers of one outer stage closest to what it has (or would have evenly) that make the rest divide.
std::string nearest_split(const TrainSpec& train, int layers) {
  const bool move_first = train.layers_first || !train.layers_last;
  const int start = move_first ? train.layers_first.value_or((layers + train.pp - 1) / train.pp)
                               : train.layers_last.value_or(0);
  for (int distance = 0; distance <= layers; ++distance) {
    for (const int number : {start - distance, start + distance}) {
      const std::optional<int> first = move_first ? std::optional(number) : train.layers_first;
      const std::optional<int> last = move_first ? train.layers_last : std::optional(number);
      if (number < 1 || !fits(layers, train.pp, first, last)) continue;
      return fmt::format("{} layers on the {} stage", number, move_first ? "first" : "last");
    }
  }
  return "leave it out";
}

/// Layers of each stage by Megatron-LM's rule. Requires that they fit.
std::vector<int> megatron_counts(const TrainSpec& train, int layers) {
  const int rest = layers - train.layers_first.value_or(0) - train.layers_last.value_or(0);
  const int even_stages = train.pp - (train.layers_first ? 1 : 0) - (train.layers_last ? 1 : 0);
  std::vector<int> counts(to_size(train.pp), even_stages == 0 ? 0 : rest / even_stages);
  if (train.layers_first) counts.front() = *train.layers_first;
  if (train.layers_last) counts.back() = *train.layers_last;
  return counts;
}

void judge_megatron(const Scenario& scenario, int layers, Faults& faults) {
  const TrainSpec& train = *scenario.train;
  if (train.layers_first && train.layers_last && train.pp == 1) {
    faults.push_back({scenario.at("train.layers_last"), "layers_first and layers_last",
                      "one of them when pp is 1", "leave it out"});
    return;
  }
  const int outer = train.layers_first.value_or(0) + train.layers_last.value_or(0);
  if (outer > layers) {
    faults.push_back({scenario.at(train.layers_first ? "train.layers_first" : "train.layers_last"),
                      fmt::format("{} layers on the outer stages", outer),
                      fmt::format("at most the {} layers of the model", layers), "leave it out"});
    return;
  }
  if (!fits(layers, train.pp, train.layers_first, train.layers_last)) {
    const int rest = layers - train.layers_first.value_or(0) - train.layers_last.value_or(0);
    const int even_stages = train.pp - (train.layers_first ? 1 : 0) - (train.layers_last ? 1 : 0);
    const std::string_view key = train.layers_first  ? "train.layers_first"
                                 : train.layers_last ? "train.layers_last"
                                                     : "train.pp";
    faults.push_back(
        {scenario.at(key), fmt::format("{} of {} layers left for {} stages", rest, layers, even_stages),
         "a rest that the stages divide (set layers_first and layers_last)", nearest_split(train, layers)});
    return;
  }
  std::int64_t common = 0;
  const std::vector<int> counts = megatron_counts(train, layers);
  for (const int count : counts) common = std::gcd(common, std::int64_t{count});
  if (common % train.vpp == 0) return;
  faults.push_back({scenario.at("train.vpp"), fmt::format("{}", train.vpp),
                    fmt::format("a divisor of every stage's layers ({})",
                                fmt::join(std::set<int>(counts.begin(), counts.end()), ", ")),
                    nearest_divisors(train.vpp, common)});
}

/// A list per stage holds every layer once.
void judge_lists(const Scenario& scenario, std::string_view key, const StageLayers& stages, int pp,
                 int layers, Faults& faults) {
  if (static_cast<int>(stages.size()) != pp) {
    faults.push_back({scenario.at(key), fmt::format("lists for {} stages", stages.size()),
                      fmt::format("{}, one per stage", pp), fmt::format("{} lists", pp)});
  }
  std::vector<int> holders(to_size(layers), 0);
  std::vector<int> outside;
  for (const std::vector<int>& list : stages) {
    for (const int layer : list) {
      if (layer < layers) {
        ++holders[to_size(layer)];
      } else {
        outside.push_back(layer);
      }
    }
  }
  if (!outside.empty()) {
    const std::string others = outside.size() == 1 ? "" : fmt::format(" and {} more", outside.size() - 1);
    faults.push_back({scenario.at(key), fmt::format("layer {}{}", outside.front(), others),
                      fmt::format("0 to {} (the model's layers)", layers - 1), "leave it out"});
  }
  const auto wrong = std::find_if(holders.begin(), holders.end(), [](int count) { return count != 1; });
  if (wrong == holders.end()) return;
  const auto others = std::count_if(wrong + 1, holders.end(), [](int count) { return count != 1; });
  faults.push_back({scenario.at(key),
                    fmt::format("layer {} on {} stages{}", wrong - holders.begin(), *wrong,
                                others == 0 ? "" : fmt::format(", and {} more layers", others)),
                    "each layer on one stage", "each layer of the model in one list"});
}

void judge_train(const Scenario& scenario, int layers, Faults& faults) {
  const TrainSpec& train = *scenario.train;
  const bool proportional = train.layer_split == LayerSplit::proportional;
  if (!proportional && train.stages.empty()) return judge_megatron(scenario, layers, faults);
  const std::string_view rule = train.stages.empty() ? "layer_split: proportional" : "stages";
  const auto exclude = [&](bool set, std::string_view key, std::string found) {
    if (set)
      faults.push_back(
          {scenario.at(key), std::move(found), fmt::format("none with {}", rule), "leave it out"});
  };
  exclude(train.layers_first.has_value(), "train.layers_first", "a number of layers");
  exclude(train.layers_last.has_value(), "train.layers_last", "a number of layers");
  exclude(train.vpp > 1, "train.vpp", fmt::format("{}", train.vpp));
  exclude(proportional && !train.stages.empty(), "train.layer_split", "proportional");
  if (!train.stages.empty()) {
    judge_lists(scenario, "train.stages", train.stages, train.pp, layers, faults);
  }
}

Faults generate_faults(const Scenario& scenario, int layers) {
  Faults faults;
  const GenerateSpec& generate = *scenario.generate;
  if (!generate.stages.empty()) {
    judge_lists(scenario, "generate.stages", generate.stages, generate.pp, layers, faults);
  } else if (generate.pp > std::max(layers, 1)) {
    faults.push_back({scenario.at("generate.pp"), fmt::format("{}", generate.pp),
                      fmt::format("at most the {} layers", layers), fmt::format("{}", std::max(layers, 1))});
  }
  return faults;
}

StageMap listed(const StageLayers& stages, int layers) {
  StageMap map{static_cast<int>(stages.size()), std::vector<int>(to_size(layers), 0)};
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    for (const int layer : stages[stage]) map.of_layer[to_size(layer)] = static_cast<int>(stage);
  }
  return map;
}

/// `rounds` times: for each stage in order, its share of a round.
StageMap dealt(const std::vector<int>& counts, int rounds) {
  StageMap map{static_cast<int>(counts.size()), {}};
  for (int round = 0; round < rounds; ++round) {
    for (int stage = 0; stage < map.stages; ++stage) {
      map.of_layer.insert(map.of_layer.end(), to_size(counts[to_size(stage)] / rounds), stage);
    }
  }
  return map;
}

}  // namespace

int StageMap::stage_of(const RefitTensor& tensor) const {
  if (tensor.home == Home::first_stage) return 0;
  const bool layer = tensor.home == Home::layer && to_size(tensor.layer) < of_layer.size();
  return layer ? of_layer[to_size(tensor.layer)] : stages - 1;
}

std::vector<InputFault> stage_faults(const Scenario& scenario, int layers) {
  Faults faults;
  judge_train(scenario, layers, faults);
  for (InputFault& fault : generate_faults(scenario, layers)) faults.push_back(std::move(fault));
  return faults;
}

StageMap train_stage_map(const Scenario& scenario, int layers) {
  const TrainSpec& train = *scenario.train;
  Faults faults;
  judge_train(scenario, layers, faults);
  raise_first(faults);
  if (!train.stages.empty()) return listed(train.stages, layers);
  if (train.layer_split == LayerSplit::even) return dealt(megatron_counts(train, layers), train.vpp);
  StageMap map{train.pp, {}};
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    map.of_layer.push_back(static_cast<int>(layer * train.pp / layers));
  }
  return map;
}

StageMap generate_stage_map(const Scenario& scenario, int layers) {
  const GenerateSpec& generate = *scenario.generate;
  raise_first(generate_faults(scenario, layers));
  if (!generate.stages.empty()) return listed(generate.stages, layers);
  std::vector<int> counts(to_size(generate.pp), layers / generate.pp);
  for (int extra = 0; extra < layers % generate.pp; ++extra) ++counts[counts.size() - 2 - to_size(extra)];
  return dealt(counts, 1);
}

}  // namespace isthmus

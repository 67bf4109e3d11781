// The rules that the sizes of the grids must keep among themselves, and the split of layers over stages.

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include <fmt/format.h>

#include "model/grid.hpp"
#include "model/scenario_reader.hpp"

namespace isthmus {
namespace {

class Judge {
 public:
  explicit Judge(const Scenario& scenario) : scenario_(scenario) {}

  std::vector<InputFault> take() { return std::move(faults_); }
  bool clean() const { return faults_.empty(); }

  void at_least_one(std::string_view key, int value) {
    if (value < 1) add(key, fmt::format("{}", value), "1 or more", "1");
  }

  /// The change names numbers that fit `every_grid`, a multiple of this and of the side's other grids.
  void multiple(std::string_view key, int gpus, std::int64_t grid, std::string_view formula,
                std::int64_t every_grid) {
    if (gpus % grid == 0) return;
    add(key, fmt::format("{} GPUs", gpus), fmt::format("a multiple of {} = {}", formula, grid),
        nearest_multiples(gpus, every_grid) + " GPUs");
  }

  void expert_divisor(std::string_view key, int ep, std::int64_t experts) {
    if (ep == 1) return;
    if (experts == 0) {
      add(key, fmt::format("{}", ep), "1 (the model has no experts)", "1");
    } else if (experts % ep != 0) {
      add(key, fmt::format("{}", ep), fmt::format("a divisor of the {} experts", experts),
          nearest_divisors(ep, experts));
    }
  }

  void add(std::string_view key, std::string found, std::string allowed, std::string change) {
    faults_.push_back({scenario_.at(key), std::move(found), std::move(allowed), std::move(change)});
  }

 private:
  const Scenario& scenario_;
  std::vector<InputFault> faults_;
};

void judge_train(const TrainSpec& train, const Inventory& inventory, Judge& judge) {
  const std::int64_t etp = train.etp.value_or(train.tp);
  const std::int64_t dense = std::int64_t{train.tp} * train.cp * train.pp;
  const std::int64_t expert = inventory.experts > 0 ? etp * train.ep * train.pp : 1;
  const bool small = dense <= max_gpus && expert <= max_gpus;  // else their product may not fit
  const std::int64_t both = small ? std::lcm(dense, expert) : std::max(dense, expert);
  judge.multiple("train.gpus", train.gpus, dense, "tp x cp x pp", both);
  judge.multiple("train.gpus", train.gpus, expert, "etp x ep x pp", both);
  judge.expert_divisor("train.ep", train.ep, inventory.experts);
}

void judge_generate(const GenerateSpec& generate, const Inventory& inventory, Judge& judge) {
  judge.multiple("generate.gpus", generate.gpus, generate.tp, "tp", generate.tp);
  if (generate.dp && *generate.dp != generate.gpus / generate.tp) {
    const std::int64_t needed = std::int64_t{*generate.dp} * generate.tp;
    judge.add("generate.dp", fmt::format("{}", *generate.dp),
              fmt::format("gpus / tp = {}", generate.gpus / generate.tp),
              fmt::format("{}, or {} GPUs for {} engines of {} ranks", generate.gpus / generate.tp, needed,
                          *generate.dp, generate.tp));
  }
  if (generate.ep != 1 && generate.ep != generate.tp) {
    const bool near_tp = std::abs(generate.ep - generate.tp) < generate.ep - 1;
    judge.add("generate.ep", fmt::format("{}", generate.ep), fmt::format("1 or tp = {}", generate.tp),
              near_tp ? fmt::format("{} or 1", generate.tp) : fmt::format("1 or {}", generate.tp));
  }
  judge.expert_divisor("generate.ep", generate.ep, inventory.experts);
}

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
  return fmt::format("{} stages", 1);
}

}  // namespace

int StageMap::stage_of(const RefitTensor& tensor) const {
  if (tensor.home == Home::first_stage) return 0;
  const int last = static_cast<int>(layers.size()) - 1;
  if (tensor.home == Home::last_stage) return last;
  int first_layer = 0;
  for (int stage = 0; stage < last; ++stage) {
    first_layer += layers[to_size(stage)];
    if (tensor.layer < first_layer) return stage;
  }
  return last;
}

std::vector<InputFault> stage_faults(const Scenario& scenario, int layers) {
  const TrainSpec& train = *scenario.train;
  Judge judge(scenario);
  if (train.layer_split == LayerSplit::proportional) {
    for (const auto& [key, set] : {std::pair("train.layers_first", train.layers_first.has_value()),
                                   std::pair("train.layers_last", train.layers_last.has_value())}) {
      if (set) judge.add(key, "a number of layers", "none with layer_split: proportional", "leave it out");
    }
    return judge.take();
  }
  if (train.layers_first && train.layers_last && train.pp == 1) {
    judge.add("train.layers_last", "layers_first and layers_last", "one of them when pp is 1",
              "leave it out");
    return judge.take();
  }
  if (fits(layers, train.pp, train.layers_first, train.layers_last)) return {};
  const int rest = layers - train.layers_first.value_or(0) - train.layers_last.value_or(0);
  const int even_stages = train.pp - (train.layers_first ? 1 : 0) - (train.layers_last ? 1 : 0);
  const std::string_view key = train.layers_first  ? "train.layers_first"
                               : train.layers_last ? "train.layers_last"
                                                   : "train.pp";
  judge.add(key, fmt::format("{} of {} layers left for {} stages", rest, layers, even_stages),
            "a rest that the stages divide (set layers_first and layers_last)", nearest_split(train, layers));
  return judge.take();
}

StageMap stage_map(const Scenario& scenario, int layers) {
  raise_first(stage_faults(scenario, layers));
  const TrainSpec& train = *scenario.train;
  StageMap map{std::vector<int>(to_size(train.pp), 0)};
  if (train.layer_split == LayerSplit::proportional) {
    for (std::int64_t layer = 0; layer < layers; ++layer) ++map.layers[to_size(layer * train.pp / layers)];
    return map;
  }
  const int rest = layers - train.layers_first.value_or(0) - train.layers_last.value_or(0);
  const int even_stages = train.pp - (train.layers_first ? 1 : 0) - (train.layers_last ? 1 : 0);
  map.layers.assign(to_size(train.pp), even_stages == 0 ? 0 : rest / even_stages);
  if (train.layers_first) map.layers.front() = *train.layers_first;
  if (train.layers_last) map.layers.back() = *train.layers_last;
  return map;
}

std::vector<InputFault> grid_faults(const Scenario& scenario, const Inventory& inventory) {
  const TrainSpec& train = *scenario.train;
  const GenerateSpec& generate = *scenario.generate;
  Judge judge(scenario);
  judge.at_least_one("train.gpus", train.gpus);
  judge.at_least_one("train.tp", train.tp);
  judge.at_least_one("train.cp", train.cp);
  judge.at_least_one("train.ep", train.ep);
  judge.at_least_one("train.pp", train.pp);
  judge.at_least_one("train.etp", train.etp.value_or(train.tp));
  judge.at_least_one("generate.gpus", generate.gpus);
  judge.at_least_one("generate.tp", generate.tp);
  judge.at_least_one("generate.ep", generate.ep);
  if (!judge.clean()) return judge.take();  // the other rules divide by these
  judge_train(train, inventory, judge);
  judge_generate(generate, inventory, judge);
  return judge.take();
}

}  // namespace isthmus

#include "model/nearest_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "model/grid.hpp"
#include "model/scenario_model.hpp"
#include "model/stages.hpp"

namespace isthmus {
namespace {

struct NearLayout {
  TrainSpec train;
  int changed = 0;  // settings
  bool other_gpus = false;
  double distance = 0;  // sum of the logarithms of their factors
};

bool is_training(const InputFault& fault) { return fault.where.key.starts_with("train."); }

class LayoutSearch {
 public:
  LayoutSearch(const Scenario& scenario, int gpus)
      : scenario_(scenario),
        trial_(scenario),
        inventory_(cut_inventory(scenario, read_full_inventory(scenario))),
        gpus_(gpus) {}

  std::vector<TrainSpec> run(std::size_t most) {
    other_sizes();
    other_gpus();
    std::stable_sort(found_.begin(), found_.end(), [](const NearLayout& a, const NearLayout& b) {
      return std::tuple(a.changed, a.other_gpus, a.distance) <
             std::tuple(b.changed, b.other_gpus, b.distance);
    });
    std::vector<TrainSpec> nearest;
    for (const NearLayout& each : found_) {
      if (nearest.size() == most) break;
      if (serves(each.train)) nearest.push_back(each.train);
    }
    return nearest;
  }

 private:
  static constexpr int most_factor = 64;

  /// The GPUs as they are, with other parallel sizes.
  void other_sizes() {
    const TrainSpec& now = *scenario_.train;
    for (int tp = 1; tp <= most_factor; tp *= 2) {
      for (int pp = 1; pp <= std::min(inventory_.layers, most_factor); ++pp) {
        for (int ep = 1; ep <= std::max<std::int64_t>(1, inventory_.experts); ep *= 2) {
          TrainSpec train = now;
          train.gpus = gpus_;
          train.tp = tp;
          train.ep = ep;
          train.pp = pp;
          if (pp != now.pp) deal_layers(train);
          add(train);
        }
        if (now.tp == tp && now.ep > 1 && (now.ep & (now.ep - 1)) != 0) {
          TrainSpec train = now;
          train.gpus = gpus_;
          train.pp = pp;
          if (pp != now.pp) deal_layers(train);
          add(train);
        }
      }
    }
  }

  /// The parallel sizes as they are, with the next smaller and the next larger number of GPUs.
  void other_gpus() {
    const TrainSpec& now = *scenario_.train;
    const std::int64_t experts = std::int64_t{now.ep} * now.etp.value_or(now.tp) * now.pp;
    const std::int64_t dense = std::int64_t{now.tp} * now.cp * now.pp;
    const std::int64_t step = inventory_.experts > 0 ? std::lcm(dense, experts) : dense;
    for (const std::int64_t gpus : {gpus_ / step * step, (gpus_ / step + 1) * step}) {
      TrainSpec train = now;
      train.gpus = static_cast<int>(gpus);
      if (gpus > 0) add(train);
    }
  }

  void deal_layers(TrainSpec& train) const {
    train.stages.clear();
    train.vpp = 1;
    train.layer_split = LayerSplit::even;
    train.layers_first.reset();
    train.layers_last.reset();
    const int layers = inventory_.layers;
    if (layers % train.pp == 0) return;
    const int rest = layers - (train.pp - 2) * ((layers + train.pp - 1) / train.pp);
    train.layers_last = rest / 2;
    train.layers_first = rest - rest / 2;
  }

  void add(const TrainSpec& train) {
    trial_.train = train;
    const std::vector<InputFault> faults = grid_faults(trial_, inventory_);
    if (std::any_of(faults.begin(), faults.end(), is_training)) return;
    NearLayout layout{train};
    const TrainSpec& now = *scenario_.train;
    for (const auto& [old, fresh] : {std::pair(now.tp, train.tp), std::pair(now.ep, train.ep),
                                     std::pair(now.pp, train.pp), std::pair(gpus_, train.gpus)}) {
      if (old == fresh) continue;
      ++layout.changed;
      layout.distance += std::abs(std::log(static_cast<double>(fresh) / old));
    }
    layout.other_gpus = train.gpus != gpus_;
    found_.push_back(std::move(layout));
  }

  /// What looks at every tensor, and is asked for the nearest only.
  bool serves(const TrainSpec& train) {
    trial_.train = train;
    std::vector<InputFault> faults = stage_faults(trial_, inventory_.layers);
    if (std::any_of(faults.begin(), faults.end(), is_training)) return false;
    faults = layout_faults(trial_, list_tensors(trial_, inventory_));
    return std::none_of(faults.begin(), faults.end(), is_training);
  }

  const Scenario& scenario_;
  Scenario trial_;
  Inventory inventory_;
  int gpus_;
  std::vector<NearLayout> found_;
};

}  // namespace

std::vector<TrainSpec> nearest_train_layouts(const Scenario& scenario, int gpus, std::size_t most) {
  return LayoutSearch(scenario, gpus).run(most);
}

std::string layout_text(const TrainSpec& train) {
  return fmt::format("{} GPUs: tp {}, ep {}, pp {}", train.gpus, train.tp, train.ep, train.pp);
}

}  // namespace isthmus

#include "report/sweep_sides.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/grid.hpp"
#include "model/placement.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/stages.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

SideFault first_of(const std::vector<InputFault>& faults) {
  if (faults.empty()) return {};
  const InputFault& fault = faults.front();
  return {fault.where.key, fmt::format("found {}; allowed: {}", fault.found, fault.allowed)};
}

/// One GPU, for a side that is not looked at.
TrainSpec smallest_train() {
  TrainSpec spec;
  spec.gpus = 1;
  return spec;
}
GenerateSpec smallest_generate() {
  GenerateSpec spec;
  spec.gpus = 1;
  return spec;
}

bool lists(const std::vector<int>& numbers, int number) {
  return numbers.empty() || std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

SideFault beyond(std::string_view side, Bytes needed, std::string_view what, Bytes reserve, Bytes gpu) {
  if (needed + reserve <= gpu) return {};
  return {fmt::format("memory.{}", side),
          fmt::format("{} of {} and {} in reserve; allowed: {}", size_text(needed), what, size_text(reserve),
                      size_text(gpu))};
}

std::vector<RefitTensor> representatives(const ClassedTensors& tensors) {
  std::vector<RefitTensor> list;
  for (const TensorClass& each : tensors.classes) list.push_back(each.tensor);
  return list;
}

}  // namespace

std::vector<TrainSpec> train_specs(const SweepSpace& space) {
  const TrainChoices& lists = space.train;
  std::vector<std::optional<int>> etps(lists.etp.begin(), lists.etp.end());
  if (etps.empty()) etps.emplace_back();
  std::vector<TrainSpec> specs;
  TrainSpec spec;
  spec.order = lists.order;
  spec.vocabulary_multiple = lists.vocabulary_multiple;
  for (const int gpus : lists.gpus) {
    spec.gpus = gpus;
    for (const int tp : lists.tp) {
      spec.tp = tp;
      for (const int cp : lists.cp) {
        spec.cp = cp;
        for (const int ep : lists.ep) {
          spec.ep = ep;
          for (const std::optional<int>& etp : etps) {
            spec.etp = etp;
            for (const int pp : lists.pp) {
              spec.pp = pp;
              for (const int fsdp : lists.fsdp) {
                spec.fsdp = fsdp;
                specs.push_back(spec);
              }
            }
          }
        }
      }
    }
  }
  return specs;
}

std::vector<GenerateSpec> generate_specs(const SweepSpace& space) {
  std::vector<GenerateSpec> specs;
  GenerateSpec spec;
  spec.quantize_mxfp8 = space.generate.quantize_mxfp8;
  spec.vocabulary_multiple = space.generate.vocabulary_multiple;
  for (const int gpus : space.generate.gpus) {
    spec.gpus = gpus;
    for (const int tp : space.generate.tp) {
      spec.tp = tp;
      for (const int ep : space.generate.ep) {
        spec.ep = ep;
        for (const int pp : space.generate.pp) {
          spec.pp = pp;
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

Scenario sweep_side_scenario(const SweepSpace& space, std::uint32_t model, const TrainSpec& train,
                             const GenerateSpec& generate) {
  Scenario scenario;
  scenario.name = space.name;
  scenario.fabric = space.fabric;
  scenario.model = space.models[model];
  scenario.train = train;
  scenario.generate = generate;
  scenario.refit = space.refit;
  scenario.refit.bulk = space.bulk.front();
  scenario.refit.streams = space.streams.front();
  scenario.calibration = space.calibrations.front();
  scenario.file = space.file;
  return scenario;
}

Fabric sweep_fabric(const SweepSpace& space) {
  Scenario scenario;
  scenario.fabric = space.fabric;
  scenario.file = space.file;
  scenario.locations = space.locations;
  return scenario_fabric(scenario);
}

SideFault placement_fault(const Scenario& scenario, const Fabric& fabric) {
  return first_of(placement_faults(scenario, fabric));
}

SweepSides::SweepSides(const SweepSpace& space, std::uint32_t model)
    : space_(space), model_(model), tensors_(space.bulk.size()) {
  Scenario scenario = sweep_side_scenario(space, model, smallest_train(), smallest_generate());
  scenario.generate->quantize_mxfp8 = space.generate.quantize_mxfp8;
  scenario.locations = space.locations;
  inventory_ = cut_inventory(scenario, read_full_inventory(scenario));
}

const ClassedTensors& SweepSides::tensors(std::uint32_t bulk, int generate_stages) {
  std::optional<ClassedTensors>& made = tensors_[bulk][generate_stages > 1 ? 1 : 0];
  if (made) return *made;
  Scenario scenario = sweep_side_scenario(space_, model_, smallest_train(), smallest_generate());
  scenario.generate->quantize_mxfp8 = space_.generate.quantize_mxfp8;
  scenario.generate->pp = generate_stages;
  scenario.refit.bulk = space_.bulk[bulk];
  return made.emplace(classed(list_tensors(scenario, inventory_)));
}

void SweepSides::balance_layers(TrainSpec& train) const {
  const int pp = train.pp, layers = inventory_.layers;
  if (pp == 1 || layers % pp == 0) return;
  const int inner = (layers + pp - 1) / pp, rest = layers - inner * (pp - 2);
  if (rest < 2) return;  // its fault is said of pp
  train.layers_first = (rest + 1) / 2;
  train.layers_last = rest / 2;
}

SideFault SweepSides::train_fault(const TrainSpec& train, Bytes& memory) {
  const Scenario scenario = sweep_side_scenario(space_, model_, train, smallest_generate());
  const ClassedTensors& all = tensors(0, 1);
  if (SideFault fault = first_of(grid_faults(scenario, inventory_)); fault.found()) return fault;
  if (SideFault fault = first_of(stage_faults(scenario, inventory_.layers)); fault.found()) return fault;
  if (SideFault fault = first_of(layout_faults(scenario, representatives(all))); fault.found()) return fault;
  const int replicas = train.gpus / (train.tp * train.cp * train.pp);
  if (!lists(space_.train.dp, replicas)) return {"train.dp", fmt::format("{}, not in the list", replicas)};
  memory = train_memory(scenario, all, inventory_.layers);
  return beyond("train", memory, "weights, gradients and optimiser states", space_.memory.activations,
                space_.memory.gpu);
}

SideFault SweepSides::generate_fault(const GenerateSpec& generate, Bytes& memory) {
  const Scenario scenario = sweep_side_scenario(space_, model_, smallest_train(), generate);
  const ClassedTensors& all = tensors(0, generate.pp);
  if (SideFault fault = first_of(grid_faults(scenario, inventory_)); fault.found()) return fault;
  if (SideFault fault = first_of(stage_faults(scenario, inventory_.layers)); fault.found()) return fault;
  if (SideFault fault = first_of(layout_faults(scenario, representatives(all))); fault.found()) return fault;
  const int engines = generate.gpus / (generate.tp * generate.pp);
  if (!lists(space_.generate.dp, engines))
    return {"generate.dp", fmt::format("{}, not in the list", engines)};
  memory = generate_memory(scenario, all, inventory_.layers);
  return beyond("generate", memory, "weights", space_.memory.kv_cache, space_.memory.gpu);
}

}  // namespace isthmus::report

#include "model/validation.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"
#include "model/grid.hpp"
#include "model/m2n_limits.hpp"
#include "model/nemo_rl_rules.hpp"
#include "model/placement.hpp"
#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "model/stages.hpp"

namespace isthmus {
namespace {

/// Adds what no earlier rule said about the same key: one mistake often breaks several rules.
void add(Validation& validation, std::vector<InputFault> faults) {
  const std::size_t before = validation.violations.size();
  for (InputFault& fault : faults) {
    const auto end = validation.violations.begin() + static_cast<std::ptrdiff_t>(before);
    const bool known = std::any_of(validation.violations.begin(), end, [&](const InputFault& other) {
      return other.where.key == fault.where.key;
    });
    if (!known) validation.violations.push_back(std::move(fault));
  }
}

std::optional<Fabric> judge_fabric(const Scenario& scenario, Validation& validation) {
  try {
    return Fabric(scenario.fabric);
  } catch (const InputError& error) {
    InputFault fault = as_fault(error, "a value in that range");
    fault.where = scenario.at(error.where().key);
    add(validation, {std::move(fault)});
    return std::nullopt;
  }
}

void note_experts(const Scenario& scenario, const Inventory& inventory, std::vector<std::string>& notes) {
  if (inventory.experts == 0) return;
  const TrainSpec& train = *scenario.train;
  if (!train.etp && train.tp > 1) {
    notes.push_back(fmt::format("{} is not set: Megatron-LM takes it as tp = {}, not as 1",
                                scenario.at("train.etp").key, train.tp));
  }
  const auto first =
      std::find_if(inventory.patterns.begin(), inventory.patterns.end(), is_expert_unknown_to_bulk_rule);
  if (first == inventory.patterns.end() || scenario.refit.bulk.kind != BulkRule::Kind::ffn) return;
  notes.push_back(
      fmt::format("expert tensors such as {} have none of the names that the bulk rule knows "
                  "(gate_proj, up_proj, down_proj): they travel as misc",
                  first->name));
}

/// Printed layouts leave the number of GPUs open: experts fold into a stage's ranks, or the sizes multiply.
void note_readings(const Scenario& scenario, std::vector<std::string>& notes) {
  const TrainSpec& train = *scenario.train;
  const std::int64_t product = std::int64_t{train.tp} * train.cp * train.pp * train.ep;
  if (train.ep == 1 || product == train.gpus) return;
  notes.push_back(
      fmt::format("tp {} x cp {} x ep {} x pp {} with {} GPUs: experts fold into the {} ranks of a "
                  "stage, as in Megatron-LM; read as a product the sizes would be {} GPUs",
                  train.tp, train.cp, train.ep, train.pp, train.gpus, train.gpus / train.pp, product));
}

void note_shared_hosts(const Scenario& scenario, const Fabric& fabric, std::vector<std::string>& notes) {
  const std::vector<int> shared = shared_hosts(scenario, fabric);
  if (shared.empty()) return;
  notes.push_back(fmt::format("both sides use host {}{}: their ranks share GPUs there", shared.front(),
                              shared.size() == 1 ? "" : fmt::format(" and {} more", shared.size() - 1)));
}

void judge_refit(const Scenario& scenario, Validation& validation) {
  const std::optional<Fabric> fabric = judge_fabric(scenario, validation);
  Inventory inventory = read_full_inventory(scenario);
  std::vector<InputFault> of_model = model_faults(scenario, inventory);
  if (of_model.empty()) inventory = cut_inventory(scenario, std::move(inventory));
  add(validation, std::move(of_model));
  std::vector<InputFault> of_grids = grid_faults(scenario, inventory);
  const bool sizes_known = std::none_of(of_grids.begin(), of_grids.end(), [](const InputFault& fault) {
    return fault.allowed == "1 or more";  // the other rules divide by the sizes
  });
  add(validation, std::move(of_grids));
  if (!sizes_known) return;
  if (fabric) {
    add(validation, placement_faults(scenario, *fabric));
    note_shared_hosts(scenario, *fabric, validation.notes);
  }
  add(validation, stage_faults(scenario, inventory.layers));
  add(validation, layout_faults(scenario, list_tensors(scenario, inventory)));
  note_experts(scenario, inventory, validation.notes);
  note_readings(scenario, validation.notes);
}

void judge_tensors(const Scenario& scenario, Validation& validation) {
  add(validation, tensor_faults(scenario));
  if (const std::optional<Fabric> fabric = judge_fabric(scenario, validation)) {
    add(validation, rank_faults(scenario, *fabric));
  }
}

/// Of a scenario, what a recipe's rules 7 to 9 and 12 to 19 say, and what NeMo RL cannot even be told.
void judge_as_nemo_rl(const Scenario& scenario, Validation& validation) {
  if (!scenario.train) return;
  const TrainSpec& train = *scenario.train;
  const GenerateSpec& generate = *scenario.generate;
  std::vector<InputFault> faults;
  const auto require = [&](bool kept, std::string_view key, const std::string& found, std::string allowed,
                           std::string change) {
    if (!kept) faults.push_back({scenario.at(key), found, std::move(allowed), std::move(change)});
  };
  require(scenario.model->precision != WirePrecision::mxfp8, "model.dtype", "mxfp8",
          "bf16 or blockwise fp8 (nothing trains in MXFP8)", "bf16, with generate.quantize: mxfp8");
  require(train.etp.value_or(1) == 1, "train.etp", fmt::format("{}", train.etp.value_or(1)), "1, or unset",
          "1");
  require(train.stages.empty(), "train.stages", "layers per stage", "layers_first and layers_last",
          "leave it out");
  require(train.vpp == 1, "train.vpp", fmt::format("{}", train.vpp), "1", "1");
  require(train.fsdp == 1, "train.fsdp", fmt::format("{}", train.fsdp), "1 (training with Megatron)", "1");
  require(generate.ep == 1 || generate.ep == generate.tp, "generate.ep", fmt::format("{}", generate.ep),
          fmt::format("1 or tp = {}", generate.tp), fmt::format("{} or 1", generate.tp));
  require(generate.pp == 1, "generate.pp", fmt::format("{}", generate.pp), "1", "1");
  require(generate.redundant_experts == 0, "generate.redundant_experts",
          fmt::format("{}", generate.redundant_experts), "0 (experts stay where the layout puts them)", "0");
  add(validation, std::move(faults));
}

/// What no other rule covers, such as tensors too large for the fabric's rates, is left to resolving itself.
std::optional<Refit> judge_whole(const Scenario& scenario, Validation& validation) {
  if (!validation.valid()) return std::nullopt;
  try {
    return resolve(scenario);
  } catch (const InputError& error) {
    add(validation, {as_fault(error, error.allowed())});
    return std::nullopt;
  }
}

void judge_transport(const Scenario& scenario, RuleSet rules, const std::optional<Refit>& refit,
                     Validation& validation) {
  if (rules == RuleSet::general) return;
  if (!refit) {
    if (rules == RuleSet::m2n) {
      validation.notes.push_back("NCCL M2N's limits are judged once the layouts resolve");
    }
    return;
  }
  std::vector<InputFault> faults = m2n_faults(scenario, *refit);
  if (rules == RuleSet::m2n) {
    for (std::string& note : m2n_notes(*refit)) validation.notes.push_back(std::move(note));
    add(validation, std::move(faults));
    return;
  }
  for (const InputFault& fault : faults) {  // NeMo RL has transports of its own beside M2N
    validation.notes.push_back(
        fmt::format("NCCL M2N could not be the transport: {}: {}", fault.where.key, fault.found));
  }
}

}  // namespace

std::optional<RuleSet> parse_rule_set(std::string_view name) {
  if (name == "nemo-rl") return RuleSet::nemo_rl;
  if (name == "m2n") return RuleSet::m2n;
  return std::nullopt;
}

Validation validate(const Input& input, RuleSet rules) {
  Validation validation;
  validation.notes = input.notes;
  if (rules == RuleSet::nemo_rl) {
    add(validation, input.nemo_rl);
  } else if (input.nemo_rl.size() > obstacles_among(input.nemo_rl).size()) {
    validation.notes.push_back(
        fmt::format("NeMo RL's own rules violated: {} (--as nemo-rl lists them)", input.nemo_rl.size()));
  }
  add(validation, input.obstacles);
  if (!input.has_model) {
    validation.notes.push_back("no model is given (--model): tensors, grids and stages are not judged");
    return validation;
  }
  if (!input.has_layout) return validation;
  if (rules == RuleSet::nemo_rl && input.kind != InputKind::nemo_rl_recipe) {
    judge_as_nemo_rl(input.scenario, validation);
  }
  if (input.scenario.model) {
    judge_refit(input.scenario, validation);
  } else {
    judge_tensors(input.scenario, validation);
  }
  judge_transport(input.scenario, rules, judge_whole(input.scenario, validation), validation);
  return validation;
}

}  // namespace isthmus

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
#include "model/scenario_rules.hpp"
#include "model/stages.hpp"
#include "model/traffic_rules.hpp"

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
    return scenario_fabric(scenario);
  } catch (const InputError& error) {
    InputFault fault = as_fault(error, "a value in that range");
    add(validation, {std::move(fault)});
    return std::nullopt;
  }
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
  const bool grids_fit = of_grids.empty();
  add(validation, std::move(of_grids));
  if (fabric) {
    add(validation, placement_faults(scenario, *fabric));
    add(validation, disturbance_faults(scenario, *fabric));
    note_shared_hosts(scenario, *fabric, validation.notes);
  }
  add(validation, stage_faults(scenario, inventory.layers));
  const std::vector<RefitTensor> tensors = list_tensors(scenario, inventory);
  add(validation, layout_faults(scenario, tensors));
  for (std::string& note : scenario_notes(scenario, inventory, tensors)) {
    validation.notes.push_back(std::move(note));
  }
  if (grids_fit) note_readings(scenario, inventory, validation.notes);
}

void judge_tensors(const Scenario& scenario, Validation& validation) {
  add(validation, tensor_faults(scenario));
  if (const std::optional<Fabric> fabric = judge_fabric(scenario, validation)) {
    add(validation, rank_faults(scenario, *fabric));
    add(validation, disturbance_faults(scenario, *fabric));
  }
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
  for (std::string& note : fused_notes(*refit)) validation.notes.push_back(std::move(note));
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
  if (input.scenario.traffic) {
    add(validation, traffic_faults(input.scenario));
    return validation;
  }
  if (rules == RuleSet::nemo_rl && input.kind != InputKind::nemo_rl_recipe) {
    add(validation, nemo_rl_scenario_faults(input.scenario));
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

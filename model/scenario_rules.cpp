#include "model/scenario_rules.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/engine_views.hpp"
#include "model/grid.hpp"
#include "model/precision.hpp"

namespace isthmus {
namespace {

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

void note_heads(const Scenario& scenario, std::span<const RefitTensor> tensors,
                std::vector<std::string>& notes) {
  if (scenario.generate->tp == 1) return;
  const auto unknown = [](const RefitTensor& tensor) {
    const bool key_or_value = tensor.name.find(".k_proj.") != std::string::npos ||
                              tensor.name.find(".v_proj.") != std::string::npos;
    return key_or_value && tensor.tensor_parallel == TensorParallel::rows && tensor.key_value_heads == 0;
  };
  const auto first = std::find_if(tensors.begin(), tensors.end(), unknown);
  if (first == tensors.end()) return;
  notes.push_back(
      fmt::format("a list of tensors does not say how many key/value heads {} has: its rows are cut "
                  "evenly; a config.json knows, and then heads are repeated",
                  first->name));
}

}  // namespace

/// Of a scenario, what a recipe's rules 6 to 9 and 12 to 19 say, and what NeMo RL cannot even be told.
std::vector<InputFault> nemo_rl_scenario_faults(const Scenario& scenario) {
  if (!scenario.train) return {};
  const TrainSpec& train = *scenario.train;
  const GenerateSpec& generate = *scenario.generate;
  std::vector<InputFault> faults;
  const auto require = [&](bool kept, std::string_view key, const std::string& found, std::string allowed,
                           std::string change) {
    if (!kept) faults.push_back({scenario.at(key), found, std::move(allowed), std::move(change)});
  };
  require(scenario.model->precision != WirePrecision::mxfp8, "model.dtype", "mxfp8",
          "bf16 or blockwise fp8 (nothing trains in MXFP8)", "bf16, with generate.quantize: mxfp8");
  require(scenario.refit.quantise_at == QuantiseAt::target, "refit.quantize_at", "source",
          "target (generation quantises on receipt)", "target");
  require(train.etp.value_or(1) == 1, "train.etp", fmt::format("{}", train.etp.value_or(1)), "1, or unset",
          "1");
  require(train.stages.empty(), "train.stages", "layers per stage", "layers_first and layers_last",
          "leave it out");
  require(train.vpp == 1, "train.vpp", fmt::format("{}", train.vpp), "1", "1");
  require(train.fsdp == 1, "train.fsdp", fmt::format("{}", train.fsdp), "1 (training with Megatron)", "1");
  require(generate.ep == 1 || generate.ep == generate.tp, "generate.ep", fmt::format("{}", generate.ep),
          fmt::format("1 or tp = {}", generate.tp),
          generate.tp == 1 ? "1" : fmt::format("{} or 1", generate.tp));
  require(generate.ep != generate.tp || generate.ep == 1 || generate_etp(generate) == 1, "generate.etp",
          fmt::format("{}", generate_etp(generate)), "1 (whole experts)", "1");
  require(train.order == TrainSpec{}.order, "train.order", fmt::format("'{}'", train.order),
          TrainSpec{}.order, TrainSpec{}.order);
  require(train.layer_split == LayerSplit::even, "train.layer_split", "proportional", "even", "even");
  require(generate.pp == 1, "generate.pp", fmt::format("{}", generate.pp), "1", "1");
  require(generate.redundant_experts == 0, "generate.redundant_experts",
          fmt::format("{}", generate.redundant_experts), "0 (experts stay where the layout puts them)", "0");
  return faults;
}

std::vector<std::string> scenario_notes(const Scenario& scenario, const Inventory& inventory,
                                        std::span<const RefitTensor> tensors) {
  std::vector<std::string> notes;
  note_experts(scenario, inventory, notes);
  note_heads(scenario, tensors, notes);
  return notes;
}

std::vector<std::string> fused_notes(const Refit& refit) {
  if (refit.train_ranks == 0) return {};  // bare tensors declare their views
  const EngineViews views(refit);
  Bytes fused;
  std::set<std::string> bases;
  for (std::uint32_t t = 0; t < refit.tensors.size(); ++t) {
    if (refit.tensors[t].tensor.role != Role::bulk) continue;
    const Layout& target = refit.geometry(TensorId{t}).target;
    for (const LocalView& view : views.of(TensorId{t}, Engine::vllm, 0)) {
      if (view.view.extent == view.extents[to_size(view.view.dimension)]) continue;
      fused += target.bytes(target.region(0));
      std::string_view base = view.view.base;  // such as model.layers.0.mlp.gate_up_proj.weight
      if (base.ends_with(".weight")) base.remove_suffix(std::string_view(".weight").size());
      bases.emplace(base.substr(base.rfind('.') + 1));
    }
  }
  if (fused.value == 0) return {};
  return {
      fmt::format("a generation rank receives {:.2f} GB of bulk tensors into parts of fused buffers ({}): "
                  "each into a temporary, then copied in",
                  gigabytes(fused), fmt::join(bases, ", "))};
}

void note_readings(const Scenario& scenario, const Inventory& inventory, std::vector<std::string>& notes) {
  const TrainSpec& train = *scenario.train;
  const std::int64_t product = std::int64_t{train.tp} * train.cp * train.pp * train.ep;  // at most gpus x ep
  if (inventory.experts == 0 || train.ep == 1 || product == train.gpus) return;
  notes.push_back(
      fmt::format("tp {} x cp {} x ep {} x pp {} with {} GPUs: experts fold into the {} ranks of a "
                  "stage, as in Megatron-LM; read as a product the sizes would be {} GPUs",
                  train.tp, train.cp, train.ep, train.pp, train.gpus, train.gpus / train.pp, product));
}

}  // namespace isthmus

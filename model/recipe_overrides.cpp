#include "model/recipe_overrides.hpp"

#include <fmt/format.h>

#include "model/recipe_settings.hpp"
#include "model/scenario_rules.hpp"

namespace isthmus {
namespace {

void add_train(const TrainSpec& train, std::vector<std::string>& lines) {
  const auto set = [&lines](std::string_view key, int value) {
    lines.push_back(fmt::format("{}={}", megatron_key(key), value));
  };
  set("tensor_model_parallel_size", train.tp);
  set("context_parallel_size", train.cp);
  set("expert_model_parallel_size", train.ep);
  set("expert_tensor_parallel_size", 1);
  set("pipeline_model_parallel_size", train.pp);
  for (const auto& [key, layers] : {std::pair("num_layers_in_first_pipeline_stage", train.layers_first),
                                    std::pair("num_layers_in_last_pipeline_stage", train.layers_last)}) {
    lines.push_back(fmt::format("{}={}", megatron_key(key), layers ? fmt::format("{}", *layers) : "null"));
  }
}

void add_precision(const Scenario& scenario, std::vector<std::string>& lines) {
  const bool fp8 = scenario.model->precision != WirePrecision::bf16;
  const bool mx = scenario.generate->quantize_mxfp8;
  if (!fp8 && !mx) return;
  lines.push_back(vllm_key("precision") + "=fp8");
  lines.push_back(fmt::format("{}={}", vllm_key("is_mx"), mx));
  lines.push_back(fmt::format("{}={}", megatron_key("fp8_cfg.fp8_param"), fp8));
  if (fp8) lines.push_back(megatron_key("fp8_cfg.fp8_recipe") + "=blockwise");
}

std::string transport_note(std::string_view policy) {
  if (policy == "striped" || policy.starts_with("m2n-") || policy == "gather-broadcast") return "";
  return fmt::format("NeMo RL has no transport that plans as {} does; nccl_reshard is the nearest", policy);
}

}  // namespace

RecipeOverrides recipe_overrides(const Scenario& scenario, std::string_view policy, int gpus_per_host,
                                 bool experts) {
  RecipeOverrides result;
  result.reasons = nemo_rl_scenario_faults(scenario);
  const TrainSpec& train = *scenario.train;
  const GenerateSpec& generate = *scenario.generate;
  if (experts && !train.etp && train.tp > 1) {  // a recipe that leaves it out gets 1, a scenario tp
    result.reasons.push_back({scenario.at("train.etp"), fmt::format("{}, as tp", train.tp), "1", "1"});
  }
  for (const auto& [key, gpus] :
       {std::pair("train.gpus", train.gpus), std::pair("generate.gpus", generate.gpus)}) {
    if (gpus % gpus_per_host == 0) continue;
    result.reasons.push_back({scenario.at(key), fmt::format("{}", gpus),
                              fmt::format("whole hosts of {} GPUs", gpus_per_host),
                              nearest_multiples(gpus, gpus_per_host)});
  }
  if (!result.reasons.empty()) return result;
  const int hosts = (train.gpus + generate.gpus) / gpus_per_host;
  result.lines.push_back(fmt::format("cluster.num_nodes={}", hosts));
  result.lines.push_back(fmt::format("cluster.gpus_per_node={}", gpus_per_host));
  result.lines.push_back("policy.generation.colocated.enabled=false");
  result.lines.push_back(fmt::format("{}={}", resources_key("num_nodes"), generate.gpus / gpus_per_host));
  result.lines.push_back(fmt::format("{}={}", resources_key("gpus_per_node"), gpus_per_host));
  add_train(train, result.lines);
  result.lines.push_back(fmt::format("{}={}", vllm_key("tensor_parallel_size"), generate.tp));
  result.lines.push_back(fmt::format("{}={}", vllm_key("expert_parallel_size"), generate.ep));
  add_precision(scenario, result.lines);
  if (policy != "gather-broadcast")
    result.lines.push_back(generation_key("refit_transport") + "=nccl_reshard");
  if (const std::string note = transport_note(policy); !note.empty()) result.notes.push_back(note);
  if (scenario.train_ranks || scenario.generate_ranks)
    result.notes.push_back("which hosts train and which generate is up to the cluster's order of hosts");
  return result;
}

}  // namespace isthmus

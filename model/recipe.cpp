#include "model/recipe.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/nemo_rl_rules.hpp"
#include "model/recipe_settings.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

/// Hosts of either side and what each has; sides that share their GPUs count all hosts twice.
struct Cluster {
  int gpus_per_host = 1, train_gpus = 0, generate_gpus = 0;
  bool colocated = false;
};

/// A cluster of one host is split by GPUs, which a scenario cannot express: it gives whole hosts to sides.
void split_one_host(const RecipeSettings& settings, Cluster& cluster, std::vector<InputFault>& faults) {
  const std::string key = resources_key("gpus_per_node");
  const std::optional<int> generate = settings.number(key);
  const std::string found =
      generate ? fmt::format("{} of the {} GPUs of the only host", *generate, cluster.gpus_per_host)
               : "nothing, in a cluster of one host";
  faults.push_back({settings.where(key), found, "hosts of its own for each side",
                    "cluster.num_nodes: 2 with generation.colocated.resources.num_nodes: 1"});
  cluster.generate_gpus = generate.value_or(0);
  cluster.train_gpus = cluster.gpus_per_host - cluster.generate_gpus;
}

Cluster read_cluster(const RecipeSettings& settings, std::vector<InputFault>& faults) {
  const int hosts = settings.size("cluster.num_nodes");
  Cluster cluster;
  cluster.gpus_per_host = settings.size("cluster.gpus_per_node");
  if (std::int64_t{hosts} * cluster.gpus_per_host > max_gpus / 2) {
    throw InputError(settings.where("cluster.num_nodes"),
                     fmt::format("{} hosts of {} GPUs", hosts, cluster.gpus_per_host),
                     fmt::format("at most {} GPUs", max_gpus / 2));
  }
  cluster.colocated = settings.is_true("policy.generation.colocated.enabled");
  if (cluster.colocated) {
    cluster.train_gpus = cluster.generate_gpus = hosts * cluster.gpus_per_host;
    return cluster;
  }
  if (hosts == 1) {
    split_one_host(settings, cluster, faults);
    return cluster;
  }
  const std::optional<int> generate = settings.number(resources_key("num_nodes"));
  if (!generate || *generate >= hosts) {
    faults.push_back({settings.where(resources_key("num_nodes")),
                      generate ? fmt::format("{}", *generate) : "nothing",
                      fmt::format("1 to {} of the cluster's {} hosts", hosts - 1, hosts),
                      fmt::format("{}", generate ? hosts - 1 : hosts / 2)});
    return cluster;
  }
  const std::optional<int> gpus = settings.number(resources_key("gpus_per_node"));
  if (gpus && *gpus != cluster.gpus_per_host) {
    faults.push_back({settings.where(resources_key("gpus_per_node")), fmt::format("{}", *gpus),
                      fmt::format("cluster.gpus_per_node = {}", cluster.gpus_per_host),
                      fmt::format("{}", cluster.gpus_per_host)});
  }
  cluster.generate_gpus = *generate * cluster.gpus_per_host;
  cluster.train_gpus = (hosts - *generate) * cluster.gpus_per_host;
  return cluster;
}

TrainSpec read_train(const RecipeSettings& settings, int gpus) {
  TrainSpec train;
  train.gpus = gpus;
  train.tp = settings.size(megatron_key("tensor_model_parallel_size"));
  train.cp = settings.size(megatron_key("context_parallel_size"));
  train.ep = settings.size(megatron_key("expert_model_parallel_size"));
  train.pp = settings.size(megatron_key("pipeline_model_parallel_size"));
  const std::string etp = megatron_key("expert_tensor_parallel_size");
  train.etp = settings.missing(etp) ? std::optional(1) : settings.number(etp);
  train.layers_first = settings.number(megatron_key("num_layers_in_first_pipeline_stage"));
  train.layers_last = settings.number(megatron_key("num_layers_in_last_pipeline_stage"));
  return train;
}

/// What NeMo RL's rules 12 to 17 accept: BF16, blockwise FP8 on both sides, BF16 that becomes MXFP8.
struct RecipePrecision {
  WirePrecision wire = WirePrecision::bf16;
  bool receiver_quantises = false;
  std::string assumption;
};

bool keeps_attention(const std::vector<std::string>& ignored) {
  const auto lists = [&](std::string_view word) {
    return std::find(ignored.begin(), ignored.end(), word) != ignored.end();
  };
  return lists("self_attn") || (lists("q_proj") && lists("k_proj") && lists("v_proj") && lists("o_proj"));
}

RecipePrecision read_precision(const RecipeSettings& settings) {
  RecipePrecision read;
  if (settings.text(vllm_key("precision")).value_or("auto") != "fp8") return read;
  const bool stores_fp8 = settings.is_true(megatron_key("fp8_cfg.fp8_param"));
  const bool reads_mx = settings.is_true(vllm_key("is_mx"));
  const std::vector<std::string> ignored = settings.items(vllm_key("quantization_ignored_layer_kws"));
  const std::string others = ignored.empty() || keeps_attention(ignored)
                                 ? ""
                                 : fmt::format("; {} is not modelled: {} count as quantised",
                                               vllm_key("quantization_ignored_layer_kws"),
                                               printable(fmt::format("{}", fmt::join(ignored, ", "))));
  if (stores_fp8 && !reads_mx && settings.text(megatron_key("fp8_cfg.fp8_recipe")) == "blockwise") {
    const bool attention = keeps_attention(ignored);
    read.wire = attention ? WirePrecision::fp8_bf16_attention : WirePrecision::fp8;
    read.assumption = fmt::format("blockwise FP8 on both sides: scales travel as misc{}{}",
                                  attention ? ", attention as BF16" : "", others);
  } else if (!stores_fp8 && reads_mx && settings.text("policy.precision") == "bfloat16") {
    read.receiver_quantises = true;
    read.assumption =
        fmt::format("BF16 on the wire, which generation quantises to MXFP8 on receipt{}{}",
                    keeps_attention(ignored) ? " (attention, too, is counted in MXFP8)" : "", others);
  } else {
    read.assumption = "generation in fp8, by a combination that NeMo RL refuses: sizes are those of BF16";
  }
  return read;
}

std::map<std::string, Location> names_of(const RecipeSettings& settings, bool colocated) {
  std::map<std::string, Location> names;
  for (const auto& [ours, theirs] : std::map<std::string, std::string>{
           {"train.gpus", "cluster.num_nodes"},
           {"train.tp", megatron_key("tensor_model_parallel_size")},
           {"train.cp", megatron_key("context_parallel_size")},
           {"train.ep", megatron_key("expert_model_parallel_size")},
           {"train.etp", megatron_key("expert_tensor_parallel_size")},
           {"train.pp", megatron_key("pipeline_model_parallel_size")},
           {"train.layers_first", megatron_key("num_layers_in_first_pipeline_stage")},
           {"train.layers_last", megatron_key("num_layers_in_last_pipeline_stage")},
           {"generate.gpus", colocated ? "cluster.num_nodes" : resources_key("num_nodes")},
           {"generate.tp", vllm_key("tensor_parallel_size")},
           {"generate.ep", vllm_key("expert_parallel_size")},
           {"model.dtype", vllm_key("precision")},
           {"generate.quantize", vllm_key("is_mx")},
           {"fabric", "cluster.gpus_per_node"},
           {"fabric.hosts", "cluster.num_nodes"}}) {
    names[ours] = settings.where(theirs);
  }
  return names;
}

void list_assumptions(const RecipeSettings& settings, const Cluster& cluster, Input& input) {
  const int per_host = cluster.gpus_per_host;
  const int train = cluster.train_gpus / per_host, generate = cluster.generate_gpus / per_host;
  input.assumptions.push_back(fmt::format("hosts 0 to {} train, hosts {} to {} generate, {} GPUs each",
                                          train - 1, train, train + generate - 1, per_host));
  for (std::string& line : common_assumptions(input.scenario)) input.assumptions.push_back(std::move(line));
  const RecipePrecision precision = read_precision(settings);
  if (!precision.assumption.empty()) input.assumptions.push_back(precision.assumption);
}

void list_notes(const RecipeSettings& settings, Input& input) {
  const std::string key = "policy.generation.refit_transport";
  const std::string transport = settings.text(key).value_or("null");
  if (transport != "nccl_reshard") {
    input.notes.push_back(
        fmt::format("{} is {}: nccl_reshard switches the reshard refit on", key, transport));
  }
}

void make_scenario(const RecipeSettings& settings, const Cluster& cluster, const std::filesystem::path& model,
                   const std::vector<Override>& overrides, Input& input) {
  Scenario& draft = input.scenario;
  const bool trays = cluster.gpus_per_host == 4;
  draft.fabric.preset = trays ? "gb200-nvl72" : "dgx-h100-superpod";
  draft.fabric.hosts = (cluster.train_gpus + cluster.generate_gpus) / cluster.gpus_per_host;
  draft.fabric.nic_bandwidth = Bandwidth{50'000'000'000};
  draft.model =
      ModelSpec{"config.json", read_precision(settings).wire,
                settings.text(megatron_key("mtp_num_layers")).value_or("0") != "0", false, std::nullopt};
  draft.train = read_train(settings, cluster.train_gpus);
  draft.generate = GenerateSpec{cluster.generate_gpus, settings.size(vllm_key("tensor_parallel_size")),
                                settings.size(vllm_key("expert_parallel_size")), std::nullopt};
  draft.generate->quantize_mxfp8 = read_precision(settings).receiver_quantises;
  draft.calibration = "h100-ib400";
  input.scenario = complete_scenario(draft, model, overrides, names_of(settings, cluster.colocated));
}

}  // namespace

Input read_recipe(YamlDocument document, const std::filesystem::path& file,
                  const std::vector<Override>& overrides, const std::optional<std::filesystem::path>& model) {
  const std::vector<Override> of_scenario = apply_overrides(overrides, document);
  const RecipeSettings settings(document, file);
  Input input;
  input.kind = InputKind::nemo_rl_recipe;
  input.scenario.file = file;
  input.scenario.name = printable(file.stem().string());
  input.nemo_rl = nemo_rl_faults(settings);
  input.obstacles = obstacles_among(input.nemo_rl);
  input.has_model = model.has_value();
  const Cluster cluster = read_cluster(settings, input.obstacles);
  const int per_host = cluster.gpus_per_host;
  if (per_host != 8 && per_host != 4) {
    input.obstacles.push_back({settings.where("cluster.gpus_per_node"), fmt::format("{}", per_host),
                               "8 (H100 hosts) or 4 (GB200 compute trays)", per_host > 4 ? "8" : "4"});
  }
  const bool grids_known =
      settings.is_true(megatron_key("enabled")) && settings.text("policy.generation.backend") == "vllm";
  input.has_layout = grids_known && cluster.train_gpus > 0 && cluster.generate_gpus > 0;
  list_notes(settings, input);
  if (!input.has_layout || !model) return input;
  make_scenario(settings, cluster, *model, of_scenario, input);
  list_assumptions(settings, cluster, input);
  return input;
}

}  // namespace isthmus

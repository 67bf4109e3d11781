#include "model/nemo_rl_rules.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

namespace isthmus {
namespace {

class Judge {
 public:
  explicit Judge(const RecipeSettings& settings) : settings_(settings) {}

  std::vector<InputFault> take() { return std::move(faults_); }

  void add(const std::string& key, std::string allowed, std::string change) {
    const std::string found = settings_.text(key).value_or(settings_.missing(key) ? "nothing" : "null");
    faults_.push_back({settings_.where(key), found, std::move(allowed), std::move(change)});
  }
  void not_true(const std::string& key, const std::string& why) {
    if (settings_.is_true(key)) add(key, "false (" + why + ")", "false");
  }
  void unset(const std::string& key, const std::string& why) {
    if (!settings_.unset(key)) add(key, "null (" + why + ")", "null");
  }
  /// A size that must be 1, or null.
  void one(const std::string& key, const std::string& why) {
    if (settings_.size(key) != 1) add(key, "1 (" + why + ")", "1");
  }

 private:
  const RecipeSettings& settings_;
  std::vector<InputFault> faults_;
};

/// Rules 1 to 6.
void judge_engines(const RecipeSettings& settings, Judge& judge) {
  if (settings.is_true(generation_key("colocated.enabled"))) {
    judge.add(generation_key("colocated.enabled"), "false (generation on GPUs of its own)",
              "false, with generation.colocated.resources.num_nodes of the cluster's hosts");
  }
  if (settings.text(generation_key("backend")) != "vllm")
    judge.add(generation_key("backend"), "vllm", "vllm");
  judge.not_true(generation_key("vllm_kwargs.enable_eplb"), "experts stay where the layout puts them");
  judge.not_true(generation_key("real_quant"), "weights move as they are stored");
  if (!settings.is_true(megatron_key("enabled"))) judge.add(megatron_key("enabled"), "true", "true");
  judge.not_true("policy.dtensor_cfg.enabled", "training with Megatron");
}

/// Rules 7 to 11.
void judge_megatron(Judge& judge) {
  judge.one(megatron_key("expert_tensor_parallel_size"), "or null");
  judge.unset(megatron_key("pipeline_model_parallel_layout"),
              "layers follow the first and last stage's numbers");
  judge.one(megatron_key("virtual_pipeline_model_parallel_size"), "or null");
  judge.not_true(megatron_key("account_for_embedding_in_pipeline_split"), "stages hold decoder layers");
  judge.not_true(megatron_key("account_for_loss_in_pipeline_split"), "stages hold decoder layers");
}

/// Rules 12 to 17: what training stores must be what generation reads, or BF16 that it quantises to MXFP8.
void judge_precision(const RecipeSettings& settings, Judge& judge) {
  const std::string precision = settings.text(vllm_key("precision")).value_or("auto");
  constexpr std::array<std::string_view, 4> known{"auto", "bf16", "bfloat16", "fp8"};
  if (std::find(known.begin(), known.end(), precision) == known.end()) {
    judge.add(vllm_key("precision"), "auto, bf16, bfloat16 or fp8", "bfloat16");
  }
  const bool stores_fp8 = settings.is_true(megatron_key("fp8_cfg.fp8_param"));
  const bool reads_mx = settings.is_true(vllm_key("is_mx"));
  if (precision != "fp8") {
    if (stores_fp8) {
      judge.add(megatron_key("fp8_cfg.fp8_param"), fmt::format("false with generation in {}", precision),
                "false");
    }
  } else if (stores_fp8 && reads_mx) {
    judge.add(vllm_key("is_mx"), "false with fp8_cfg.fp8_param: true (blockwise FP8 cannot feed MXFP8)",
              "false");
  } else if (stores_fp8) {
    if (settings.text(megatron_key("fp8_cfg.fp8_recipe")) != "blockwise")
      judge.add(megatron_key("fp8_cfg.fp8_recipe"), "blockwise", "blockwise");
  } else if (reads_mx) {
    if (settings.text("policy.precision") != "bfloat16") {
      judge.add("policy.precision", "bfloat16, which generation quantises to MXFP8", "bfloat16");
    }
  } else {
    judge.add(vllm_key("precision"),
              "auto, bf16 or bfloat16 where training stores no FP8 (fp8_cfg.fp8_param)",
              "bfloat16, or vllm_cfg.is_mx: true");
  }
}

/// Rules 18 and 19.
void judge_generation(const RecipeSettings& settings, Judge& judge) {
  const int ep = settings.size(vllm_key("expert_parallel_size"));
  const int tp = settings.size(vllm_key("tensor_parallel_size"));
  if (ep != 1 && ep != tp) {
    judge.add(vllm_key("expert_parallel_size"), fmt::format("1 or tensor_parallel_size = {}", tp),
              fmt::format("{} or 1", tp));
  }
  judge.one(vllm_key("pipeline_parallel_size"), "generation without pipeline stages");
}

}  // namespace

std::vector<InputFault> nemo_rl_faults(const RecipeSettings& settings) {
  Judge judge(settings);
  judge_engines(settings, judge);
  if (settings.is_true(megatron_key("enabled"))) {
    judge_megatron(judge);
    judge_precision(settings, judge);
  }
  if (settings.text(generation_key("backend")) == "vllm") judge_generation(settings, judge);
  return judge.take();
}

std::vector<InputFault> obstacles_among(const std::vector<InputFault>& faults) {
  const std::array<std::string, 8> keys{generation_key("colocated.enabled"),
                                        generation_key("backend"),
                                        megatron_key("enabled"),
                                        megatron_key("pipeline_model_parallel_layout"),
                                        megatron_key("virtual_pipeline_model_parallel_size"),
                                        megatron_key("account_for_embedding_in_pipeline_split"),
                                        megatron_key("account_for_loss_in_pipeline_split"),
                                        vllm_key("pipeline_parallel_size")};
  std::vector<InputFault> obstacles;
  std::copy_if(faults.begin(), faults.end(), std::back_inserter(obstacles), [&](const InputFault& fault) {
    return std::find(keys.begin(), keys.end(), fault.where.key) != keys.end();
  });
  return obstacles;
}

}  // namespace isthmus

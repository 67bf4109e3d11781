#pragma once
// A NeMo RL recipe as a scenario. Of a cluster of N hosts, policy.generation.colocated.resources.num_nodes
// generate and the others train, in this order; the grids are policy.megatron_cfg and
// policy.generation.vllm_cfg.
// Assumed, since a recipe does not say it: H100 hosts (GB200 compute trays where hosts have 4 GPUs), one
// 400 Gbit/s NIC per GPU, the calibration h100-ib400, two stages in flight.

#include <filesystem>
#include <optional>
#include <vector>

#include "model/input.hpp"

namespace isthmus {

Input read_recipe(YamlDocument document, const std::filesystem::path& file,
                  const std::vector<Override>& overrides, const std::optional<std::filesystem::path>& model);

}  // namespace isthmus

#pragma once
// A system configuration of NCCL M2N's model benchmark as a scenario: {"train": {"num_gpus", "tp_size",
// "cp_size", "ep_size", "pp_size", "fsdp_size", "dp_size"}, "generation": {...}}. As there, all tensors are
// resharded, layer l of L is on stage l pp / L, and the training side's dp_size is not used (it follows).
// Assumed: DGX H100 hosts filled in rank order, one 400 Gbit/s NIC per GPU, the calibration h100-ib400.
// Source: NVIDIA/nccl-extensions at 44d2de0, system_configs.

#include <filesystem>
#include <optional>
#include <vector>

#include "model/input.hpp"

namespace isthmus {

Input read_m2n_config(YamlDocument document, const std::filesystem::path& file,
                      const std::vector<Override>& overrides,
                      const std::optional<std::filesystem::path>& model);

}  // namespace isthmus

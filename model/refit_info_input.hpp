#pragma once
// NeMo RL's description of a reshard refit (model/refit_info.hpp) as an input like the others: what
// model/refit_info_faults.hpp finds are its obstacles, its bulk tensors become a scenario of bare tensors.
// Ranks are global there: training rank r of stage s is s n + r with n = train_world_size / pp_size,
// generation rank g is train_world_size + g. Assumed: DGX H100 hosts of 8 GPUs filled in rank order, one
// 400 Gbit/s NIC per GPU, the calibration h100-ib400. The misc tensors are left out, and a note says so.

#include <filesystem>
#include <optional>
#include <vector>

#include "model/input.hpp"
#include "model/refit_info.hpp"

namespace isthmus {

/// `local_maps`: a file or folder, beside the maps that the description's own file holds.
Input read_refit_info(RefitInfo info, const std::vector<Override>& overrides,
                      const std::optional<std::filesystem::path>& local_maps);

}  // namespace isthmus

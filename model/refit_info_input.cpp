#include "model/refit_info_input.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "model/quantity.hpp"
#include "model/refit_info_faults.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::int64_t gpus_per_host = 8;

Layout global(Layout layout, const RefitInfo& info, std::int64_t stage) {
  const std::int64_t n = info.stage_ranks();
  for (Rank& rank : layout.mesh.ranks) {
    const std::int64_t group = rank.value;
    rank.value = static_cast<std::uint32_t>(group < n ? stage * n + group : info.train_ranks + group - n);
  }
  return layout;
}

std::vector<TensorSpec> bare_tensors(const RefitInfo& info) {
  std::vector<TensorSpec> tensors;
  for (const BulkTensor& tensor : info.tensors) {
    const std::int64_t stage = tensor.stage.value_or(0);
    tensors.push_back({tensor.name, global(tensor.source, info, stage), global(tensor.target, info, stage)});
  }
  return tensors;
}

void refuse_foreign_keys(const std::vector<Override>& overrides) {
  constexpr std::array<std::string_view, 5> known{"fabric", "refit", "calibration", "published", "name"};
  for (const auto& [key, value] : overrides) {
    const std::string_view top = std::string_view(key).substr(0, key.find('.'));
    if (std::find(known.begin(), known.end(), top) != known.end()) continue;
    throw InputError({printable(fmt::format("--set {}={}", key, value), 160), 0, printable(key)},
                     "a key that does not belong to the scenario made of a refit description",
                     fmt::format("keys below {}", fmt::join(known, ", ")));
  }
}

/// Overrides are read into a scenario of one tensor, so that no limit of the scenario reader meets the rest.
Scenario make_scenario(const RefitInfo& info, const std::vector<Override>& overrides) {
  std::vector<TensorSpec> tensors = bare_tensors(info);
  Scenario draft;
  draft.name = printable(info.file.stem().string());
  if (draft.name.empty()) draft.name = "refit-info";
  const Layout one{{1}, Dtype::bf16, contiguous_mesh({1}, {0}), {Placement{}}, ChunkRule::even};
  draft.tensors = {{"tensor", one, one}};
  const std::int64_t ranks = info.train_ranks + info.generate_ranks;
  draft.fabric.preset = "dgx-h100-superpod";
  draft.fabric.hosts = static_cast<int>((ranks + gpus_per_host - 1) / gpus_per_host);
  draft.fabric.nic_bandwidth = Bandwidth{50'000'000'000};
  draft.calibration = "h100-ib400";
  Scenario scenario = parse_scenario(to_yaml(draft), info.file, overrides);
  std::erase_if(scenario.locations, [](const auto& item) { return !item.second.file.starts_with("--set "); });
  scenario.tensors = std::move(tensors);
  return scenario;
}

std::vector<std::string> assumptions(const RefitInfo& info, const Scenario& scenario) {
  const std::int64_t last = info.train_ranks + info.generate_ranks - 1;
  const FabricSpec& fabric = scenario.fabric;
  const std::string nic = fabric.nic_bandwidth ? to_string(*fabric.nic_bandwidth) : "the preset's rate";
  return {
      fmt::format("training rank r of stage s is GPU {} s + r, generation ranks are GPUs {} to {}",
                  info.stage_ranks(), info.train_ranks, last),
      fmt::format("fabric {} with {} hosts, {} per NIC (--set fabric.preset=..., fabric.hosts=..., "
                  "fabric.nic_bandwidth=...)",
                  fabric.preset, fabric.hosts, nic),
      fmt::format("calibration {} (--set calibration=...)", scenario.calibration),
      "chunk rule ceil on both sides, as in NeMo RL's exact transport; it is even where the shards divide"};
}

void note_misc(const RefitInfo& info, std::vector<std::string>& notes) {
  if (info.misc.empty()) return;
  Int128 bytes = 0;
  for (const MiscTensor& tensor : info.misc) {
    Int128 size = element_size(tensor.dtype).value;
    for (const std::int64_t extent : tensor.shape) size *= extent;
    bytes += size;
  }
  notes.push_back(fmt::format("{} misc tensors of {:.3f} GB in all are left out of the scenario",
                              info.misc.size(), static_cast<double>(bytes) * 1e-9));
}

}  // namespace

Input read_refit_info(RefitInfo info, const std::vector<Override>& overrides,
                      const std::optional<std::filesystem::path>& local_maps) {
  refuse_foreign_keys(overrides);
  if (local_maps) read_local_maps(*local_maps, info.local);
  Input input;
  input.kind = InputKind::refit_info;
  input.scenario.file = info.file;
  input.scenario.name = printable(info.file.stem().string());
  RefitInfoProof proof = prove(info);
  input.obstacles = std::move(proof.faults);
  input.notes = std::move(proof.notes);
  note_misc(info, input.notes);
  if (info.tensors.empty()) {
    input.obstacles.push_back({info.at("per_layer_params"), "no tensor", "at least one", ""});
  }
  input.has_layout = input.obstacles.empty();
  if (!input.has_layout) return input;
  input.scenario = make_scenario(info, overrides);
  input.assumptions = assumptions(info, input.scenario);
  if (!info.misc.empty()) input.assumptions.push_back(input.notes.back());
  return input;
}

}  // namespace isthmus

// Bytes and memory of the scoreboard's rows.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "report/scoreboard.hpp"
#include "report/text.hpp"

namespace isthmus::report {
namespace {

struct PresetMemory {
  std::string_view prefix;  // of the preset's name
  Bytes memory;
};
// Datasheets: H100 SXM 80 GB; H200 SXM 141 GB; GB200 NVL72 13.4 TB on 72 GPUs.
constexpr std::array<PresetMemory, 3> memories{
    {{"dgx-h100", {80'000'000'000}}, {"dgx-h200", {141'000'000'000}}, {"gb200-nvl72", {186'000'000'000}}}};

std::string memory_line(const ScoreRow& row) {
  const PolicyRow& prediction = row.prediction;
  std::string gpu = "- | -";
  if (row.gpu_memory) {
    const double used = static_cast<double>(prediction.peak_staging_bytes.value + row.live_bytes.value);
    gpu = fmt::format("{} | {:.0f} %", size_text(*row.gpu_memory),
                      100 * used / static_cast<double>(row.gpu_memory->value));
  }
  return fmt::format("| {} | `{}` | {} | {} | {} | {} | {} | {} |\n", row.published.id, prediction.policy,
                     size_text(row.payload), size_text(prediction.network_bytes),
                     size_text(prediction.nvlink_bytes), size_text(prediction.peak_staging_bytes),
                     size_text(row.live_bytes), gpu);
}

}  // namespace

std::optional<Bytes> gpu_memory(const FabricSpec& fabric) {
  if (!fabric.parts.empty() || !fabric.import_file.empty()) return std::nullopt;
  const auto found = std::find_if(memories.begin(), memories.end(), [&](const PresetMemory& each) {
    return fabric.preset.starts_with(each.prefix);
  });
  return found == memories.end() ? std::nullopt : std::optional(found->memory);
}

std::string memory_section(const Scoreboard& scoreboard, bool blind) {
  std::string text =
      "\n## Bytes and memory\n\nThe payload counts each byte of the refit once; what moved counts it on "
      "every "
      "link class that it leaves a GPU by. Staging: the most on one GPU of either side at one time, which "
      "stands "
      "beside what the fullest target rank holds once it is loaded (cache and activations not counted). A "
      "GPU's "
      "memory is that of the fabric's preset.\n\n"
      "| id | policy | payload | over the network | over NVLink | staging | live weights | GPU | staging + "
      "live |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const ScoreRow& row : scoreboard.rows) {
    const bool wanted = blind ? row.published.blind() : row.published.counted && !row.published.blind();
    if (wanted && row.prediction.predicted()) text += memory_line(row);
  }
  return text;
}

}  // namespace isthmus::report

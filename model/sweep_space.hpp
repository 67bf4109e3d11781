#pragma once
// A sweep's space (docs/sweep.md): everything that a layout may be, as lists of allowed values. The product
// of the lists is what `isthmus sweep` enumerates; values that do not go together are left out and counted.
// Invariant: reading reports the first fault as InputError with file, line, key, what was found and what is
// allowed; every list holds one value or more, each once, in the order of the file.
// Memory, per GPU, in bytes:
//   generation  weights as the engine keeps them + kv_cache          <= gpu
//   training    parameters x (2 weight + 4 gradient + 12 / replicas) + activations <= gpu
// 12: FP32 master copy and Adam's two moments, which a distributed optimiser shards over the replicas of a
// parameter (Megatron-LM). Both reserves are stated, not derived.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/scenario.hpp"

namespace isthmus {

/// Where the sides stand on the fabric's first hosts, as many as both need. contiguous: training, then
/// generation; interleaved: by turns; co_racked: both in each rack (hosts behind one leaf), by their shares;
/// rail_aligned: contiguous, and ranks go along the rails (`fill: rails`).
enum class PlacementKind : std::uint8_t { contiguous, interleaved, co_racked, rail_aligned };
std::string_view to_string(PlacementKind kind);

struct TrainChoices {
  std::vector<int> gpus, tp, cp, ep, pp, fsdp;
  std::vector<int> etp;           // empty: tp, as in Megatron
  std::vector<int> dp;            // of gpus / (tp cp pp); empty: any
  std::string order;              // of ranks
  int vocabulary_multiple = 128;  // as in a scenario
};

struct GenerateChoices {
  std::vector<int> gpus, tp, ep, pp;
  std::vector<int> dp;  // of gpus / (tp pp); empty: any
  bool quantize_mxfp8 = false;
  int vocabulary_multiple = 64;
};

struct MemoryRule {
  Bytes gpu{80'000'000'000};
  Bytes kv_cache{20'000'000'000};     // of each generation GPU
  Bytes activations{20'000'000'000};  // of each training GPU
};

struct SweepSpace {
  std::string name;
  std::vector<ModelSpec> models;
  FabricSpec fabric;
  std::optional<int> budget;  // GPUs of both sides together
  TrainChoices train;
  GenerateChoices generate;
  std::vector<PlacementKind> placements;
  std::vector<std::string> policies;  // names, not judged here
  std::vector<BulkRule> bulk;
  std::vector<int> streams;
  RefitSpec refit;  // what is not swept
  std::vector<std::string> calibrations;
  MemoryRule memory;

  std::filesystem::path file;
  std::map<std::string, Location> locations;

  Location at(std::string_view key) const;
  /// The product of all lists that make a layout: models, both sides, placements.
  std::int64_t layouts() const;
};

/// More layouts than this are refused.
inline constexpr std::int64_t max_sweep_layouts = 5'000'000;

SweepSpace read_sweep_space(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
/// As read_sweep_space, from text; `file` names it in messages and anchors relative paths.
SweepSpace parse_sweep_space(const std::string& text, const std::filesystem::path& file,
                             const std::vector<Override>& overrides = {});

}  // namespace isthmus

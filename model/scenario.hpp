#pragma once
// A scenario file: what is moved, from which layout to which, on which fabric, how. Three forms: a whole
// refit (model + train + generate), bare tensors (tensor/source/target, or a list under `tensors`), and plain
// traffic (`traffic`). See docs/scenario.md.
// Invariant: text -> Scenario -> text -> Scenario is the identity. Every quantity in the file carries its
// unit. Reading reports the first fault as InputError with file, line, key, what was found and what is
// allowed; unknown keys are faults. resolve() (model/refit.hpp) checks what spans several keys (grids,
// counts, divisibility).

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/disturbance.hpp"
#include "model/error.hpp"
#include "model/fabric.hpp"
#include "model/fused_view.hpp"
#include "model/layout.hpp"
#include "model/precision.hpp"
#include "model/published.hpp"
#include "model/traffic.hpp"

namespace isthmus {

struct ModelSpec {
  std::string config;                             // path relative to the scenario file
  WirePrecision precision = WirePrecision::bf16;  // key `dtype`
  bool mtp = false;
  bool vision = false;
  std::optional<int> layers;  // fewer decoder layers than the configuration, for what-ifs
  // Where a generation engine has more tensor-parallel ranks than the model key/value heads: the heads are
  // repeated (vLLM), or their rows are cut like any other (NCCL M2N's benchmark).
  bool repeat_kv_heads = true;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

/// Layers to pipeline stages. even: layers_first and layers_last, the rest the same number each
/// (Megatron-LM); proportional: layer l of L is on stage l pp / L, rounded down (NCCL M2N's benchmark).
enum class LayerSplit : std::uint8_t { even, proportional };

/// The layers of each stage, in any order; empty where another rule deals them.
using StageLayers = std::vector<std::vector<int>>;

/// Training side: Megatron's two grids over the same ranks. `order` names the axes, leftmost fastest, pp
/// last. `fsdp` (PyTorch's FSDP and HSDP): so many data-parallel ranks shard each parameter once more, on
/// dimension 0 (experts: on their rows where ep x shards exceed the experts), by ceil.
struct TrainSpec {
  int gpus = 0;
  int tp = 1, cp = 1, ep = 1, pp = 1;
  std::optional<int> etp;                        // expert tensor parallel; unset means tp, as in Megatron
  std::optional<int> layers_first, layers_last;  // layers on the first and last stage; the rest is even
  LayerSplit layer_split = LayerSplit::even;
  int vpp = 1;  // model chunks per stage (virtual stages), dealt round robin
  int fsdp = 1;
  std::string order{"tp-cp-ep-dp-pp"};
  StageLayers stages{};           // in place of layers_first, layers_last, layer_split and vpp
  int vocabulary_multiple = 128;  // the vocabulary is padded to a multiple of this times tp
  friend bool operator==(const TrainSpec&, const TrainSpec&) = default;
};

/// Generation side: engines of pp x tp ranks (engine outer, tp inner). Experts are sharded over tp (ep = 1),
/// or ep x etp consecutive ranks of a stage share them: whole (etp = 1), or each over etp ranks.
struct GenerateSpec {
  int gpus = 0;
  int tp = 1, ep = 1;
  std::optional<int> dp;        // engines; unset means gpus / (tp pp)
  bool quantize_mxfp8 = false;  // `quantize: mxfp8`: BF16 on the wire, quantised on receipt
  int pp = 1;
  std::optional<int> etp{};      // unset: tp when ep is 1, tp / ep when that is whole, else 1
  int redundant_experts = 0;     // slots beyond the model's experts: copies of experts 0, 1, ...
  StageLayers stages{};          // in place of vLLM's rule: even, the rest on the last stages but one
  int vocabulary_multiple = 64;  // the vocabulary is padded to a multiple of this and of tp
  friend bool operator==(const GenerateSpec&, const GenerateSpec&) = default;
};

/// Which hosts hold a side, in rank order: consecutive ranks fill host after host, or (`fill: rails`) the
/// first GPUs of all hosts, then the second ones, and so on.
struct SideRanks {
  std::vector<int> hosts;
  bool by_rail = false;
  friend bool operator==(const SideRanks&, const SideRanks&) = default;
};

/// What the hybrid methods reshard; the rest is misc.
struct BulkRule {
  enum class Kind : std::uint8_t { ffn, all, match } kind = Kind::ffn;
  std::vector<std::string> patterns;  // for Kind::match: see model/name_pattern.hpp
  friend bool operator==(const BulkRule&, const BulkRule&) = default;
};

enum class Relay : std::uint8_t { members, any };

/// Where MXFP8 is made of BF16: by each receiver on arrival, or by the sources before they send.
enum class QuantiseAt : std::uint8_t { target, source };

/// How NCCL M2N carries a tensor: model/m2n_rules.hpp. automatic: split communicators where M2N takes them.
enum class M2nPlan : std::uint8_t { ring, direct };
enum class M2nSplit : std::uint8_t { automatic, on, off };
struct M2nSpec {
  M2nPlan plan = M2nPlan::ring;
  M2nSplit split = M2nSplit::automatic;
  friend bool operator==(const M2nSpec&, const M2nSpec&) = default;
};

struct RefitSpec {
  BulkRule bulk;
  int streams = 2;                    // pipeline stages in flight for the policies that go stage by stage
  int buffers = 2;                    // packets in flight for packed broadcasts
  Bytes packet_bytes{1'700'000'000};  // a packet closes when its total reaches this (NeMo RL: 2 % of memory)
  Relay relay = Relay::any;           // may GPUs outside both sides relay?
  M2nSpec m2n{};                      // for the policies m2n-*
  QuantiseAt quantise_at = QuantiseAt::target;  // with `generate.quantize`
  friend bool operator==(const RefitSpec&, const RefitSpec&) = default;
};

/// What a file says of a bare tensor beyond two layouts. model/bare_tensors.hpp judges it and turns it into
/// layouts.
struct TensorClaims {
  std::vector<Layout> other_sources{};  // holders beside `source`
  bool replicas = false;                // all holders are replicas of the tensor
  std::string tied_to{};                // it has no source of its own but that of this tensor
  bool install = false;                 // the engine has to load or process what has arrived
  bool transformed = false;             // the source is no box and no strided block of the tensor
  std::vector<std::int64_t> slots{};    // which index of dimension 0 each physical slot of the target holds
  std::vector<std::int64_t> source_shape{}, target_shape{};  // local_shape: what a rank really holds
  friend bool operator==(const TensorClaims&, const TensorClaims&) = default;
};

/// A bare tensor with its two layouts (ranks are global). A layout without ranks is not declared.
struct TensorSpec {
  std::string name;
  Layout source, target;
  std::optional<FusedView> source_view{}, target_view{};
  TensorClaims claims{};
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

struct Scenario {
  std::string name;
  FabricSpec fabric;
  // Whole refit: model, train and generate are set. Bare tensors: `tensors` is not empty, and these are not
  // set.
  std::optional<ModelSpec> model;
  std::optional<TrainSpec> train;
  std::optional<GenerateSpec> generate;
  std::optional<SideRanks> train_ranks, generate_ranks;  // unset: contiguous, training first
  std::vector<TensorSpec> tensors;
  std::optional<TrafficSpec> traffic{};  // in place of all of these
  RefitSpec refit;
  std::string calibration = "wire-only";
  std::vector<Published> published;
  Disturbances disturbances{};

  std::filesystem::path file;                 // where it was read from; not part of the identity
  std::map<std::string, Location> locations;  // dotted key -> where it stands, for later messages

  /// Where a key stands. A key that was read from another system's file goes by its name there; one that is
  /// not in the file has the place of its nearest parent, or of the file.
  Location at(std::string_view key) const;
};
/// Equality of content (file and locations aside).
bool same_content(const Scenario& a, const Scenario& b);

/// One `--set key=value`: replaces (or adds) the value at a dotted key; the value is YAML.
using Override = std::pair<std::string, std::string>;

Scenario read_scenario(const std::filesystem::path& file, const std::vector<Override>& overrides = {});
/// As read_scenario, from text; `file` names it in messages and anchors relative paths.
Scenario parse_scenario(const std::string& text, const std::filesystem::path& file,
                        const std::vector<Override>& overrides = {});
/// The scenario as YAML text.
std::string to_yaml(const Scenario& scenario);

}  // namespace isthmus

#pragma once
// Where the tensors of a whole refit stand in the live buffers of the engines, derived on demand.
//   Megatron-LM  gate and up are the halves of linear_fc1 [2 rows, hidden], of each expert by itself; q, k
//                and v of linear_qkv alternate per key/value group, of (heads / groups + 2) head_size rows
//   vLLM         gate and up are the halves of gate_up_proj, of experts on dimension 1 of w13_weight; q, k
//                and v follow each other in qkv_proj, k and v repeated where there are more ranks than heads
// Everything else stands alone, as a view of a base of its own name (experts' down: linear_fc2, w2_weight);
// so do all tensors that FSDP cuts (by ceil), and copies of experts in spare slots.
// Bases carry the prefix of the tensors' HuggingFace names. Sizes come from the layouts, so that they hold
// for every grid.
// Invariant: on each rank the views of all tensors tile each base (fused_faults finds nothing).
// Source: Megatron-LM's and vLLM's linear layers as NeMo RL reads them.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fused_view.hpp"
#include "model/refit.hpp"

namespace isthmus {

/// Whose buffers: Megatron-LM holds a refit's sources, vLLM its targets.
enum class Engine : std::uint8_t { megatron, vllm };

class EngineViews {
 public:
  /// Keeps a reference to `refit`.
  explicit EngineViews(const Refit& refit);

  /// The views of the shard that the rank at this position of the tensor's mesh holds: one, or with Megatron
  /// one per expert. None where the shard is no strided block of its base: a rank that holds parts of a
  /// group, q with an output gate, heads that the inventory does not know; or where it is empty.
  std::vector<LocalView> of(TensorId tensor, Engine engine, std::size_t mesh_index) const;

 private:
  struct Name;  // a tensor's name, taken apart
  struct Shard;
  std::optional<Shard> shard(const std::string& name, Engine engine, Rank rank) const;
  std::optional<FusedView> halves(const Name& name, const Shard& own, Engine engine, Rank rank) const;
  std::vector<std::optional<Shard>> heads(const Name& name, Engine engine, Rank rank) const;
  bool is_attention(const Name& name) const;
  std::optional<FusedView> interleaved(const Name& name, Rank rank) const;
  std::optional<FusedView> concatenated(const Name& name, Rank rank) const;
  static FusedView alone(const Name& name, const RefitTensor& tensor, Engine engine, std::int64_t rows);

  const Refit& refit_;
  std::map<std::string, TensorId, std::less<>> by_name_;
};

}  // namespace isthmus

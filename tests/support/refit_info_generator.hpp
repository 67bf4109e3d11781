#pragma once
// Refit descriptions with local maps as NeMo RL, Megatron-LM and vLLM make them, for tests: dense and expert
// layers, gated or not, over pipeline stages, tensor and expert parallel ranks; buffers fused or not. Made as
// JSON from the parallel sizes alone, without the project's layouts.
// Invariant: a sample describes a right refit; shapes that rc generates are small enough to count elements.

#include <cstdint>
#include <iosfwd>
#include <vector>

#include <rapidcheck.h>
#include <nlohmann/json.hpp>

namespace isthmus::test {

using OrderedJson = nlohmann::ordered_json;

struct RefitInfoShape {
  std::int64_t tp = 1, ep = 1, copies = 1, pp = 1;  // training: n = copies x lcm(tp, ep) ranks a stage
  std::int64_t generate_tp = 1, engines = 1;
  bool generate_ep = false;             // experts over the engine's ranks, not their rows
  std::vector<std::int64_t> layers{1};  // per stage
  std::int64_t dense_layers = 1;        // the first ones; the others have experts
  std::int64_t experts = 4, inner = 8, expert_inner = 8, hidden = 3;
  bool gated = true;
  bool fused_target = true;    // gate and up in one buffer of the engine
  bool stacked_source = true;  // experts in one buffer, or each in its own
  bool expert_slots = false;   // the engine's experts are described one by one
  std::int64_t misc = 3;
  std::int64_t spelling = 0;  // of placements, meshes, dtypes

  std::int64_t stage_ranks() const;
  std::int64_t train_ranks() const { return stage_ranks() * pp; }
  std::int64_t generate_ranks() const { return generate_tp * engines; }
};
std::ostream& operator<<(std::ostream& stream, const RefitInfoShape& shape);

/// {"nccl_reshard_refit_info": {...}, "local_maps": [...]}
OrderedJson make_refit_info(const RefitInfoShape& shape);

rc::Gen<RefitInfoShape> any_refit_info_shape();

}  // namespace isthmus::test

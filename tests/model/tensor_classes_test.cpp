#include "model/tensor_classes.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/refit.hpp"
#include "model/scenario_model.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus {
namespace {

struct Memory {
  Bytes train, generate;
};

Memory memory_of(const Scenario& scenario) {
  const Inventory inventory = cut_inventory(scenario, read_full_inventory(scenario));
  const ClassedTensors tensors = classed(list_tensors(scenario, inventory));
  EXPECT_LT(tensors.classes.size(), tensors.tensors.size() / 4);
  return {train_memory(scenario, tensors, inventory.layers),
          generate_memory(scenario, tensors, inventory.layers)};
}

/// Parameter by parameter, over the whole refit: 6 bytes each, and 12 shared by those with the same shard.
Bytes train_memory_by_rank(const Refit& refit) {
  std::vector<Bytes> held(refit.train_ranks);
  for (const RefitEntry& entry : refit.tensors) {
    if (entry.tensor.copy) continue;
    const Layout& source = refit.geometries[entry.geometry].source;
    for (std::size_t i = 0; i < source.mesh.size(); ++i) {
      const Region own = source.region(i);
      std::int64_t same = 0;
      for (std::size_t k = 0; k < source.mesh.size(); ++k) same += source.region(k) == own ? 1 : 0;
      held[entry.source_base.index() + source.mesh.ranks[i].index()] +=
          Bytes{own.volume() * 6 + (own.volume() * 12 + same - 1) / same};
    }
  }
  return *std::max_element(held.begin(), held.end());
}

TEST(TensorClasses, know_the_memory_of_the_fullest_gpu) {
  for (const char* const settings :
       {"tp: 2, ep: 4, etp: 1, pp: 2", "tp: 1, ep: 8, pp: 1", "tp: 4, ep: 2, etp: 2, pp: 4"}) {
    for (const char* const engine : {"tp: 4", "tp: 2, pp: 2", "tp: 8, ep: 8"}) {
      const std::string text =
          std::string("name: memory\nmodel: {config: models/qwen3-30b-a3b.json, layers: 8}\n") +
          "fabric: {preset: dgx-h100, hosts: 4}\ntrain: {gpus: 16, " + settings + "}\ngenerate: {gpus: 16, " +
          engine + "}\n";
      const Scenario scenario = parse_scenario(text, project_folder() / "scenarios/memory.yaml");
      const Refit refit = resolve(scenario);
      const Memory memory = memory_of(scenario);
      EXPECT_EQ(memory.generate, refit.largest_live_share()) << text;
      EXPECT_EQ(memory.train, train_memory_by_rank(refit)) << text;
    }
  }
}

}  // namespace
}  // namespace isthmus

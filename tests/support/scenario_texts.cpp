#include "tests/support/scenario_texts.hpp"

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {

const std::string whole_refit = R"(name: small
model: {config: m.json}
fabric: {preset: dgx-h100, hosts: 4}
train: {gpus: 16, ep: 8, pp: 2}
generate: {gpus: 16, tp: 8}
ranks:
  train: {hosts: 0-1}
  generate:
    hosts: [3, 2]
refit:
  bulk: ffn
published:
  - {id: N2, policy: striped, seconds: [0.74, 1], source: x}
  - {id: N3, policy: striped, seconds: 2.5, source: y}
)";

const std::string bare_tensor = R"(tensor: {shape: [8, 6], dtype: bf16}
source: {mesh: [2, 2], first_rank: 0, placements: [shard(0), replicated]}
target: {mesh: [3], ranks: [6, 4, 5], placements: [shard(1)]}
fabric: {preset: dgx-h100, hosts: 1}
)";

Scenario parsed(const std::string& text, const std::vector<Override>& overrides) {
  return parse_scenario(text, "s.yaml", overrides);
}

std::string fault_of(const std::string& text, const std::vector<Override>& overrides) {
  try {
    parsed(text, overrides);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, std::string_view part, std::string_view by) {
  const std::size_t at = text.find(part);
  ISTHMUS_ASSERT(at != std::string::npos, "'{}' is not in the text", part);
  return text.replace(at, part.size(), by);
}

}  // namespace isthmus

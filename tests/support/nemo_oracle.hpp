#pragma once
// Recorded plans of NeMo RL's python reshard and of its golden reference (oracles/*.nemo-*.json of the
// published data): one tensor each, its layouts as input. Here: reading the input, and saying regions and
// plans in the words of the output, so that both compare as JSON. Ranks are global.

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "model/layout.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::test {

/// All recordings of "nemo-striped" or "nemo-golden", by name; none without the data.
std::vector<nlohmann::json> nemo_oracles(const std::string& mode);
/// The recorded input, its uneven dimensions cut by `rule`.
RefitCase nemo_case(const nlohmann::json& oracle, ChunkRule rule);

/// [[begin, end], ...]
nlohmann::json box_json(const Region& region);
/// {"rank": box, ...} of all mesh positions.
nlohmann::json regions_json(const Layout& layout);
bool is_empty(const nlohmann::json& box);
/// True for equal boxes of the same ranks; empty ones are equal wherever they lie.
bool same_regions(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace isthmus::test

#pragma once
// Random dense models (llama, qwen3), listed tensor by tensor in plain loops, and the two parts of them that
// lists of other families need as well. Shapes and splits are stated here a second time, independently of the
// families' code.

#include "tests/model/families/family_testing.hpp"

namespace isthmus::testing {

ModelCase dense_case(const std::string& architecture, bool query_key_norms);
/// One small, valid configuration.
nlohmann::json dense_case_config(const std::string& architecture);

/// q, k, v, o of one layer.
void add_attention(ModelCase& model, const std::string& layer, std::int64_t hidden, std::int64_t query_rows,
                   std::int64_t key_rows, std::int64_t output_columns);
/// gate, up, down.
void add_mlp(ModelCase& model, const std::string& name, std::int64_t hidden, std::int64_t inner);

}  // namespace isthmus::testing

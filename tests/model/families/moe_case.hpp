#pragma once
// Random models whose first layers are dense and whose MTP layers follow the decoder's (DeepSeek, GLM),
// listed tensor by tensor in plain loops. The attention differs between the families: the caller lists it,
// and gives its keys of the configuration.

#include "tests/model/families/dense_case.hpp"

namespace isthmus::testing {

/// `add_attention` lists the attention tensors of the layer with this prefix ("model.layers.3.").
ModelCase moe_case(
    const std::string& architecture, const nlohmann::json& attention_keys,
    const std::function<void(ModelCase&, const std::string& layer, std::int64_t hidden)>& add_attention);

}  // namespace isthmus::testing

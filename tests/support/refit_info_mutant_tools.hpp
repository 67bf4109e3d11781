#pragma once
// What the planted faults of refit descriptions share: picking maps, entries and tensors of a sample, and the
// two lists that make up refit_info_mutants().
// Invariant: the same seed picks the same place as long as the sample has not changed.

#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/refit_info_mutants.hpp"

namespace isthmus::test::refit_info {

using Json = OrderedJson;
using Shape = RefitInfoShape;

Json& info(Json& document);
Json& maps(Json& document);
bool is_generation(const Json& map);
bool is_training(const Json& map);
bool is_any(const Json&);
/// The first value from a place on, in circle, that has the property.
Json* find(Json& values, std::size_t seed, const std::function<bool(const Json&)>& property);
Json& generation_map(Json& document, std::size_t seed);
Json& training_map(Json& document, std::size_t seed);
Json& any_map(Json& document, std::size_t seed);
/// All bulk tensors, in order.
std::vector<Json*> tensors(Json& document);
Json& tensor(Json& document, std::size_t seed);
bool has(const Json& entry, std::string_view part);
bool is_expert(const Json& entry);
/// Gate and up of one part of one buffer; null where nothing is fused.
std::pair<Json*, Json*> fused_pair(Json& map, std::size_t seed);
/// Every pair of a buffer is exchanged.
bool exchange_halves(Json& map, std::size_t seed);
bool declare_up_gate(Json& map, std::size_t seed);

/// Faults of the description and of the names on both sides.
std::vector<RefitInfoMutant> description_mutants();
/// Faults of the boxes and buffers in local maps.
std::vector<RefitInfoMutant> map_mutants();

}  // namespace isthmus::test::refit_info

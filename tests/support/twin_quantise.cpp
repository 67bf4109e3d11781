// What the twin knows of quantising at the source: a source holds BF16, from which a group of 32 values, or
// the scale of one, can be made by whoever has all 32.

#include <map>

#include "tests/support/twin_run.hpp"

namespace isthmus::test {
namespace {

constexpr std::size_t twin_group = 32;

}  // namespace

/// What stands in a source shard before the refit: of a scale, BF16 only where its whole group is held.
std::uint64_t TwinRun::held_value(std::size_t tensor, std::uint32_t rank, std::size_t element) const {
  const RefitTensor& which = twin_.refit_.tensors[tensor].tensor;
  if (which.quantised == QuantisedPart::none) return id_of(tensor, element);
  if (which.quantised == QuantisedPart::values) return id_of(tensor, element) + in_bf16;
  for (std::size_t other = 0; other < twin_.tensors_.size(); ++other) {
    if (twin_.refit_.tensors[other].tensor.name + "_scale" != which.name) continue;
    const std::vector<bool>& held = twin_.tensors_[other].source[rank];
    std::size_t values = 0;
    for (std::size_t i = 0; i < twin_group && element * twin_group + i < held.size(); ++i)
      values += held[element * twin_group + i] ? std::size_t{1} : 0;
    return values == twin_group ? id_of(tensor, element) + in_bf16 : 0;
  }
  return 0;
}

/// BF16 that was read becomes what travels; a value whose group is not all there becomes poison.
void TwinRun::quantise(const Operation& operation, std::size_t piece,
                       std::vector<std::uint64_t>& values) const {
  const std::size_t tensor = plan_.instances[operation.pieces[piece].first].tensor.value;
  const QuantisedPart part = twin_.refit_.tensors[tensor].tensor.quantised;
  const std::vector<std::size_t>& elements = operation.elements[piece];
  std::map<std::size_t, std::size_t> there;  // by group: values that were read right
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const bool right = values[e] == id_of(tensor, elements[e]) + in_bf16;
    there[part == QuantisedPart::values ? elements[e] / twin_group : elements[e]] +=
        right ? std::size_t{1} : 0;
    values[e] = right && part != QuantisedPart::none ? id_of(tensor, elements[e]) : 0;
  }
  for (std::size_t e = 0; part == QuantisedPart::values && e < elements.size(); ++e) {
    if (there[elements[e] / twin_group] < twin_group) values[e] = 0;
  }
}

}  // namespace isthmus::test

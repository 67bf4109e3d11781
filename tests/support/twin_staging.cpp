// Staging that instances share: bytes of one buffer on one rank, each of which remembers the element that it
// was last written for.

#include <algorithm>

#include "tests/support/twin_run.hpp"

namespace isthmus::test {

std::size_t TwinRun::place_of(std::size_t index, std::uint32_t rank, std::size_t element) {
  const Instance& instance = plan_.instances[index];
  const std::vector<Element>& elements = twin_.tensors_[instance.tensor.value].elements;
  const auto [found, is_new] = staged_.try_emplace({index, rank});
  Box& box = found->second;
  const Pattern& pattern = plan_.patterns[instance.pattern.value];
  for (std::size_t s = 0; is_new && s < pattern.steps.size(); ++s) {
    const Step& step = pattern.steps[s];
    const std::vector<std::uint32_t> ranks = operation_of(instance, s).ranks;
    const bool gather = step.kind == StepKind::all_gather, broadcast = step.kind == StepKind::broadcast;
    const std::uint32_t sender = broadcast ? operation_of(instance, s).root : ranks.front();
    const bool reads = step.from == Buffer::staging && (gather || sender == rank);
    const bool writes = step.to == Buffer::staging && (gather || broadcast || ranks.back() == rank);
    if (!(reads || writes) || std::count(ranks.begin(), ranks.end(), rank) == 0) continue;
    for (const std::size_t e : elements_in(instance, step)) {
      if (box.low.empty()) box.low = box.high = elements[e];
      for (std::size_t d = 0; d < box.low.size(); ++d) {
        box.low[d] = std::min(box.low[d], elements[e][d]);
        box.high[d] = std::max(box.high[d], elements[e][d]);
      }
    }
  }
  std::int64_t position = 0;
  for (std::size_t d = 0; d < box.low.size(); ++d)
    position = position * (box.high[d] - box.low[d] + 1) + elements[element][d] - box.low[d];
  const std::int64_t size = element_size(twin_.refit_.geometry(instance.tensor).source.dtype).value;
  return to_size(instance.offset.value) + to_size(position * size);
}

std::uint64_t TwinRun::read_shared(std::size_t index, std::uint32_t rank, std::size_t element) {
  const Instance& instance = plan_.instances[index];
  const std::size_t first = place_of(index, rank, element);
  const auto size = to_size(element_size(twin_.refit_.geometry(instance.tensor).source.dtype).value);
  const std::vector<std::uint64_t>& bytes = shared_[{instance.buffer, rank}];
  if (first + size > bytes.size()) return 0;
  const bool whole = std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(first),
                                 bytes.begin() + static_cast<std::ptrdiff_t>(first + size),
                                 [&](std::uint64_t byte) { return byte == bytes[first]; });
  return whole ? bytes[first] : 0;
}

void TwinRun::write_shared(std::size_t index, std::uint32_t rank, std::size_t element, std::uint64_t value) {
  const Instance& instance = plan_.instances[index];
  const std::size_t first = place_of(index, rank, element);
  const auto size = to_size(element_size(twin_.refit_.geometry(instance.tensor).source.dtype).value);
  brought_[{index, rank}].insert(element);
  std::vector<std::uint64_t>& bytes = shared_[{instance.buffer, rank}];
  const bool fits = first + size <= to_size(plan_.buffers[instance.buffer].size.value);
  if (!fits || instance.offset.value % static_cast<std::int64_t>(size) != 0) {
    ++result_.outside;  // of the buffer, or not at a whole element
    return;
  }
  if (bytes.size() < first + size) bytes.resize(first + size);  // only as much of it as is used
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), size, value);
}

}  // namespace isthmus::test

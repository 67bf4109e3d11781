// What the twin notes and judges: puts in flight, what engines have installed, what has arrived.

#include "tests/support/twin_run.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace isthmus::test {

/// The engine has processed what stood there from its start to its end.
void TwinRun::install(const Operation& operation, std::size_t piece) {
  const std::size_t tensor = plan_.instances[operation.pieces[piece].first].tensor.value;
  const Twin::Place& at = place(tensor, operation.ranks.front(), Buffer::target);
  const std::vector<std::size_t>& elements = operation.elements[piece];
  for (std::size_t e = 0; e < elements.size(); ++e) {
    const std::size_t position = at.of(elements[e]);
    if (position == Twin::nowhere) continue;
    const std::uint64_t id = id_of(tensor, elements[e]);
    const bool right = operation.in_flight[piece][e] == id && memories_[at.memory].values[position] == id;
    if (right) memories_[at.memory].installed[position] = true;
  }
}

void TwinRun::note_puts(const Operation& operation, bool launched) {
  if (operation.kind != StepKind::put) return;
  std::size_t& puts = puts_[{operation.ranks[0], operation.ranks[1]}];
  puts += launched ? 1 : std::size_t(-1);
  result_.largest_puts = std::max(result_.largest_puts, puts);
}

void TwinRun::judge() {
  for (std::size_t t = 0; t < twin_.tensors_.size(); ++t) {
    const Twin::Tensor& tensor = twin_.tensors_[t];
    const bool install = twin_.refit_.tensors[t].tensor.install;
    for (std::uint32_t rank = 0; rank < tensor.target.size(); ++rank) {
      const Twin::Place& at = tensor.target_place[rank];
      for (std::size_t e = 0; e < tensor.target[rank].size(); ++e) {
        if (!tensor.target[rank][e]) continue;
        ++result_.target_elements;
        const Memory& memory = memories_[at.memory];
        const std::size_t position = at.of(e);
        const bool wrong = memory.values[position] != id_of(t, e), twice = memory.writes[position] > 1;
        const bool raw = install && !memory.installed[position];
        result_.missing += wrong || raw;
        result_.twice += twice;
        if ((!wrong && !twice && !raw) || !result_.first_fault.empty()) continue;
        result_.first_fault =
            fmt::format("tensor {} element ({}) on rank {}: {}", t, fmt::join(tensor.elements[e], ","), rank,
                        wrong   ? "does not arrive"
                        : twice ? "is written more than once"
                                : "is not installed");
      }
    }
  }
}

EndState TwinRun::end_state() const {
  EndState end;
  for (const Twin::Tensor& tensor : twin_.tensors_) {
    for (std::size_t rank = 0; rank < tensor.target.size(); ++rank) {
      const Twin::Place& at = tensor.target_place[rank];
      for (std::size_t e = 0; e < tensor.target[rank].size(); ++e) {
        if (tensor.target[rank][e]) end.push_back(memories_[at.memory].values[at.of(e)]);
      }
    }
  }
  return end;
}

}  // namespace isthmus::test

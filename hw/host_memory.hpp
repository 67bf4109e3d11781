#pragma once
// The arenas of the ranks of one process (all of them, unless said), what fills them before a run, and what
// judges them after it.
// Ranks are dealt to threads; what is found is listed by rank, so threads change no result.
// Invariant: every byte of an arena but the gaps between shards has a value that the pass determines.

#include <cstddef>
#include <memory>
#include <vector>

#include "hw/executor.hpp"
#include "hw/judge.hpp"

namespace isthmus::hw {

class HostMemory {
 public:
  /// The program must outlive it. Raises InputError when this machine's memory is too small.
  HostMemory(const Program& program, std::size_t threads);
  /// Of these ranks only, ascending; the others have no arena.
  HostMemory(const Program& program, std::size_t threads, std::vector<Rank> ranks);

  std::byte* arena(Rank rank) { return arenas_[rank.index()].get(); }

  /// Everything as before a run, in this pass of the code.
  void prepare(std::uint32_t pass);
  /// Compares every byte of the target shards; adds what is wrong to the measurement.
  void judge(std::uint32_t pass, std::size_t most, Measurement& measurement) const;
  std::uint32_t passes() const { return codes_.passes(); }

 private:
  const Program& program_;
  Codes codes_;
  std::size_t threads_;
  std::vector<Rank> ranks_;
  std::vector<std::unique_ptr<std::byte[]>> arenas_;  // by rank
};

}  // namespace isthmus::hw

#pragma once
// Replays that look for what luck hides: one operation at a time, each in turn as late as the rule of
// planner/plan.hpp allows. What an operation moves it reads when it writes it; or the late one, or all, have
// read it when they might have started. So of two operations that nothing orders, either may see, or destroy,
// what the other one did.
// Plans may be wrong, but must be such that hw::Program takes them and that their operations end.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "hw/host_memory.hpp"
#include "planner/queues.hpp"

namespace isthmus::test {

/// How often the transfers of a program write the bytes of target shards, beyond once each. Told from what is
/// to be moved: bytes that are written twice with equal values show in no end state.
inline std::int64_t bytes_written_again(const hw::Program& program) {
  std::vector<std::vector<unsigned char>> written(program.ranks());
  for (std::uint32_t rank = 0; rank < program.ranks(); ++rank)
    written[rank].assign(to_size(program.arena({rank}).staging.value), 0);
  std::int64_t again = 0;
  const auto count = [&](const hw::Transfer& transfer) {
    std::vector<unsigned char>& arena = written[transfer.to.index()];
    const hw::Move& move = transfer.move;
    for (std::int64_t run = 0; run < move.runs(); ++run) {
      std::int64_t at = move.target, left = run;
      for (std::size_t l = move.loops.size(); l-- > 0; left /= move.loops[l].count)
        at += left % move.loops[l].count * move.loops[l].target_stride;
      for (std::int64_t byte = at; byte < at + move.run && to_size(byte) < arena.size(); ++byte)
        again += arena[to_size(byte)]++ > 0 ? 1 : 0;
    }
  };
  for (std::uint32_t i = 0; i < program.operations().list.size(); ++i)
    for (const hw::Transfer& transfer : program.transfers(i)) count(transfer);
  return again;
}

class LateReplays {
 public:
  explicit LateReplays(const hw::Program& program)
      : memory_(program, 1), plan_(program.operations()), transfers_(program.operations().list.size()) {
    for (std::uint32_t i = 0; i < transfers_.size(); ++i) transfers_[i] = program.transfers(i);
  }

  /// Whether some replay ends with wrong bytes. Of more than `most` operations, as many are late, spread
  /// evenly.
  bool some_wrong(std::size_t most = 128) {
    const std::size_t stride = transfers_.size() / most + 1;
    for (std::size_t late = 0; late < transfers_.size(); late += stride) {
      const auto pass = static_cast<std::uint32_t>(late % memory_.passes());
      for (const Early early : {Early::nobody, Early::late_one, Early::all}) {
        if (wrong(static_cast<std::uint32_t>(late), early, pass)) return true;
      }
    }
    return false;
  }

 private:
  enum class Early { nobody, late_one, all };  // who reads when it might start
  using Messages = std::vector<std::vector<std::byte>>;

  bool wrong(std::uint32_t late, Early early, std::uint32_t pass) {
    memory_.prepare(pass);
    Queues queues(plan_);
    std::vector<std::uint32_t> found;
    std::map<std::uint32_t, Messages> ready;  // what they have read, where they read early
    queues.begin(found);
    while (true) {
      for (const std::uint32_t next : found) {
        const bool reads = early == Early::all || (early == Early::late_one && next == late);
        ready.emplace(next, reads ? read(next) : Messages());
      }
      if (ready.empty()) break;
      auto chosen = ready.begin();
      if (chosen->first == late && ready.size() > 1) ++chosen;
      const std::uint32_t operation = chosen->first;
      write(operation, chosen->second.empty() ? read(operation) : chosen->second);
      ready.erase(chosen);
      found.clear();
      queues.complete(operation, found);
    }
    hw::Measurement measurement;
    memory_.judge(pass, 1, measurement);
    return measurement.mismatch_count > 0;
  }

  Messages read(std::uint32_t operation) {
    Messages messages;
    for (const hw::Transfer& transfer : transfers_[operation]) {
      messages.emplace_back(to_size(transfer.move.bytes()));
      pack_bytes(transfer.move, memory_.arena(transfer.from), messages.back().data());
    }
    return messages;
  }
  void write(std::uint32_t operation, const Messages& messages) {
    for (std::size_t t = 0; t < messages.size(); ++t) {
      const hw::Transfer& transfer = transfers_[operation][t];
      unpack_bytes(transfer.move, messages[t].data(), memory_.arena(transfer.to));
    }
  }

  hw::HostMemory memory_;
  QueuePlan plan_;
  std::vector<std::vector<hw::Transfer>> transfers_;  // by operation
};

}  // namespace isthmus::test

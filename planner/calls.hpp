#pragma once
// What a transport's program does per refit tensor beside moving bytes. A program (NeMo RL's python
// transports, NCCL M2N) handles the tensors of a whole refit one by one, a call each; packed broadcasts are
// no calls. Before the first messages of a call
//   each sender's exporter hands out the HuggingFace tensors that its shard is stacked of, one by one:
//     parts x rows of its shard / rows of the tensor, rounded up;
//   each receiver makes its call, whose host time is shared out between the messages that it gets.
// All ranks of a broadcast call alike; the last member, on the generation side, stands for them.
// Sources: what exporters and loaders do per tensor, published refits of NeMo RL (docs/calibration.md).

#include <cstdint>
#include <unordered_map>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// Whose calls they are.
enum class Program : std::uint8_t { none, python, native };

/// The call for a tensor that travels by one pattern: what it costs the steps of its first messages.
class PatternCall {
 public:
  /// No step is part of a call.
  PatternCall() = default;
  PatternCall(const Pattern& pattern, const Geometry& geometry);

  bool includes(const Step& step) const;
  /// Whose host pays for the step's share, one of so many. Of included steps.
  static LocalRank caller(const Pattern& pattern, const Step& step);
  std::uint32_t shares(LocalRank caller) const { return messages_.at(caller.value); }
  /// Tensors that the step's sender hands out of `parts` that are stacked; 0 where it holds no source shard.
  std::uint32_t exports(const Step& step, std::int64_t parts) const;

 private:
  static constexpr std::uint32_t no_group = 0xFFFFFFFF;
  std::uint32_t group_ = no_group;
  std::unordered_map<std::uint32_t, std::uint32_t> messages_;  // in the first group, by caller
  std::unordered_map<std::uint32_t, std::int64_t> rows_;       // of dimension 0, by holder
  std::int64_t all_rows_ = 1;
};

}  // namespace isthmus

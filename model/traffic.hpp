#pragma once
// What a scenario of the third form moves: plain traffic in place of a refit, for what-ifs of the fabric
// itself. A pattern says who sends how much to whom; channels may cap what crosses the network; a healthy
// twin - the same scenario with other values at some keys, without edits unless told otherwise - gives the
// rate that the edited fabric is compared with.
// Invariant: reading what the writer writes gives an equal TrafficSpec. Rules that need the fabric stand in
// model/traffic_rules.hpp. The keys are explained in docs/scenario.md.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/units.hpp"

namespace isthmus {

/// pair, flows: stated; all-to-all: every ordered pair; shift: everyone to the next, as nccl-tests' sendrecv;
/// all-reduce: rings that follow from the fabric; rings: all-reduce over stated rings.
enum class TrafficPattern : std::uint8_t { pair, flows, all_to_all, shift, all_reduce, rings };

struct TrafficFlow {
  int from = 0, to = 0;          // GPUs of the fabric
  std::optional<Bytes> bytes{};  // unset: TrafficSpec::bytes
  friend bool operator==(const TrafficFlow&, const TrafficFlow&) = default;
};

/// A published pair of rates of one machine, healthy and broken, as their ratio.
struct PublishedRatio {
  std::string id;
  std::optional<double> low{}, high{};  // broken / healthy; unset where only a symptom was published
  std::string healthy, edited;          // the two rates in the source's words
  std::string symptom, source;
  friend bool operator==(const PublishedRatio&, const PublishedRatio&) = default;
};

struct TrafficSpec {
  TrafficPattern pattern = TrafficPattern::pair;
  std::vector<TrafficFlow> flows{};            // of pair (one) and flows
  std::vector<int> gpus{};                     // of all-to-all, shift and all-reduce
  std::vector<std::vector<int>> rings{};       // of rings: GPUs in ring order
  Bytes bytes{1'000'000'000};                  // all-reduce and rings: per GPU; else per flow
  bool nccl_channels = false;                  // channels per peer by NCCL's rule
  std::optional<int> channels{};               // or so many; neither: no cap
  std::map<std::string, std::int64_t> nccl{};  // settings by NCCL's names
  std::vector<std::pair<std::string, std::string>> baseline{};  // dotted key, YAML value or "none"
  std::optional<double> expected{};                             // ratio that arithmetic gives for this file
  std::vector<PublishedRatio> published{};
  friend bool operator==(const TrafficSpec&, const TrafficSpec&) = default;
};

}  // namespace isthmus

#pragma once
// A finished sweep as its readers get it (docs/sweep.md has the columns and keys): a table with the best, the
// Pareto front and the winner as a scenario and as NeMo RL overrides; CSV with one line per candidate; JSON
// lines with one object per candidate and one for the whole.
// Invariant: equal results give equal bytes. Two candidates cannot be told apart where their intervals
// (report/prediction_interval.hpp) overlap.

#include <string>

#include "report/sweep.hpp"

namespace isthmus::report {

/// All that a document shows. What it refers to must outlive it.
struct SweepView {
  const SweepSpace& space;
  const SweepCandidates& candidates;
  const SweepResult& result;
};

std::string sweep_table(const SweepView& view);
std::string sweep_csv(const SweepView& view);
std::string sweep_json_lines(const SweepView& view);

/// One candidate, as the CSV and JSON documents name its values, in their order.
struct SweepValue {
  std::string key, text;
  enum class Kind : std::uint8_t { number, word, nothing } kind = Kind::word;
};
std::vector<SweepValue> sweep_values(const SweepView& view, std::uint32_t candidate);

/// Positions in `best`, from 1 on, of those whose interval overlaps that of the first.
std::vector<std::size_t> like_the_first(const SweepView& view, const SweepField& field);
/// Overrides of a NeMo RL recipe, a line each, or comments that say why there are none.
std::string winner_overrides(const SweepView& view, std::uint32_t candidate);
std::string winner_scenario(const SweepView& view, std::uint32_t candidate);

}  // namespace isthmus::report

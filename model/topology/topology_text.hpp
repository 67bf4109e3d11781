#pragma once
// Internal to the readers of line-wise topology files (nvidia_smi*, ibnetdiscover*, nccl_log*): lines with
// their numbers, words, bounded numbers, findings, and what all of them build in the same way.
// Invariant: nothing here costs more than time in proportion to the text, and what a finding says is one
// printable line; at most max_findings_of_a_code findings carry the same code, and one more counts the rest.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology.hpp"

namespace isthmus {

inline constexpr std::size_t max_findings_of_a_code = 64;
inline constexpr std::size_t max_name_bytes = 255;  // NCCL's own limit of a string

class Findings {
 public:
  void add(std::string_view code, std::string_view text);
  std::vector<Finding> take();

 private:
  std::vector<Finding> list_;
  std::map<std::string, std::size_t> of_code_;
};

/// The lines of a text, without '\n' and '\r', numbered from 1.
class TextLines {
 public:
  explicit TextLines(std::string_view text) : rest_(text) {}
  bool next(std::string_view& line);
  int number() const { return number_; }
  /// Whether the line last read is the end of the text, without a line break.
  bool at_cut_line() const { return cut_; }

 private:
  std::string_view rest_;
  int number_ = 0;
  bool cut_ = false;
};

/// InputError for a text of more than max_topology_bytes.
void require_topology_size(std::string_view text, const std::string& file);

std::string_view trimmed(std::string_view text);
std::vector<std::string_view> words_of(std::string_view line);
/// All of `text` as digits of the base (10 or 16), without sign or prefix, at most `most`.
std::optional<std::uint64_t> whole_number(std::string_view text, int base, std::uint64_t most);
/// "372.5" with at most nine decimals: thousand-millionths; nullopt for anything else or above `most` units.
std::optional<std::int64_t> decimal_in_billionths(std::string_view text, std::int64_t most);
/// "gpu 3", "gpu 3 and 5", "gpu 3, 5 and 4 more".
std::string listed(const std::vector<std::string>& names, std::size_t most = 8);
/// A name of the file as it may stand in a topology.
std::string topology_name(std::string_view text);

/// "c9" before "c10"; names that differ in zeros alone by their bytes.
bool natural_less(std::string_view a, std::string_view b);
/// The value that occurs most often, of several the largest. Requires one value at least.
std::size_t most_common(const std::vector<std::size_t>& values);

/// Adds a wire and its way back.
void join(Block& block, const BlockWire& wire);
/// Adds a vertex and returns its number. `index` counts its kind.
std::uint32_t add_vertex(Block& block, VertexKind kind, std::uint32_t host, std::string label);
/// Rail of each NIC: NICs in the order of their nearest GPU, those without one last.
std::vector<std::uint32_t> rails_of(const std::vector<std::optional<std::uint32_t>>& nearest_gpu);
/// One block alone, its NICs without cables; with the finding that says so.
Topology topology_of(Block block, Findings& findings);

}  // namespace isthmus

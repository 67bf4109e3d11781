#pragma once
// Internal to the reader of `nvidia-smi topo -m`: the printed matrix as a matrix. Columns are GPUs and NICs;
// rows may be missing, lines may be separated by tabs or by blanks, headers may hold escape codes, the
// affinity columns vary with the version.
// Invariants: the matrix is square over the columns, symmetric, and `self` exactly on its diagonal; a cell is
// `unknown` only between two devices without rows, which are NICs. Where both halves differ, the weaker word
// stands and a finding names both. Words: docs/topology-files.md.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology_text.hpp"

namespace isthmus {

/// From near to far; `unknown` last.
enum class Closeness : std::uint8_t { self, nvlink, pix, pxb, phb, numa, sys, unknown };

struct MatrixCell {
  Closeness closeness = Closeness::unknown;
  std::uint32_t links = 0;  // of nvlink: the k of NV<k>
  friend bool operator==(const MatrixCell&, const MatrixCell&) = default;
};
std::string to_string(const MatrixCell& cell);

struct MatrixDevice {
  std::string name;   // of the column
  std::string label;  // of the NIC legend where there is one, else the name
  bool gpu = false;
  int line = 0;              // of its row; 0 without
  std::string cpus, numa{};  // affinity as printed; empty where the file does not say
};

struct SmiMatrix {
  std::vector<MatrixDevice> devices;
  std::vector<MatrixCell> cells;  // row by row
  const MatrixCell& at(std::size_t row, std::size_t column) const {
    return cells[row * devices.size() + column];
  }
  MatrixCell& at(std::size_t row, std::size_t column) { return cells[row * devices.size() + column]; }
};

inline constexpr std::size_t max_smi_devices = 256;  // GPUs and NICs of one host
inline constexpr std::uint32_t max_smi_links = 99;   // of one NV<k>

/// The line that names the columns: GPU0 first, and no cell behind it.
bool is_smi_header(std::string_view line);

/// Raises InputError with file, line and "ROW/COLUMN".
SmiMatrix read_smi_matrix(std::string_view text, const std::string& file, Findings& findings);

}  // namespace isthmus

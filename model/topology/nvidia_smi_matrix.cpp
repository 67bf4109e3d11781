#include "model/topology/nvidia_smi_matrix.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr std::string_view allowed_cells = "X on the diagonal, NV<k>, PIX, PXB, PHB, NODE, SYS";

bool is_gpu_name(std::string_view word) {
  return word.starts_with("GPU") && whole_number(word.substr(3), 10, 9999).has_value();
}

/// Without the escape codes that underline headers: ESC [ ... letter.
std::string without_escapes(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    if (i + 1 < line.size() && line[i + 1] == '[') ++i;
    while (i + 1 < line.size() && (line[i + 1] == ';' || (line[i + 1] >= '0' && line[i + 1] <= '9'))) ++i;
    ++i;  // the letter
  }
  return plain;
}

/// Cells between tabs, which may be empty; of a line without tabs its words.
std::vector<std::string_view> cells_of(std::string_view line) {
  if (line.find('\t') == std::string_view::npos) return words_of(line);
  std::vector<std::string_view> cells;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    cells.push_back(trimmed(line.substr(at, end - at)));
    at = end + 1;
  }
  return cells;
}

std::optional<MatrixCell> parse_cell(std::string_view word) {
  struct Word {
    std::string_view text;
    Closeness closeness;
  };
  constexpr std::array words{Word{"X", Closeness::self},    Word{"PIX", Closeness::pix},
                             Word{"PXB", Closeness::pxb},   Word{"PHB", Closeness::phb},
                             Word{"NODE", Closeness::numa}, Word{"SYS", Closeness::sys},
                             Word{"SOC", Closeness::sys}};  // of drivers before 2018
  for (const auto& [text, closeness] : words)
    if (word == text) return MatrixCell{closeness, 0};
  if (!word.starts_with("NV")) return std::nullopt;
  const auto links = whole_number(word.substr(2), 10, max_smi_links);
  if (!links || *links == 0) return std::nullopt;
  return MatrixCell{Closeness::nvlink, static_cast<std::uint32_t>(*links)};
}

/// "0-55,112-167"; what else may stand there means "not said".
bool is_number_list(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789-,") == std::string_view::npos &&
         text.front() >= '0' && text.front() <= '9';
}

bool weaker(const MatrixCell& a, const MatrixCell& b) {
  return a.closeness != b.closeness ? a.closeness > b.closeness : a.links < b.links;
}

class MatrixReader {
 public:
  MatrixReader(std::string_view text, const std::string& file, Findings& findings)
      : lines_(text), file_(file), findings_(findings) {}

  SmiMatrix read() {
    read_header();
    read_rows();
    complete();
    return std::move(matrix_);
  }

 private:
  [[noreturn]] void refuse(std::string_view key, std::string_view found, std::string_view allowed) const {
    throw InputError({file_, lines_.number(), std::string(key)}, found, allowed);
  }

  void read_header();
  void add_device(std::string_view name);
  void read_rows();
  void read_row(std::size_t row, const std::vector<std::string_view>& cells, bool tabs);
  void read_affinities(MatrixDevice& device, const std::vector<std::string_view>& rest, bool tabs);
  void read_legend(std::string_view line);
  void complete();

  TextLines lines_;
  const std::string& file_;
  Findings& findings_;
  SmiMatrix matrix_;
  std::map<std::string, std::size_t, std::less<>> number_of_;
  std::size_t affinity_columns_ = 0;
  bool has_numa_ = false;
};

void MatrixReader::add_device(std::string_view name) {
  if (matrix_.devices.size() == max_smi_devices)
    refuse("", fmt::format("more than {} columns", max_smi_devices), "the devices of one host");
  if (!number_of_.emplace(std::string(name), matrix_.devices.size()).second)
    refuse("", fmt::format("two columns {}", printable(name)), "each device once");
  MatrixDevice device;
  device.name = device.label = topology_name(name);
  device.gpu = is_gpu_name(name);
  matrix_.devices.push_back(device);
}

void MatrixReader::read_header() {
  std::string_view line;
  while (lines_.next(line) && !is_smi_header(line)) {
  }
  if (!is_smi_header(line)) refuse("", "no line with the names of the columns", "GPU0, GPU1, ... and NICs");
  const std::string plain = without_escapes(line);
  std::vector<std::string_view> words = words_of(plain);
  const auto end = std::find_if(words.begin(), words.end(), [](std::string_view word) {
    return word == "CPU" || word == "NUMA" || word == "GPU";
  });
  for (auto word = words.begin(); word != end; ++word) add_device(*word);
  const std::string_view rest =
      end == words.end()
          ? ""
          : std::string_view(plain).substr(static_cast<std::size_t>(end->data() - plain.data()));
  affinity_columns_ = rest.starts_with("CPU Affinity") ? 1U : 0U;
  has_numa_ = affinity_columns_ == 1 && rest.find("NUMA Affinity") != std::string_view::npos;
  affinity_columns_ += has_numa_ ? 1U : 0U;
  matrix_.cells.resize(matrix_.devices.size() * matrix_.devices.size());
}

void MatrixReader::read_rows() {
  bool after_blank = false, in_matrix = true, in_legend = false;
  for (std::string_view line; lines_.next(line);) {
    const std::string plain = without_escapes(line);
    if (trimmed(plain).empty()) {
      after_blank = true;
      continue;
    }
    if (trimmed(plain).ends_with("egend:")) {
      in_matrix = false;
      in_legend = trimmed(plain).starts_with("NIC");
      continue;
    }
    if (in_legend) read_legend(plain);
    if (!in_matrix) continue;
    const std::vector<std::string_view> cells = cells_of(plain);
    const auto row = number_of_.find(cells.front());
    if (row != number_of_.end()) {
      read_row(row->second, cells, plain.find('\t') != std::string::npos);
    } else if (after_blank) {
      in_matrix = false;
    } else {
      refuse("", fmt::format("a row \"{}\"", printable(cells.front())),
             "the name of a column, or a blank line");
    }
  }
}

void MatrixReader::read_row(std::size_t row, const std::vector<std::string_view>& cells, bool tabs) {
  MatrixDevice& device = matrix_.devices[row];
  const std::size_t columns = matrix_.devices.size();
  if (device.line != 0) refuse(device.name, "a second row", fmt::format("one; line {} is one", device.line));
  device.line = lines_.number();
  if (cells.size() < columns + 1)
    refuse(device.name, fmt::format("{} cells", cells.size() - 1),
           fmt::format("{}, one for each column", columns));
  for (std::size_t column = 0; column < columns; ++column) {
    const std::string_view word = cells[column + 1];
    const auto cell = parse_cell(word);
    const bool gpus = device.gpu && matrix_.devices[column].gpu;
    if (!cell || (cell->closeness == Closeness::self) != (row == column) ||
        (cell->closeness == Closeness::nvlink && !gpus)) {
      refuse(fmt::format("{}/{}", device.name, matrix_.devices[column].name),
             fmt::format("\"{}\"", printable(word)),
             gpus ? allowed_cells : "X on the diagonal, PIX, PXB, PHB, NODE, SYS");
    }
    matrix_.at(row, column) = *cell;
  }
  read_affinities(device, {cells.begin() + static_cast<std::ptrdiff_t>(columns) + 1, cells.end()}, tabs);
}

/// Without tabs an empty cell leaves no trace: then only a full set of columns says which is which.
void MatrixReader::read_affinities(MatrixDevice& device, const std::vector<std::string_view>& rest,
                                   bool tabs) {
  if (!device.gpu || rest.size() < affinity_columns_ || affinity_columns_ == 0) return;
  if (!tabs && has_numa_ && rest.size() == affinity_columns_ && !is_number_list(rest[1])) return;
  if (is_number_list(rest[0])) device.cpus = topology_name(rest[0]);
  if (has_numa_ && is_number_list(rest[1])) device.numa = topology_name(rest[1]);
}

void MatrixReader::read_legend(std::string_view line) {
  const std::size_t colon = line.find(':');
  const auto device = number_of_.find(trimmed(line.substr(0, colon)));
  if (colon == std::string_view::npos || device == number_of_.end() || matrix_.devices[device->second].gpu) {
    refuse("NIC Legend", fmt::format("\"{}\"", printable(trimmed(line))),
           "a NIC of the matrix, a colon, and its name");
  }
  const std::string name = topology_name(line.substr(colon + 1));
  if (!name.empty()) matrix_.devices[device->second].label = name;
}

/// Symmetry: fills what one half does not say, and settles what both say differently.
void MatrixReader::complete() {
  std::vector<std::string> missing;
  for (const MatrixDevice& device : matrix_.devices)
    if (device.line == 0) missing.push_back(device.name);
  if (!missing.empty()) {
    findings_.add("rows-missing", fmt::format("no rows of {}: taken from the other rows by symmetry; what "
                                              "these are to each other is not known",
                                              listed(missing)));
  }
  for (std::size_t row = 0; row < matrix_.devices.size(); ++row) {
    matrix_.at(row, row).closeness = Closeness::self;
    for (std::size_t column = row + 1; column < matrix_.devices.size(); ++column) {
      MatrixCell &there = matrix_.at(row, column), &back = matrix_.at(column, row);
      const MatrixDevice &a = matrix_.devices[row], &b = matrix_.devices[column];
      if (there.closeness == Closeness::unknown) there = back;
      if (back.closeness == Closeness::unknown) back = there;
      if (there.closeness == Closeness::unknown && (a.gpu || b.gpu)) {
        refuse(fmt::format("{}/{}", a.name, b.name), "neither a row of the one nor of the other",
               "a row for each GPU but one");
      }
      if (there == back) continue;
      const MatrixCell kept = weaker(there, back) ? there : back;
      findings_.add("matrix-asymmetric",
                    fmt::format("{} is {} to {} (line {}), the other way {} (line {}): taken as {}", a.name,
                                to_string(there), b.name, a.line, to_string(back), b.line, to_string(kept)));
      there = back = kept;
    }
  }
}

}  // namespace

std::string to_string(const MatrixCell& cell) {
  constexpr std::array<std::string_view, 8> words{"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS", "unknown"};
  const std::string_view word = words.at(static_cast<std::size_t>(cell.closeness));
  return cell.closeness == Closeness::nvlink ? fmt::format("NV{}", cell.links) : std::string(word);
}

bool is_smi_header(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t\r");
  if (first == std::string_view::npos || (line[first] != 'G' && line[first] != '\x1b')) return false;
  const std::string plain = without_escapes(line);
  const std::vector<std::string_view> words = words_of(plain);
  if (words.empty() || !is_gpu_name(words[0])) return false;
  if (words.size() == 1) return line.front() != 'G';
  const bool ends = words[1] == "CPU" || words[1] == "NUMA" || words[1] == "GPU";
  const std::string_view last = words[1].substr(words[1].size() - 1);
  return ends || (last >= "0" && last <= "9" && !parse_cell(words[1]));
}

SmiMatrix read_smi_matrix(std::string_view text, const std::string& file, Findings& findings) {
  require_topology_size(text, file);
  return MatrixReader(text, file, findings).read();
}

}  // namespace isthmus

#include "model/topology/nvidia_smi_places.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include <fmt/format.h>

namespace isthmus {
namespace {

/// Union-find; the root of a set is its lowest device.
class Sets {
 public:
  explicit Sets(std::size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void unite(std::size_t a, std::size_t b) {
    a = root(a);
    b = root(b);
    parent_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::size_t> parent_;
};

Sets sets_of(const SmiMatrix& matrix, const std::function<bool(const MatrixCell&)>& joined) {
  const std::size_t size = matrix.devices.size();
  Sets sets(size);
  for (std::size_t a = 0; a < size; ++a)
    for (std::size_t b = a + 1; b < size; ++b)
      if (joined(matrix.at(a, b))) sets.unite(a, b);
  return sets;
}

bool within(const MatrixCell& cell, Closeness most) {
  return cell.closeness >= Closeness::pix && cell.closeness <= most;
}

class PlaceFinder {
 public:
  PlaceFinder(const SmiMatrix& matrix, Findings& findings)
      : matrix_(matrix),
        findings_(findings),
        groups_(sets_of(matrix, [](const MatrixCell& cell) { return within(cell, Closeness::pix); })),
        parts_(sets_of(matrix, [](const MatrixCell& cell) { return within(cell, Closeness::pxb); })),
        cpus_(sets_of(matrix, [](const MatrixCell& cell) { return within(cell, Closeness::numa); })) {}

  SmiPlaces find() {
    join_by_affinity();
    join_unplaced();
    report_contradictions();
    return list_places();
  }

 private:
  std::size_t size() const { return matrix_.devices.size(); }
  const std::string& affinity(std::size_t i) const {
    const MatrixDevice& device = matrix_.devices[i];
    return device.numa.empty() ? device.cpus : device.numa;
  }
  void join_by_affinity();
  void join_unplaced();
  void report_contradictions();
  SmiPlaces list_places();

  const SmiMatrix& matrix_;
  Findings& findings_;
  Sets groups_, parts_, cpus_;
};

void PlaceFinder::join_by_affinity() {
  std::map<std::string, std::size_t> first_of;
  for (std::size_t i = 0; i < size(); ++i) {
    if (affinity(i).empty()) continue;
    const auto [first, is_new] = first_of.emplace(affinity(i), i);
    if (!is_new) cpus_.unite(first->second, i);
  }
}

/// GPUs of which neither an affinity nor a neighbour is known share a CPU, and so do NICs that are far from
/// every GPU, where the file does not say that they are far from each other.
void PlaceFinder::join_unplaced() {
  std::vector<std::size_t> members(size());
  std::vector<bool> has_gpu(size());
  for (std::size_t i = 0; i < size(); ++i) {
    ++members[cpus_.root(i)];
    if (matrix_.devices[i].gpu) has_gpu[cpus_.root(i)] = true;
  }
  std::vector<std::string> gpus, nics;
  std::vector<std::size_t> unplaced, far;
  for (std::size_t i = 0; i < size(); ++i) {
    const bool gpu = matrix_.devices[i].gpu;
    if (gpu && affinity(i).empty() && members[cpus_.root(i)] == 1) {
      unplaced.push_back(i);
      gpus.push_back(matrix_.devices[i].name);
    }
    if (!has_gpu[cpus_.root(i)]) {
      far.push_back(i);
      nics.push_back(matrix_.devices[i].name);
    }
  }
  for (const std::size_t gpu : unplaced) cpus_.unite(unplaced.front(), gpu);
  for (const std::size_t a : far)
    for (const std::size_t b : far)
      if (matrix_.at(a, b).closeness == Closeness::unknown) cpus_.unite(a, b);
  if (unplaced.size() > 1) {
    findings_.add("gpu-place-unknown",
                  fmt::format("nothing says which CPU {} hang on: one is taken for all", listed(gpus)));
  }
  if (!far.empty()) {
    findings_.add("nic-far-from-all-gpus",
                  fmt::format("SYS from {} to every GPU: read as hanging on a CPU without GPUs; on Grace "
                              "machines SYS does not mean that a NIC is remote, and NCCL's system XML says "
                              "where it is",
                              listed(nics)));
  }
}

void PlaceFinder::report_contradictions() {
  std::size_t count = 0;
  std::string first;
  for (std::size_t a = 0; a < size(); ++a) {
    for (std::size_t b = a + 1; b < size(); ++b) {
      const MatrixCell& cell = matrix_.at(a, b);
      const bool other_cpu = !affinity(a).empty() && !affinity(b).empty() && affinity(a) != affinity(b) &&
                             cpus_.root(a) == cpus_.root(b);
      const Closeness most = groups_.root(a) == groups_.root(b) ? Closeness::pix
                             : parts_.root(a) == parts_.root(b) ? Closeness::pxb
                             : cpus_.root(a) == cpus_.root(b)   ? Closeness::numa
                                                                : Closeness::sys;
      const bool said = cell.closeness != Closeness::nvlink && cell.closeness != Closeness::unknown;
      if (!other_cpu && (!said || cell.closeness <= most)) continue;
      if (count++ == 0) {
        first =
            fmt::format("{} is {} to {}", matrix_.devices[a].name, to_string(cell), matrix_.devices[b].name);
      }
    }
  }
  if (count == 0) return;
  findings_.add("matrix-contradicts-itself",
                fmt::format("{} pairs are farther apart than what both share with others, or their NUMA "
                            "affinity, allows ({}): the nearer place is taken",
                            count, first));
}

SmiPlaces PlaceFinder::list_places() {
  SmiPlaces places;
  std::map<std::size_t, std::size_t> cpu_of, part_of, group_of;  // by root
  for (std::size_t i = 0; i < size(); ++i) {
    const auto [cpu, new_cpu] = cpu_of.emplace(cpus_.root(i), places.cpus.size());
    if (new_cpu) places.cpus.push_back({"NUMA domain not in the file", ""});
    SmiCpu& place = places.cpus[cpu->second];
    if (place.numa_id.empty() && !affinity(i).empty()) {
      const std::string& numa = matrix_.devices[i].numa;
      place.label = fmt::format("{} {}", numa.empty() ? "CPUs" : "NUMA", affinity(i));
      place.numa_id = numa.substr(0, numa.find_first_not_of("0123456789"));
    }
    const auto [part, new_part] = part_of.emplace(parts_.root(i), places.parts.size());
    if (new_part) places.parts.push_back({cpu->second, {}});
    std::vector<std::vector<std::size_t>>& groups = places.parts[part->second].groups;
    const auto [group, new_group] = group_of.emplace(groups_.root(i), groups.size());
    if (new_group) groups.emplace_back();
    groups[group->second].push_back(i);
  }
  return places;
}

}  // namespace

std::vector<std::vector<std::size_t>> nvlink_islands(const SmiMatrix& matrix) {
  Sets sets = sets_of(matrix, [](const MatrixCell& cell) { return cell.closeness == Closeness::nvlink; });
  std::map<std::size_t, std::vector<std::size_t>> by_root;
  for (std::size_t i = 0; i < matrix.devices.size(); ++i)
    if (matrix.devices[i].gpu) by_root[sets.root(i)].push_back(i);
  std::vector<std::vector<std::size_t>> islands;
  for (auto& [root, island] : by_root) islands.push_back(std::move(island));
  return islands;
}

SmiPlaces find_places(const SmiMatrix& matrix, Findings& findings) {
  return PlaceFinder(matrix, findings).find();
}

}  // namespace isthmus

#include "model/topology/block_analysis.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>
#include <utility>

namespace isthmus {
namespace {

constexpr std::uint32_t none = 0xFFFFFFFF;
constexpr std::uint32_t socket_stages = 16;

/// Sets that grow together.
class Sets {
 public:
  std::uint32_t add() {
    parents_.push_back(static_cast<std::uint32_t>(parents_.size()));
    return parents_.back();
  }
  std::uint32_t find(std::uint32_t element) {
    while (parents_[element] != element) element = parents_[element] = parents_[parents_[element]];
    return element;
  }
  /// The lower number stays.
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    parents_[std::max(a, b)] = std::min(a, b);
  }

 private:
  std::vector<std::uint32_t> parents_;
};

/// A switch chip joins GPUs of every partition, each with its own only: (chips joined together, partition) is
/// one place.
void find_domains(const Block& block, BlockAnalysis& analysis) {
  Sets vertices, places;
  for (std::size_t i = 0; i < block.vertices.size(); ++i) vertices.add();
  std::vector<std::uint32_t> gpu_at(block.vertices.size(), none);
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    places.add();
    gpu_at[block.gpus[gpu].vertex] = gpu;
  }
  for (const BlockWire& wire : block.wires) {
    const bool between_chips = gpu_at[wire.from] == none && gpu_at[wire.to] == none;
    if (wire.kind == WireKind::nvlink && between_chips) vertices.join(wire.from, wire.to);
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> switched;
  for (const BlockWire& wire : block.wires) {
    const std::uint32_t from = gpu_at[wire.from], to = gpu_at[wire.to];
    if (wire.kind != WireKind::nvlink || from == none) continue;
    const std::uint32_t partition = block.gpus[from].partition;
    if (to == none) {
      const auto [place, fresh] = switched.emplace(std::pair(vertices.find(wire.to), partition), 0);
      if (fresh) place->second = places.add();
      places.join(from, place->second);
    } else if (block.gpus[to].partition == partition) {
      places.join(from, to);
    }
  }
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    const auto next = static_cast<std::uint32_t>(numbers.size());
    analysis.gpus[gpu].domain = numbers.emplace(places.find(gpu), next).first->second;
  }
  analysis.domains = static_cast<std::uint32_t>(numbers.size());
}

void add_rate(std::optional<Bandwidth>& sum, Bandwidth rate) {
  if (rate == Bandwidth{0}) sum.reset();
  if (sum) *sum += rate;
}

void add_wires(const Block& block, BlockAnalysis& analysis) {
  std::vector<std::uint32_t> gpu_at(block.vertices.size(), none);
  std::vector<std::optional<Bandwidth>> pcie(block.gpus.size(), Bandwidth{}), c2c = pcie;
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    gpu_at[block.gpus[gpu].vertex] = gpu;
    analysis.gpus[gpu].nvlink = Bandwidth{};
  }
  for (const BlockWire& wire : block.wires) {
    const std::uint32_t gpu = gpu_at[wire.from];
    if (gpu == none) continue;
    if (wire.kind == WireKind::nvlink) {
      analysis.gpus[gpu].nvlink_wires += wire.wires;
      analysis.nvlink_ends += wire.wires;
      add_rate(analysis.gpus[gpu].nvlink, wire.rate);
    } else {
      add_rate(wire.kind == WireKind::c2c ? c2c[gpu] : pcie[gpu], wire.rate);
    }
  }
  for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
    if (!block.nvlink_known) analysis.gpus[gpu].nvlink.reset();
    if (!pcie[gpu] || !c2c[gpu]) continue;
    const Bandwidth wider = std::max(*pcie[gpu], *c2c[gpu]);
    if (wider > Bandwidth{0}) analysis.gpus[gpu].host = wider;
  }
}

/// Stages from a GPU to every vertex, over PCIe switches and CPUs only.
class NearestNics {
 public:
  explicit NearestNics(const Block& block) : block_(block), ways_(block.vertices.size()) {
    for (const BlockWire& wire : block.wires)
      if (wire.kind != WireKind::nvlink)
        ways_[wire.from].emplace_back(wire.to, wire.kind == WireKind::socket ? socket_stages : 1);
    distance_.assign(block.vertices.size(), none);
  }

  /// The NICs' numbers and how many stages away they are.
  std::pair<std::vector<std::uint32_t>, std::uint32_t> of(std::uint32_t vertex) {
    search(vertex);
    std::pair<std::vector<std::uint32_t>, std::uint32_t> nearest{{}, none};
    for (std::uint32_t nic = 0; nic < block_.nics.size(); ++nic) {
      const std::uint32_t stages = distance_[block_.nics[nic].vertex];
      if (stages == none || stages > nearest.second) continue;
      if (stages < nearest.second) nearest = {{}, stages};
      nearest.first.push_back(nic);
    }
    for (const std::uint32_t each : reached_) distance_[each] = none;
    reached_.clear();
    return nearest;
  }

 private:
  void search(std::uint32_t start) {
    using Place = std::pair<std::uint32_t, std::uint32_t>;  // stages, vertex
    std::priority_queue<Place, std::vector<Place>, std::greater<>> queue;
    const auto reach = [&](std::uint32_t vertex, std::uint32_t stages) {
      if (stages >= distance_[vertex]) return;
      distance_[vertex] = stages;
      reached_.push_back(vertex);
      queue.emplace(stages, vertex);
    };
    reach(start, 0);
    while (!queue.empty()) {
      const auto [stages, vertex] = queue.top();
      queue.pop();
      const VertexKind kind = block_.vertices[vertex].kind;
      const bool passes = vertex == start || kind == VertexKind::pcie_switch || kind == VertexKind::cpu;
      if (!passes || stages != distance_[vertex]) continue;
      for (const auto& [to, more] : ways_[vertex]) reach(to, stages + more);
    }
  }

  const Block& block_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> ways_;
  std::vector<std::uint32_t> distance_, reached_;
};

/// All ports of the card that a GPU is told to use.
std::vector<std::uint32_t> ports_beside(const Block& block, std::uint32_t nic) {
  std::vector<std::uint32_t> ports;
  for (std::uint32_t port = 0; port < block.nics.size(); ++port) {
    const BlockNic &one = block.nics[nic], &other = block.nics[port];
    if (one.card == other.card && block.vertices[one.vertex].host == block.vertices[other.vertex].host)
      ports.push_back(port);
  }
  return ports;
}

void find_nics(const Block& block, BlockAnalysis& analysis) {
  NearestNics nearest(block);
  std::map<std::vector<std::uint32_t>, std::int64_t> users;
  for (std::uint32_t i = 0; i < block.gpus.size(); ++i) {
    GpuAnalysis& gpu = analysis.gpus[i];
    auto [nics, stages] = nearest.of(block.gpus[i].vertex);
    gpu.crosses_socket = stages != none && stages >= socket_stages;
    gpu.nics = block.gpus[i].nic ? ports_beside(block, *block.gpus[i].nic) : std::move(nics);
    ++users[gpu.nics];
  }
  for (GpuAnalysis& gpu : analysis.gpus) {
    gpu.nic = Bandwidth{};
    for (const std::uint32_t nic : gpu.nics) add_rate(gpu.nic, block.nics[nic].rate);
    if (gpu.nic) gpu.nic->value /= users[gpu.nics];
  }
}

}  // namespace

BlockAnalysis analyse(const Block& block) {
  BlockAnalysis analysis;
  analysis.gpus.resize(block.gpus.size());
  find_domains(block, analysis);
  add_wires(block, analysis);
  find_nics(block, analysis);
  return analysis;
}

}  // namespace isthmus

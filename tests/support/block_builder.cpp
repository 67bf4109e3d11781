#include "tests/support/block_builder.hpp"

#include <array>
#include <vector>

namespace isthmus {

BlockBuilder::BlockBuilder(std::string name, std::uint32_t hosts) {
  block.name = std::move(name);
  block.hosts = hosts;
}

std::uint32_t BlockBuilder::vertex(VertexKind kind, std::optional<std::uint32_t> host) {
  BlockVertex made;
  made.kind = kind;
  made.host = host;
  made.index = count_[{kind, host}]++;
  block.vertices.push_back(std::move(made));
  return static_cast<std::uint32_t>(block.vertices.size() - 1);
}

std::uint32_t BlockBuilder::gpu(std::uint32_t host) {
  const std::uint32_t made = vertex(VertexKind::gpu, host);
  block.gpus.push_back({made, 0, true, std::nullopt});
  return made;
}

std::uint32_t BlockBuilder::nic(double rate, std::uint32_t host, std::optional<std::uint32_t> card) {
  const std::uint32_t made = vertex(VertexKind::nic, host), index = block.vertices[made].index;
  block.nics.push_back({made, index, card.value_or(index), gigabytes_per_second(rate), Evidence::vendor});
  return made;
}

void BlockBuilder::wire(WireKind kind, std::uint32_t from, std::uint32_t to, double rate, std::uint32_t wires,
                        Evidence evidence) {
  block.wires.push_back({from, to, kind, wires, gigabytes_per_second(rate), evidence});
  block.wires.push_back({to, from, kind, wires, gigabytes_per_second(rate), evidence});
}

void BlockBuilder::attribute(std::uint32_t vertex, const std::string& name, const std::string& value) {
  block.vertices[vertex].attributes[name] = value;
}

namespace {

void join_by_chips(BlockBuilder& builder, const std::vector<std::uint32_t>& gpus,
                   const std::vector<std::uint32_t>& wires, double wire, std::optional<std::uint32_t> host) {
  for (const std::uint32_t count : wires) {
    const std::uint32_t chip = builder.vertex(VertexKind::nvswitch, host);
    for (const std::uint32_t gpu : gpus) {
      builder.wire(WireKind::nvlink, gpu, chip, wire * count, count);
    }
  }
}

std::array<std::uint32_t, 2> sockets(BlockBuilder& builder, double rate, std::uint32_t host = 0) {
  const std::uint32_t first = builder.vertex(VertexKind::cpu, host);
  const std::uint32_t second = builder.vertex(VertexKind::cpu, host);
  builder.wire(WireKind::socket, first, second, rate, 1, Evidence::nccl);
  return {first, second};
}

std::vector<std::uint32_t> eight_gpus(BlockBuilder& builder) {
  std::vector<std::uint32_t> gpus;
  for (int i = 0; i < 8; ++i) gpus.push_back(builder.gpu());
  return gpus;
}

}  // namespace

Block hgx_host(const HgxSpec& spec) {
  BlockBuilder builder("HGX host");
  const std::vector<std::uint32_t> gpus = eight_gpus(builder);
  join_by_chips(builder, gpus, {4, 5, 5, 4}, spec.nvlink_wire, 0);
  const auto cpus = sockets(builder, 22);
  for (std::uint32_t first = 0; first < 8; first += spec.gpus_per_nic) {
    const std::uint32_t pcie = builder.vertex(VertexKind::pcie_switch);
    builder.wire(WireKind::pcie, pcie, cpus.at(first / 4), spec.pcie);
    for (std::uint32_t i = first; i < first + spec.gpus_per_nic; ++i) {
      builder.wire(WireKind::pcie, gpus[i], pcie, spec.pcie);
    }
    builder.wire(WireKind::pcie, builder.nic(spec.nic), pcie, spec.pcie);
  }
  return builder.block;
}

Block a100_host() {
  BlockBuilder builder("A100 host");
  const std::vector<std::uint32_t> gpus = eight_gpus(builder);
  for (const std::uint32_t gpu : gpus) builder.attribute(gpu, "gpu.sm", "80");
  join_by_chips(builder, gpus, {2, 2, 2, 2, 2, 2}, 25, 0);
  const auto cpus = sockets(builder, 16);
  for (std::uint32_t first = 0; first < 8; first += 2) {
    const std::uint32_t pcie = builder.vertex(VertexKind::pcie_switch);
    builder.wire(WireKind::pcie, pcie, cpus.at(first / 4), 31.5);
    for (std::uint32_t i = first; i < first + 2; ++i) {
      builder.wire(WireKind::pcie, gpus[i], pcie, 31.5);
      builder.wire(WireKind::pcie, builder.nic(25), pcie, 31.5);
    }
  }
  return builder.block;
}

Block flat_host() {
  BlockBuilder builder("virtual machine");
  const std::vector<std::uint32_t> gpus = eight_gpus(builder);
  join_by_chips(builder, gpus, {4, 5, 5, 4}, 25, 0);
  const std::uint32_t cpu = builder.vertex(VertexKind::cpu);
  for (const std::uint32_t gpu : gpus) builder.wire(WireKind::pcie, gpu, cpu, 63);
  for (int i = 0; i < 8; ++i) builder.wire(WireKind::pcie, builder.nic(50), cpu, 63);
  return builder.block;
}

Block gb200_rack(std::uint32_t trays) {
  BlockBuilder builder("GB200 rack", trays);
  std::vector<std::uint32_t> gpus;
  for (std::uint32_t tray = 0; tray < trays; ++tray) {
    const auto graces = sockets(builder, 6, tray);
    for (const std::uint32_t grace : graces) {
      for (int i = 0; i < 2; ++i) {
        gpus.push_back(builder.gpu(tray));
        builder.wire(WireKind::c2c, gpus.back(), grace, 225);
        builder.wire(WireKind::pcie, builder.nic(50, tray), grace, 63);
      }
    }
  }
  join_by_chips(builder, gpus, std::vector<std::uint32_t>(18, 1), 50, std::nullopt);
  return builder.block;
}

}  // namespace isthmus

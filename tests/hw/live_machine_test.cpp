// The machine at hand, read from made-up folders: the oracle is the tree of devices that was written down.

#include "hw/live_machine.hpp"

#include <algorithm>
#include <fstream>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/topology/topology_faults.hpp"
#include "tests/support/made_sysfs.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::hw {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Not;

using test::MadeDevice;
using test::MadeKind;
using test::MadeMachine;

const NvmlAnswer no_nvml{"not asked", {}};

/// What the documentation of NCCL's XML says of sixteen lanes, times lanes / 16.
double rate_of(int generation, int width) {
  const std::vector<double> sixteen{0, 4, 8, 15.75, 31.5, 63, 121};
  return sixteen.at(static_cast<std::size_t>(generation)) * width / 16;
}

/// What is wrong with a topology, to be read.
std::vector<std::string> faults_of(const Topology& topology) {
  std::vector<std::string> faults;
  for (const InputFault& fault : topology_faults(topology))
    faults.push_back(fault.where.key + ": " + fault.found);
  return faults;
}

/// Where a device hangs, by names, and at what rate.
struct Found {
  VertexKind kind;
  std::string above;  // busid, or "node 1"
  double rate = 0;
};

std::map<std::string, Found> found_in(const Topology& topology) {
  const Block& block = topology.types.front();
  const auto name = [&](std::uint32_t v) {
    const BlockVertex& vertex = block.vertices[v];
    if (vertex.kind == VertexKind::cpu) return "node " + vertex.attributes.at("cpu.numaid");
    const auto busid = vertex.attributes.find("pci.busid");
    return busid == vertex.attributes.end() ? vertex.label : busid->second;
  };
  std::map<std::string, Found> found;
  std::set<std::string> done;
  for (const BlockWire& wire : block.wires) {
    if (wire.kind != WireKind::pcie || !done.insert(name(wire.from) + ">" + name(wire.to)).second) continue;
    if (done.contains(name(wire.to) + ">" + name(wire.from))) continue;  // the way back
    found[name(wire.from)] = {block.vertices[wire.from].kind, name(wire.to),
                              static_cast<double>(wire.rate.value) * 1e-9};
  }
  return found;
}

/// Without what nothing that counts hangs below.
bool holds_something(const MadeDevice& device, bool rdma) {
  if (device.kind == MadeKind::gpu || device.kind == MadeKind::rdma_nic) return true;
  if (device.kind == MadeKind::socket_nic) return !rdma;
  return std::any_of(device.below.begin(), device.below.end(),
                     [rdma](const MadeDevice& child) { return holds_something(child, rdma); });
}

VertexKind kind_of(MadeKind kind) {
  if (kind == MadeKind::gpu) return VertexKind::gpu;
  return kind == MadeKind::pci_switch ? VertexKind::pcie_switch : VertexKind::nic;
}

TEST(LiveMachine, has_the_tree_of_devices_that_linux_shows_with_ports_left_out) {
  std::size_t devices = 0, inner = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const TemporaryFolder folder;
    MadeMachine made = test::made_machine(seed);
    test::write_sysfs(made, folder.path());
    const auto places = test::places_of(made);
    const bool rdma = std::any_of(places.begin(), places.end(),
                                  [](const auto& place) { return place.device->kind == MadeKind::rdma_nic; });
    const ImportedTopology imported = topology_of(read_machine(folder.path(), no_nvml));
    EXPECT_THAT(faults_of(imported.topology), IsEmpty()) << "seed " << seed;
    const std::map<std::string, Found> found = found_in(imported.topology);
    std::size_t expected = 0;
    for (const test::MadePlace& place : places) {
      const MadeDevice& device = *place.device;
      if (!holds_something(device, rdma)) continue;
      ++expected;
      const auto known = found.find(device.busid);
      ASSERT_NE(known, found.end()) << "seed " << seed << ": " << device.busid;
      EXPECT_EQ(known->second.kind, kind_of(device.kind)) << "seed " << seed << ": " << device.busid;
      const std::string above = place.above.empty() ? "node " + std::to_string(place.node) : place.above;
      EXPECT_EQ(known->second.above, above) << "seed " << seed << ": " << device.busid;
      const bool port = !place.above.empty() || device.root_port;
      const double rate =
          rate_of(port ? std::min(device.generation, device.port_generation) : device.generation,
                  port ? std::min(device.width, device.port_width) : device.width);
      EXPECT_NEAR(known->second.rate, rate, 1e-6) << "seed " << seed << ": " << device.busid;
      inner += place.above.empty() ? 0U : 1U;
    }
    EXPECT_EQ(found.size(), expected) << "seed " << seed;
    devices += expected;
  }
  EXPECT_GT(devices, 150U);
  EXPECT_GT(inner, 50U);
}

TEST(LiveMachine, comes_of_any_content_of_the_files) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const TemporaryFolder folder;
    MadeMachine made = test::made_machine(seed);
    test::write_sysfs(made, folder.path());
    std::mt19937_64 random(seed);
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
      if (random() % 3 != 0) continue;
      std::string text;
      for (std::uint64_t left = random() % 300; left > 0; --left)
        text += random() % 2 == 0 ? static_cast<char>(random() % 256) : "\"<>&'0x9,-: "[random() % 12];
      if (random() % 4 == 0) text = "999999999999999999";
      if (random() % 8 == 0) text = "-7";
      std::ofstream(file) << text;
    }
    const ImportedTopology imported = topology_of(read_machine(folder.path(), no_nvml));
    EXPECT_THAT(faults_of(imported.topology), IsEmpty()) << "seed " << seed;
  }
}

TEST(LiveMachine, without_any_folder_is_a_processor_without_devices) {
  const TemporaryFolder folder;
  const LiveMachine machine = read_machine(folder.path(), no_nvml);
  const ImportedTopology imported = topology_of(machine);
  EXPECT_THAT(faults_of(imported.topology), IsEmpty());
  EXPECT_EQ(imported.topology.types.front().vertices.size(), 1U);
  EXPECT_THAT(imported.findings, Contains(Field(&Finding::code, "no-gpus")));
  EXPECT_THAT(imported.findings, Contains(Field(&Finding::code, "no-nics")));
}

class OneMachine : public ::testing::Test {
 protected:
  /// Two GPUs and two NICs of each kind, on one node, each below a root port of its own.
  void SetUp() override {
    made_.nodes.resize(1);
    for (const MadeKind kind : {MadeKind::gpu, MadeKind::gpu, MadeKind::rdma_nic, MadeKind::rdma_nic,
                                MadeKind::socket_nic, MadeKind::socket_nic})
      made_.nodes[0].push_back({kind});
    test::write_sysfs(made_, folder_.path());
  }

  const MadeDevice& device(std::size_t i) const { return made_.nodes[0][i]; }
  std::filesystem::path function(std::size_t i) const {
    return folder_.path() / "sys/bus/pci/devices" / device(i).busid;
  }
  ImportedTopology read(const NvmlAnswer& nvml = no_nvml) const {
    return topology_of(read_machine(folder_.path(), nvml));
  }
  static std::vector<std::string> nics(const Topology& topology) {
    std::vector<std::string> names;
    const Block& block = topology.types.front();
    for (const BlockNic& nic : block.nics) names.push_back(block.vertices[nic.vertex].label);
    return names;
  }

  TemporaryFolder folder_;
  MadeMachine made_;
};

TEST_F(OneMachine, has_its_rdma_ports_as_nics_and_names_the_others) {
  const ImportedTopology imported = read();
  EXPECT_THAT(nics(imported.topology), ElementsAre("mlx5_0", "mlx5_1"));
  EXPECT_EQ(imported.topology.types.front().nics[0].rate, Bandwidth{50'000'000'000});
  EXPECT_THAT(imported.findings,
              Contains(Finding{"nic-not-used", "eth0, eth1: NCCL uses the RDMA ports instead"}));
}

TEST_F(OneMachine, leaves_out_ports_that_are_down_and_functions_lent_to_others) {
  folder_.write("sys/bus/pci/devices/" + device(2).busid + "/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  EXPECT_THAT(nics(read().topology), ElementsAre("mlx5_1"));
  EXPECT_THAT(read().findings, Contains(Finding{"nic-down", "mlx5_0: not up, and left out"}));
  std::filesystem::create_directories(function(3) / "physfn");
  const ImportedTopology sockets = read();
  EXPECT_THAT(nics(sockets.topology), ElementsAre("eth0", "eth1"));
  EXPECT_THAT(sockets.findings, Contains(Field(&Finding::code, "virtual-function")));
}

TEST_F(OneMachine, takes_ports_of_one_image_for_one_card) {
  for (const char* name : {"mlx5_0", "mlx5_1"})
    folder_.write(std::string("sys/class/infiniband/") + name + "/sys_image_guid", "0c42:a103:0000:0001\n");
  const Topology one_card = read().topology;
  EXPECT_EQ(one_card.types.front().nics[0].card, one_card.types.front().nics[1].card);
}

TEST_F(OneMachine, sends_past_host_memory_where_the_driver_can) {
  EXPECT_FALSE(read_machine(folder_.path(), no_nvml).nics[0].gpudirect);
  folder_.write("proc/driver/nvidia/version",
                "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.1\n");
  EXPECT_TRUE(read_machine(folder_.path(), no_nvml).nics[0].gpudirect);
  folder_.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.1\n");
  EXPECT_FALSE(read_machine(folder_.path(), no_nvml).nics[0].gpudirect);
  std::filesystem::create_directories(folder_.path() / "sys/module/nvidia_peermem");
  EXPECT_TRUE(read_machine(folder_.path(), no_nvml).nics[0].gpudirect);
}

TEST_F(OneMachine, says_that_nvlink_is_unknown_where_nvml_does_not_answer) {
  const ImportedTopology imported = read();
  EXPECT_EQ(imported.topology.types.front().gpus.size(), 2U);
  EXPECT_FALSE(imported.topology.types.front().nvlink_known);
  EXPECT_THAT(imported.findings, Contains(Finding{"no-nvml", "NVIDIA's driver was not asked: not asked"}));
}

TEST_F(OneMachine, has_the_nvlinks_that_nvml_lists) {
  NvmlAnswer nvml;
  nvml.gpus = {
      {device(1).busid, "Made GPU", 90, 5, 16, {{device(0).busid, false, 6}, {hidden_chip, true, 12}}},
      {device(0).busid, "Made GPU", 90, 5, 16, {{device(1).busid, false, 6}, {hidden_chip, true, 12}}}};
  const ImportedTopology imported = read(nvml);
  EXPECT_THAT(faults_of(imported.topology), IsEmpty());
  const Block& block = imported.topology.types.front();
  EXPECT_TRUE(block.nvlink_known);
  std::uint32_t between = 0, to_chip = 0;
  for (const BlockWire& wire : block.wires) {
    if (wire.kind != WireKind::nvlink || block.vertices[wire.from].kind != VertexKind::gpu) continue;
    EXPECT_EQ(wire.rate.value, 25'000'000'000 * wire.wires);
    (block.vertices[wire.to].kind == VertexKind::gpu ? between : to_chip) += wire.wires;
  }
  EXPECT_EQ(between, 12U);
  EXPECT_EQ(to_chip, 24U);
  EXPECT_EQ(block.vertices[block.gpus[0].vertex].label, device(0).busid);
  EXPECT_THAT(imported.findings, Not(Contains(Field(&Finding::code, "no-nvml"))));
}

TEST_F(OneMachine, shows_the_gpus_that_nvml_shows) {
  NvmlAnswer nvml;
  nvml.gpus = {{device(1).busid, "Made GPU", 90, 5, 16, {}}, {"0007:01:00.0", "Made GPU", 90, 4, 8, {}}};
  const ImportedTopology imported = read(nvml);
  EXPECT_EQ(imported.topology.types.front().gpus.size(), 2U);
  const auto found = found_in(imported.topology);
  EXPECT_FALSE(found.contains(device(0).busid));
  EXPECT_NEAR(found.at("0007:01:00.0").rate, rate_of(4, 8), 1e-6);
  EXPECT_THAT(imported.findings, Contains(Field(&Finding::code, "gpu-not-visible")));
  EXPECT_THAT(imported.findings, Contains(Field(&Finding::code, "gpu-not-on-pci")));
}

TEST_F(OneMachine, has_families_of_processors_as_nccl_counts_them) {
  EXPECT_EQ(read_machine(folder_.path(), no_nvml).cpu.at("familyid"), "6");
  folder_.write("proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\n");
  const LiveMachine machine = read_machine(folder_.path(), no_nvml);
  EXPECT_EQ(machine.cpu.at("familyid"), "143");  // as NCCL's dumps of such hosts have it
  EXPECT_EQ(machine.cpu.at("modelid"), "49");
  EXPECT_EQ(machine.processors, 1U);
}

TEST(LiveMachine, of_this_host_is_whole) {
  const LiveMachine machine = read_machine("/", no_nvml);
  EXPECT_GE(machine.processors, 1U);
  EXPECT_THAT(faults_of(topology_of(machine).topology), IsEmpty());
}

}  // namespace
}  // namespace isthmus::hw

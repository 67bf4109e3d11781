#include "model/topology/machine_file.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "model/fabric.hpp"
#include "model/topology/topology_json.hpp"
#include "tests/support/fabric_tools.hpp"
#include "tests/support/project_files.hpp"

namespace isthmus::machine_file_test {
namespace {

const std::filesystem::path topologies = project_folder() / "scenarios/topologies";

FabricSpec direct_host(FabricEdit edit) {
  FabricSpec spec;
  spec.import_file = "four-gh200.xml";
  spec.edits = {std::move(edit)};
  return spec;
}

double nvlink_of(const FabricSpec& spec, std::uint32_t gpu) {
  const Fabric fabric(spec, topologies);
  const auto port = fabric.nvlink_out({gpu});
  return port ? static_cast<double>(fabric.links()[port->index()].nominal.value) * 1e-9 : 0;
}

/// A file of its own, gone with it.
class File {
 public:
  File(const std::string& name, const std::string& text)
      : path_(std::filesystem::temp_directory_path() / name) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  FabricSpec spec() const {
    FabricSpec spec;
    spec.import_file = path_.string();
    return spec;
  }

 private:
  std::filesystem::path path_;
};

TEST(MachineFile, direct_bundles_lose_their_wires_once_although_two_gpus_see_them) {
  using Action = FabricEdit::Action;
  using Subject = FabricEdit::Subject;
  for (const std::vector<int>& gpus : {std::vector<int>{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3}}) {
    const FabricSpec one = direct_host({Action::remove, Subject::nvlink, {}, gpus, {}, 1, {}, {}, {}});
    const FabricSpec all = direct_host({Action::remove, Subject::nvlink, {}, gpus, {}, {}, {}, {}, {}});
    for (const int gpu : gpus) {
      EXPECT_LE(nvlink_of(one, static_cast<std::uint32_t>(gpu)), 425);
      EXPECT_EQ(nvlink_of(all, static_cast<std::uint32_t>(gpu)), 0);
    }
  }
  const FabricSpec pair = direct_host({Action::remove, Subject::nvlink, {}, {0, 1}, {}, 1, {}, {}, {}});
  EXPECT_EQ(nvlink_of(pair, 0), 425);
  EXPECT_EQ(nvlink_of(pair, 1), 425);
  EXPECT_EQ(nvlink_of(pair, 2), 450);
}

TEST(MachineFile, a_matrix_of_nvidia_smi_becomes_a_fabric_with_the_rates_of_the_scenario) {
  const File file("isthmus-smi-topo.txt",
                  "\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
                  "GPU0\t X \tNV18\tPIX\tSYS\t0-7\t0\n"
                  "GPU1\tNV18\t X \tSYS\tPIX\t8-15\t1\n"
                  "NIC0\tPIX\tSYS\t X \tSYS\n"
                  "NIC1\tSYS\tPIX\tSYS\t X \n");
  FabricSpec spec = file.spec();
  spec.hosts = 2;
  EXPECT_TRUE(
      refusal([&] { Fabric{spec}; }).starts_with("fabric.nvlink_bandwidth: found no rate for NVLink") ||
      refusal([&] { Fabric{spec}; }).starts_with("fabric.pcie_bandwidth: found no rate for PCIe"));
  spec.nvlink_bandwidth = gigabytes_per_second(450);
  spec.pcie_bandwidth = gigabytes_per_second(63);
  spec.nic_bandwidth = gigabytes_per_second(50);
  const Fabric fabric(spec);
  EXPECT_EQ(fabric.gpu_count(), 4u);
  EXPECT_EQ(fabric.links()[fabric.nvlink_out({0})->index()].nominal, gigabytes_per_second(450));
  EXPECT_EQ(fabric.links()[fabric.nic_out({3})->index()].nominal, gigabytes_per_second(50));
  EXPECT_EQ(fabric.switch_hops({0}, {3}), 1);
}

TEST(MachineFile, a_whole_machine_keeps_its_routing_and_takes_no_other_network) {
  FabricSpec whole;
  whole.preset = "dgx-h100-superpod";
  whole.hosts = 3;
  whole.routing = {true, true, 7};
  const Topology before = build_topology(whole);
  const File file("isthmus-machine.json", to_json(before));
  FabricSpec spec = file.spec();
  EXPECT_EQ(build_topology(spec), before);
  spec.routing.hashed = true;
  EXPECT_EQ(build_topology(spec).routing, (Routing{false, true, 0}));
  const auto refused = [&](const auto& change, const std::string& key) {
    FabricSpec other = file.spec();
    change(other);
    EXPECT_EQ(refusal([&] { build_topology(other); }),
              "fabric." + key + ": found a value; allowed: no such key with this topology file");
  };
  refused([](FabricSpec& other) { other.hosts = 2; }, "hosts");
  refused([](FabricSpec& other) { other.network = NetworkKind::rails; }, "network");
  refused([](FabricSpec& other) { other.oversubscription = 2; }, "oversubscription");
  refused([](FabricSpec& other) { other.gpus_per_rack = 4; }, "gpus_per_rack");
}

TEST(MachineFile, a_cut_leaves_the_hosts_that_it_does_not_name_together) {
  FabricSpec spec;
  spec.preset = "gb200-nvl72";
  spec.hosts = 18;
  spec.edits = {{FabricEdit::Action::cut, FabricEdit::Subject::domain, {0}, {}, {}, {}, {}, {}, 2}};
  const Fabric fabric(spec);
  EXPECT_EQ(fabric.domain_count(), 3u);
  EXPECT_NE(fabric.domain_of({0}), fabric.domain_of({2}));
  EXPECT_EQ(fabric.domain_of({4}), fabric.domain_of({71}));
}

}  // namespace
}  // namespace isthmus::machine_file_test

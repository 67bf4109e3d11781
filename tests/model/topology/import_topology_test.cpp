#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/support/imported_topology.hpp"
#include "tests/support/published_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace isthmus::import_topology_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::filesystem::path& file) {
  try {
    import_topology(file);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ImportTopology, reads_files_by_their_content_whatever_their_names) {
  const TemporaryFolder folder;
  const auto matrix = folder.write("a.xml", "\tGPU0\tGPU1\nGPU0\tX\tNV12\nGPU1\tNV12\tX\n");
  EXPECT_EQ(nvlink_ends(import_topology(matrix).topology), 24U);
  const auto fabric =
      folder.write("b.json", "Switch 4 \"S-1\" # \"a\"\n[1] \"H-a\"[1] # \"h mlx5_0\" lid 1 4xHDR\n");
  EXPECT_EQ(switches_of(import_topology(fabric).topology, VertexKind::leaf), 1U);
  const auto log =
      folder.write("c.txt", "=== System : maxBw 1.0 ===\nCPU/0\n+ PCI[12.0] - GPU/1000 (0)\n===\n");
  EXPECT_EQ(vertices_of(import_topology(log).topology, VertexKind::gpu), 1U);
}

TEST(ImportTopology, refuses_what_describes_no_machine_and_says_what_it_takes) {
  const TemporaryFolder folder;
  EXPECT_THAT(refusal(folder.write("graph", "<graphs version=\"1\"></graphs>")),
              HasSubstr("NCCL's graph XML"));
  EXPECT_THAT(refusal(folder.write("empty", "")), HasSubstr("an empty file"));
  EXPECT_THAT(refusal(folder.write("yaml", "switches:\n  core:\n")),
              AllOf(HasSubstr("no known format (\"switches:\")"), HasSubstr("nvidia-smi topo -m")));
  EXPECT_THAT(refusal(folder.write("part", "<pci busid=\"0000:1:00.0\"/>")), HasSubstr("root <system>"));
  EXPECT_THAT(refusal(folder.write("graph", "") / "none"), HasSubstr("found"));
}

TEST(ImportTopology, refuses_another_projects_model_format) {
  const auto file = data_folder() / "topologies" / "ib" / "topograph_model_nvl72.yaml";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no published data";
  EXPECT_THAT(refusal(file),
              AllOf(HasSubstr("a text of no known format"), HasSubstr("allowed: NCCL's system XML")));
}

}  // namespace
}  // namespace isthmus::import_topology_test

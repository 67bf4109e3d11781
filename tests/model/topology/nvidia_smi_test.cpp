#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/topology_faults.hpp"
#include "tests/support/imported_topology.hpp"

namespace isthmus::nvidia_smi_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Cells = std::vector<std::vector<std::string>>;  // with the name of the row first

/// `names` are the columns; rows of GPUs get the affinities behind their cells.
std::string matrix(const std::vector<std::string>& names, const Cells& rows, char separator = '\t') {
  std::string text;
  for (const std::string& name : names) text += separator + name;
  text += separator + std::string("CPU Affinity") + separator + "NUMA Affinity\n";
  for (const std::vector<std::string>& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) text += (i == 0 ? "" : std::string(1, separator)) + row[i];
    text += '\n';
  }
  return text + "\nLegend:\n\n  X    = Self\n";
}

ImportedTopology read(const std::string& text) {
  ImportedTopology imported = read_nvidia_smi(text, "matrix.txt");
  EXPECT_THAT(topology_faults(imported.topology), IsEmpty());
  return imported;
}

std::string refusal(const std::string& text) {
  try {
    read_nvidia_smi(text, "matrix.txt");
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::vector<std::string> all_pairs(std::size_t gpus, const std::string& word, std::size_t row) {
  std::vector<std::string> cells{fmt::format("GPU{}", row)};
  for (std::size_t column = 0; column < gpus; ++column) cells.push_back(column == row ? "X" : word);
  cells.insert(cells.end(), {"0-7", "0"});
  return cells;
}

std::string uniform(std::size_t gpus, const std::string& word) {
  std::vector<std::string> names;
  Cells rows;
  for (std::size_t i = 0; i < gpus; ++i) {
    names.push_back(fmt::format("GPU{}", i));
    rows.push_back(all_pairs(gpus, word, i));
  }
  return matrix(names, rows);
}

struct Reading {
  std::size_t gpus;
  std::string word;
  bool switched;
  std::size_t ends;
};

TEST(NvidiaSmi, links_are_per_gpu_where_they_are_too_many_for_pairs_else_per_pair) {
  const std::vector<Reading> machines{
      {8, "NV18", true, 8 * 18},     // HGX H100
      {8, "NV12", true, 8 * 12},     // HGX A100
      {16, "NV6", true, 16 * 6},     // DGX-2
      {4, "NV18", true, 4 * 18},     // a tray of GB200
      {4, "NV6", false, 4 * 3 * 6},  // GH200, four of them
      {4, "NV4", false, 4 * 3 * 4},  // A100, four of them
      {2, "NV12", false, 2 * 12},    // a bridge
  };
  for (const Reading& machine : machines) {
    const ImportedTopology imported = read(uniform(machine.gpus, machine.word));
    EXPECT_EQ(vertices_of(imported.topology, VertexKind::nvswitch), machine.switched ? 1U : 0U)
        << machine.word;
    EXPECT_EQ(nvlink_ends(imported.topology), machine.ends) << machine.gpus << " " << machine.word;
    const char* code = machine.switched ? "nvswitch-not-visible" : "nvlink-read-as-direct";
    EXPECT_THAT(texts_of(imported, code), SizeIs(1)) << machine.gpus << " " << machine.word;
  }
}

TEST(NvidiaSmi, words_place_devices_below_switches_and_cpus) {
  const ImportedTopology imported = read(matrix({"GPU0", "GPU1", "NIC0", "NIC1", "NIC2"},
                                                {{"GPU0", "X", "SYS", "PIX", "SYS", "NODE", "0-3", "0"},
                                                 {"GPU1", "SYS", "X", "SYS", "PXB", "SYS", "4-7", "1"},
                                                 {"NIC0", "PIX", "SYS", "X", "SYS", "NODE"},
                                                 {"NIC1", "SYS", "PXB", "SYS", "X", "SYS"},
                                                 {"NIC2", "NODE", "SYS", "NODE", "SYS", "X"}}));
  const Block& block = imported.topology.types.front();
  const std::uint32_t zero = labelled(block, "NUMA 0"), one = labelled(block, "NUMA 1");
  EXPECT_NE(wire_between(block, zero, one), nullptr);
  EXPECT_NE(wire_between(block, labelled(block, "NIC2"), zero), nullptr);
  EXPECT_EQ(vertices_of(imported.topology, VertexKind::cpu), 2U);
  // PIX is one switch; PXB two in a row
  EXPECT_EQ(vertices_of(imported.topology, VertexKind::pcie_switch), 3U);
  EXPECT_THAT(texts_of(imported, "no-nvlink"), SizeIs(1));
  EXPECT_THAT(texts_of(imported, "matrix-contradicts-itself"), IsEmpty());
}

TEST(NvidiaSmi, separators_escape_codes_old_names_and_line_ends_do_not_matter) {
  const Cells rows{{"GPU0", "X", "SOC", "PHB", "0-7", "0"},
                   {"GPU1", "SOC", "X", "SOC", "8-15", "1"},
                   {"mlx5_0", "PHB", "SOC", "X"}};
  const std::string tabs = matrix({"GPU0", "GPU1", "mlx5_0"}, rows);
  const std::string blanks = matrix({"GPU0", "GPU1", "mlx5_0"}, rows, ' ');
  std::string escaped = "$ nvidia-smi topo -m\n" + tabs;
  escaped.insert(escaped.find("GPU0"), "\x1b[4m");
  escaped.insert(escaped.find("NUMA Affinity") + 13, "\x1b[0m");
  std::string windows;
  for (const char c : tabs) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Topology topology = read(tabs).topology;
  for (const std::string& text : {blanks, escaped, windows}) EXPECT_EQ(read(text).topology, topology) << text;
}

TEST(NvidiaSmi, rows_that_are_missing_come_from_the_others_by_symmetry) {
  const std::vector<std::string> names{"GPU0", "GPU1", "NIC0", "NIC1"};
  Cells rows{{"GPU0", "X", "NODE", "PIX", "SYS", "0-3", "0"},
             {"GPU1", "NODE", "X", "NODE", "SYS", "0-3", "0"},
             {"NIC0", "PIX", "NODE", "X", "SYS"},
             {"NIC1", "SYS", "SYS", "SYS", "X"}};
  const Topology full = read(matrix(names, rows)).topology;
  rows.resize(2);
  const ImportedTopology cut = read(matrix(names, rows));
  EXPECT_EQ(cut.topology, full);
  EXPECT_THAT(texts_of(cut, "rows-missing"), ElementsAre(HasSubstr("NIC0 and NIC1")));
  rows.resize(1);
  EXPECT_THAT(refusal(matrix({"GPU0", "GPU1", "GPU2"}, {{"GPU0", "X", "NV4", "NV4", "0", "0"}})),
              HasSubstr("GPU1/GPU2: found neither a row of the one nor of the other"));
}

TEST(NvidiaSmi, halves_that_differ_are_reported_and_the_weaker_word_stands) {
  const ImportedTopology imported =
      read(matrix({"GPU0", "GPU1"}, {{"GPU0", "X", "NV4", "0-3", "0"}, {"GPU1", "NV2", "X", "0-3", "0"}}));
  EXPECT_EQ(nvlink_ends(imported.topology), 4U);
  EXPECT_THAT(
      texts_of(imported, "matrix-asymmetric"),
      ElementsAre(HasSubstr("GPU0 is NV4 to GPU1 (line 2), the other way NV2 (line 3): taken as NV2")));
}

TEST(NvidiaSmi, a_gpu_with_fewer_links_on_a_switch_fabric_keeps_those_it_has) {
  Cells rows;
  for (std::size_t i = 0; i < 4; ++i) rows.push_back(all_pairs(4, i == 2 ? "NV17" : "NV18", i));
  for (std::size_t i = 0; i < 4; ++i)
    if (i != 2) rows[i][3] = "NV17";
  const ImportedTopology imported = read(matrix({"GPU0", "GPU1", "GPU2", "GPU3"}, rows));
  EXPECT_EQ(nvlink_ends(imported.topology), 3U * 18 + 17);
  EXPECT_THAT(texts_of(imported, "gpu-short-of-nvlinks"), ElementsAre(HasSubstr("GPU2 shows NV17")));
  EXPECT_THAT(texts_of(imported, "nvlink-uneven"), IsEmpty());
}

TEST(NvidiaSmi, the_legend_names_nics) {
  const std::string text = matrix({"GPU0", "NIC0"}, {{"GPU0", "X", "PIX", "0", "0"}, {"NIC0", "PIX", "X"}});
  const std::string legend = "\nNIC Legend:\n\n  NIC0: mlx5_7\n";
  EXPECT_LT(labelled(read(text + legend).topology.types.front(), "mlx5_7"), 9U);
  EXPECT_LT(labelled(read(text).topology.types.front(), "NIC0"), 9U);
  EXPECT_THAT(refusal(text + "\nNIC Legend:\n  NIC1: mlx5_1\n"), HasSubstr("NIC Legend: found"));
}

TEST(NvidiaSmi, without_affinities_gpus_share_one_cpu_and_the_finding_says_so) {
  const ImportedTopology imported = read("\tGPU0\tGPU1\nGPU0\tX\tNV12\nGPU1\tNV12\tX\n");
  EXPECT_EQ(vertices_of(imported.topology, VertexKind::cpu), 1U);
  EXPECT_THAT(texts_of(imported, "gpu-place-unknown"), SizeIs(1));
}

TEST(NvidiaSmi, what_is_no_such_matrix_is_refused_with_its_line_and_cell) {
  const std::string good = "\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n";
  EXPECT_EQ(refusal(good), "accepted");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_THAT(refusal(with("X\tNV4", "X\tNV0")), HasSubstr("matrix.txt:2: GPU0/GPU1: found \"NV0\""));
  EXPECT_THAT(refusal(with("X\tNV4", "X\tNV100")), HasSubstr("GPU0/GPU1"));
  EXPECT_THAT(refusal(with("X\tNV4", "X\tNV18446744073709551617")), HasSubstr("GPU0/GPU1"));
  EXPECT_THAT(refusal(with("X\tNV4", "X\tnear")), HasSubstr("\"near\""));
  EXPECT_THAT(refusal(with("X\tNV4", "NV4\tNV4")), HasSubstr("GPU0/GPU0"));
  EXPECT_THAT(refusal(with("X\tNV4", "X\tX")), HasSubstr("GPU0/GPU1"));
  EXPECT_THAT(refusal(with("X\tNV4", "X\t")), HasSubstr("GPU0/GPU1"));
  EXPECT_THAT(refusal(with("X\tNV4", "X")), HasSubstr("GPU0: found 1 cells; allowed: 2"));
  EXPECT_THAT(refusal(with("GPU1\tNV4", "GPU0\tNV4")), HasSubstr("a second row"));
  EXPECT_THAT(refusal(with("GPU1\tNV4", "GPU7\tNV4")), HasSubstr("a row \"GPU7\""));
  EXPECT_THAT(refusal(with("GPU0\tGPU1", "GPU0\tGPU0")), HasSubstr("two columns GPU0"));
  EXPECT_THAT(refusal(""), HasSubstr("no line with the names"));
  EXPECT_THAT(refusal("\tGPU0\tNIC0\nGPU0\tX\tNV4\n"), HasSubstr("GPU0/NIC0"));
  std::string wide;
  for (int i = 0; i < 300; ++i) wide += fmt::format("\tGPU{}", i);
  EXPECT_THAT(refusal(wide), HasSubstr("more than 256 columns"));
}

/// A machine as the generator knows it: the socket and the switch of each device, and the links of a fabric.
struct Machine {
  std::vector<int> socket, slot;  // of GPUs, then NICs; devices of one socket and slot share a switch
  std::size_t gpus = 0;
  bool on_fabric = false;
};

std::string word(const Machine& machine, std::size_t a, std::size_t b) {
  if (a == b) return "X";
  if (machine.on_fabric && a < machine.gpus && b < machine.gpus) return "NV18";
  if (machine.socket[a] != machine.socket[b]) return "SYS";
  return machine.slot[a] == machine.slot[b] ? "PIX" : "NODE";
}

Machine machine_of() {
  Machine machine;
  machine.gpus = *rc::gen::inRange<std::size_t>(3, 9);
  const std::size_t devices = machine.gpus + *rc::gen::inRange<std::size_t>(0, 9);
  machine.on_fabric = *rc::gen::arbitrary<bool>();
  for (std::size_t i = 0; i < devices; ++i) {
    // a NIC goes where some GPU is: the matrix says nothing else of its place
    const std::size_t like = i < machine.gpus ? i : *rc::gen::inRange<std::size_t>(0, machine.gpus);
    machine.socket.push_back(i < machine.gpus ? *rc::gen::inRange(0, 3) : machine.socket[like]);
    machine.slot.push_back(i < machine.gpus ? *rc::gen::inRange(0, 4) : machine.slot[like]);
  }
  return machine;
}

/// The vertex above on the way to the CPU.
std::uint32_t above(const Block& block, std::uint32_t vertex) {
  for (const BlockWire& wire : block.wires) {
    const VertexKind kind = block.vertices[wire.to].kind;
    if (wire.from == vertex && (kind == VertexKind::pcie_switch || kind == VertexKind::cpu)) return wire.to;
  }
  return vertex;
}

RC_GTEST_PROP(NvidiaSmi, machines_come_back_as_they_were_printed, ()) {
  const Machine machine = machine_of();
  std::vector<std::string> names;
  Cells rows;
  for (std::size_t i = 0; i < machine.socket.size(); ++i) {
    const bool gpu = i < machine.gpus;
    names.push_back(gpu ? fmt::format("GPU{}", i) : fmt::format("NIC{}", i - machine.gpus));
    std::vector<std::string> row{names.back()};
    for (std::size_t j = 0; j < machine.socket.size(); ++j) row.push_back(word(machine, i, j));
    if (gpu)
      row.insert(row.end(), {fmt::format("{}", machine.socket[i]), fmt::format("{}", machine.socket[i])});
    rows.push_back(row);
  }
  const std::string text = matrix(names, rows, *rc::gen::element('\t', ' '));
  RC_LOG() << text;
  const ImportedTopology imported = read_nvidia_smi(text, "matrix");
  const Block& block = imported.topology.types.front();
  RC_ASSERT(topology_faults(imported.topology).empty());
  RC_ASSERT(nvlink_ends(imported.topology) == (machine.on_fabric ? machine.gpus * 18 : 0));
  RC_ASSERT(texts_of(imported, "matrix-contradicts-itself").empty());
  const auto vertex = [&](std::size_t i) { return labelled(block, names[i]); };
  const auto cpu = [&](std::size_t i) {
    std::uint32_t at = vertex(i);
    while (block.vertices[at].kind != VertexKind::cpu) at = above(block, at);
    return at;
  };
  for (std::size_t a = 0; a < names.size(); ++a) {
    for (std::size_t b = a + 1; b < names.size(); ++b) {
      const std::string said = word(machine, a, b);
      if (said == "NV18") continue;  // hides what PCIe is between them
      const bool one_switch = above(block, vertex(a)) == above(block, vertex(b)) &&
                              block.vertices[above(block, vertex(a))].kind == VertexKind::pcie_switch;
      RC_ASSERT((said == "PIX") == one_switch);
      RC_ASSERT((said == "SYS") == (cpu(a) != cpu(b)));
    }
  }
}

}  // namespace
}  // namespace isthmus::nvidia_smi_test

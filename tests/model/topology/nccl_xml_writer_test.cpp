#include "model/topology/nccl_xml_writer.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/error.hpp"
#include "model/topology/importers.hpp"
#include "tests/support/nccl_xml_texts.hpp"

namespace isthmus::nccl_xml_writer_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Bandwidth gb(double rate) { return gigabytes_per_second(rate); }

Topology read(const std::string& text) { return read_nccl_xml(text, "a.xml").topology; }

std::string message(const Topology& topology) {
  try {
    to_nccl_xml(topology);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

void add_wires(Block& block, std::uint32_t a, std::uint32_t b, WireKind kind, std::uint32_t wires,
               Bandwidth rate) {
  block.wires.push_back({a, b, kind, wires, rate});
  block.wires.push_back({b, a, kind, wires, rate});
}

std::uint32_t add(Block& block, VertexKind kind) {
  const auto index = std::ranges::count(block.vertices, kind, &BlockVertex::kind);
  block.vertices.push_back({kind, 0, static_cast<std::uint32_t>(index)});
  return static_cast<std::uint32_t>(block.vertices.size() - 1);
}

/// A random host, as a preset would describe it: no names, no attributes.
class RandomHost {
 public:
  Topology make() {
    const std::uint32_t cpus = *rc::gen::inRange(1U, 4U);
    for (std::uint32_t i = 0; i < cpus; ++i) above_.push_back(add(block_, VertexKind::cpu));
    const double socket = *rc::gen::element(6.0, 10.0, 16.0, 22.0, 40.0);
    for (std::uint32_t i = 0; i < cpus; ++i)
      for (std::uint32_t j = i + 1; j < cpus; ++j) add_wires(block_, i, j, WireKind::socket, 1, gb(socket));
    for (std::uint32_t i = *rc::gen::inRange(0U, 6U); i > 0; --i)
      above_.push_back(hang(VertexKind::pcie_switch));
    for (std::uint32_t i = *rc::gen::inRange(0U, 6U); i > 0; --i) add_nic();
    for (std::uint32_t i = *rc::gen::inRange(1U, 9U); i > 0; --i)
      block_.gpus.push_back({hang(VertexKind::gpu), 0, *rc::gen::inRange(0, 5) > 0, std::nullopt});
    add_nvlink();
    Topology topology;
    topology.name = "random";
    topology.switch_of_nic.assign(block_.nics.size(), no_switch);
    topology.types = {block_};
    topology.blocks = {0};
    return topology;
  }

 private:
  std::uint32_t hang(VertexKind kind) {
    const std::uint32_t parent = *rc::gen::elementOf(above_);
    const std::uint32_t vertex = add(block_, kind);
    add_wires(block_, vertex, parent, WireKind::pcie, 1,
              gb(*rc::gen::element(0.25, 8.0, 15.75, 31.5, 63.0, 121.0)));
    return vertex;
  }

  void add_nic() {
    const bool new_card = block_.nics.empty() || *rc::gen::inRange(0, 3) > 0;
    const std::uint32_t card = new_card ? cards_++ : *rc::gen::inRange(0U, cards_);
    block_.nics.push_back(
        {hang(VertexKind::nic), card, card, gb(*rc::gen::element(12.5, 25.0, 50.0, 100.0))});
  }

  void add_nvlink() {
    const double each = *rc::gen::element(20.0, 25.0, 50.0);
    const std::uint32_t chips = *rc::gen::inRange(0U, 3U);
    std::vector<std::uint32_t> ends;
    for (std::uint32_t i = 0; i < chips; ++i) ends.push_back(add(block_, VertexKind::nvswitch));
    for (std::size_t i = 0; i < block_.gpus.size(); ++i) {
      const std::uint32_t gpu = block_.gpus[i].vertex;
      for (const std::uint32_t chip : ends) link(gpu, chip, each);
      for (std::size_t j = 0; chips == 0 && j < i; ++j)
        if (*rc::gen::arbitrary<bool>()) link(gpu, block_.gpus[j].vertex, each);
    }
  }

  void link(std::uint32_t a, std::uint32_t b, double each) {
    const std::uint32_t wires = *rc::gen::inRange(1U, 19U);
    add_wires(block_, a, b, WireKind::nvlink, wires, gb(each * wires));
  }

  Block block_{"random host"};
  std::vector<std::uint32_t> above_{};
  std::uint32_t cards_ = 0;
};

/// What a host is to those who use it, without vertex numbers: for each device, the rates up to its CPU and
/// what joins it to every other device; independent of the order of switches and CPUs.
std::vector<std::string> portrait(const Block& block) {
  std::vector<std::string> lines;
  const auto sorted = [](std::vector<std::string> words) {
    std::ranges::sort(words);
    return fmt::format("{}", fmt::join(words, " "));
  };
  const auto wires_of = [&](std::uint32_t from, const auto& wanted) {
    std::vector<const BlockWire*> found;
    for (const BlockWire& wire : block.wires)
      if (wire.from == from && wanted(wire)) found.push_back(&wire);
    return found;
  };
  const std::function<std::string(std::uint32_t, std::uint32_t)> below = [&](std::uint32_t at,
                                                                             std::uint32_t from) {
    std::vector<std::string> parts;
    for (const BlockWire* wire : wires_of(at, [&](const BlockWire& w) { return w.kind == WireKind::pcie; }))
      if (wire->to != from) parts.push_back(fmt::format("{}({})", wire->rate.value, below(wire->to, at)));
    const BlockVertex& vertex = block.vertices[at];
    const bool device = vertex.kind == VertexKind::gpu || vertex.kind == VertexKind::nic;
    return fmt::format("{}{}[{}]", to_string(vertex.kind), device ? std::to_string(vertex.index) : "",
                       sorted(parts));
  };
  std::vector<std::string> trees, sockets;
  for (std::uint32_t v = 0; v < block.vertices.size(); ++v)
    if (block.vertices[v].kind == VertexKind::cpu) trees.push_back(below(v, v));
  for (const BlockWire& wire : block.wires)
    if (wire.kind == WireKind::socket) sockets.push_back(std::to_string(wire.rate.value));
  lines = {sorted(trees), sorted(sockets)};
  for (const BlockGpu& gpu : block.gpus) {
    std::vector<std::string> links;
    for (const BlockWire* wire :
         wires_of(gpu.vertex, [](const BlockWire& w) { return w.kind == WireKind::nvlink; }))
      links.push_back(fmt::format("{}{}:{}x{}", to_string(block.vertices[wire->to].kind),
                                  block.vertices[wire->to].index, wire->wires, wire->rate.value));
    lines.push_back(fmt::format("{} {}", gpu.gpudirect, sorted(links)));
  }
  for (const BlockNic& nic : block.nics)
    lines.push_back(fmt::format("{} {} {}", nic.rail, nic.card, nic.rate.value));
  return lines;
}

RC_GTEST_PROP(NcclXmlWriter, random_hosts_come_back_as_they_were, ()) {
  const Topology topology = RandomHost().make();
  const std::string text = to_nccl_xml(topology);
  const Topology again = read_nccl_xml(text, "other.xml").topology;
  RC_ASSERT(again.name == topology.name);
  RC_ASSERT(portrait(again.types.at(0)) == portrait(topology.types.at(0)));
  RC_ASSERT(to_nccl_xml(again) == text);
  RC_ASSERT(read_nccl_xml(to_nccl_xml(again), "third.xml").topology == again);
}

RC_GTEST_PROP(NcclXmlWriter, any_changed_rate_is_said_or_refused, ()) {
  Topology topology = RandomHost().make();
  Block& block = topology.types[0];
  BlockWire& wire = block.wires[*rc::gen::inRange(std::size_t{0}, block.wires.size())];
  const double factor = *rc::gen::element(0.5, 0.75, 2.0, 0.9);
  wire.rate = {static_cast<std::int64_t>(static_cast<double>(wire.rate.value) * factor)};
  std::string text;
  try {
    text = to_nccl_xml(topology);
  } catch (const InputError&) {
    return;
  }
  RC_ASSERT(portrait(read(text).types.at(0)) == portrait(block));
}

TEST(NcclXmlWriter, the_form_is_what_nccl_parses) {
  const std::string text = to_nccl_xml(read(xml_small_host()));
  EXPECT_TRUE(text.starts_with("<system version=\"1\" name=\"a\">\n"));
  for (std::size_t open = text.find('<'); open != text.npos; open = text.find('<', open + 1)) {
    const std::string tag = text.substr(open, text.find('>', open) - open);
    EXPECT_THAT(tag, Not(HasSubstr("\n")));
    EXPECT_LE(std::ranges::count(tag, '='), 16) << tag;
  }
  for (const char* never : {"<?", "<!", "&", "\t"}) EXPECT_THAT(text, Not(HasSubstr(never)));
}

TEST(NcclXmlWriter, an_imported_host_goes_back_with_its_attributes) {
  const std::string first = to_nccl_xml(read(xml_small_host()));
  EXPECT_EQ(read(first), read(xml_small_host()));
  EXPECT_EQ(to_nccl_xml(read(first)), first);
  EXPECT_THAT(
      first,
      HasSubstr("<net name=\"mlx5_1\" dev=\"1\" speed=\"400000\" port=\"1\" guid=\"0x2\" gdr=\"1\"/>"));
}

TEST(NcclXmlWriter, a_file_that_says_nothing_of_its_cpu_goes_back_without_a_cpu_invented_for_it) {
  const Topology topology = read(
      "<system version=\"1\"><cpu><pci busid=\"0000:1c:00.0\" class=\"0x030200\" link_speed=\"32.0 GT/s "
      "PCIe\" "
      "link_width=\"16\"><gpu dev=\"0\" sm=\"100\" rank=\"0\"/></pci></cpu></system>");
  const std::string written = to_nccl_xml(topology);
  EXPECT_EQ(read(written), topology);
  EXPECT_EQ(to_nccl_xml(read(written)), written);
}

/// A random file of one host; every attribute that the reader does not demand may be missing.
class RandomFile {
 public:
  std::string make() {
    text_ = "<system version=\"1\">";
    for (int cpus = *rc::gen::inRange(1, 3); cpus > 0; --cpus) {
      text_ += "<cpu" + maybe(fmt::format(" numaid=\"{}\"", cpus)) + ">";
      for (int pcis = *rc::gen::inRange(0, 4); pcis > 0; --pcis) add_pci(0);
      if (*rc::gen::arbitrary<bool>()) add_nets();
      text_ += "</cpu>";
    }
    return text_ + "</system>";
  }

 private:
  static std::string maybe(const std::string& words) { return *rc::gen::arbitrary<bool>() ? words : ""; }

  void add_pci(int depth) {
    text_ += fmt::format("<pci busid=\"0000:{:02x}:00.0\"", 0x10 + bus_++) +
             maybe(*rc::gen::element<std::string>(" class=\"0x030200\"", " class=\"0x020700\"",
                                                  " class=\"0x060400\"")) +
             maybe(" link_speed=\"32.0 GT/s PCIe\"") + maybe(" link_width=\"16\"") + ">";
    for (int gpus = *rc::gen::element(0, 0, 1, 1, 2); gpus > 0; --gpus) add_gpu();
    if (*rc::gen::inRange(0, 3) == 0) add_nets();
    for (int pcis = depth < 2 ? *rc::gen::element(0, 0, 1, 2) : 0; pcis > 0; --pcis) add_pci(depth + 1);
    text_ += "</pci>";
  }

  void add_gpu() {
    text_ += "<gpu" + maybe(fmt::format(" dev=\"{}\"", dev_)) + maybe(" sm=\"90\"") +
             maybe(fmt::format(" rank=\"{}\"", dev_)) + maybe(" mlopart=\"0\"") + ">";
    text_ += maybe("<nvlink target=\"0000:f0:00.0\" count=\"18\" tclass=\"0x068000\"/>") + "</gpu>";
    ++dev_;
  }

  void add_nets() {
    text_ += "<nic>";
    for (int nets = *rc::gen::inRange(0, 3); nets > 0; --nets, ++net_)
      text_ += "<net" + maybe(fmt::format(" name=\"n{}\"", net_)) + maybe(fmt::format(" dev=\"{}\"", net_)) +
               maybe(" speed=\"400000\"") + maybe(" gdr=\"1\"") + "/>";
    text_ += "</nic>";
  }

  std::string text_;
  int bus_ = 0, dev_ = 0, net_ = 0;
};

/// Whether the file holds what the writer may refuse: halves of which no record tells which one it means.
bool has_halves(const ImportedTopology& imported) {
  return std::ranges::count(imported.findings, "split-gpu", &Finding::code) > 0;
}

RC_GTEST_PROP(NcclXmlWriter, files_with_attributes_missing_go_back_without_any_invented, ()) {
  const std::string text = RandomFile().make();
  const ImportedTopology first = read_nccl_xml(text, "a.xml");
  std::string written;
  try {
    written = to_nccl_xml(first.topology);
  } catch (const InputError& error) {
    RC_LOG() << text << "\n" << error.what() << "\n";
    RC_ASSERT(has_halves(first));
    return;
  }
  RC_LOG() << text << "\n" << written << "\n";
  RC_ASSERT(read(written) == first.topology);
  RC_ASSERT(to_nccl_xml(read(written)) == written);
}

TEST(NcclXmlWriter, gpudirect_is_written_where_it_was_switched_off) {
  Topology topology = read(xml_small_host());
  topology.types[0].gpus[1].gpudirect = false;
  const std::string text = to_nccl_xml(topology);
  EXPECT_FALSE(read(text).types[0].gpus[1].gpudirect);
  EXPECT_TRUE(read(text).types[0].gpus[0].gpudirect);
}

TEST(NcclXmlWriter, an_edited_width_is_written) {
  Topology topology = read(xml_small_host());
  for (BlockWire& wire : topology.types[0].wires)
    if (wire.kind == WireKind::pcie && (wire.from == 0 || wire.to == 0)) wire.rate = gb(31.5);
  EXPECT_THAT(to_nccl_xml(topology), HasSubstr("link_speed=\"16.0 GT/s PCIe\" link_width=\"16\""));
}

TEST(NcclXmlWriter, what_the_format_cannot_say_is_refused) {
  const Topology good = read(xml_small_host());
  ASSERT_EQ(message(good), "accepted");
  const auto edited = [&](const std::function<void(Block&)>& edit) {
    Topology topology = good;
    edit(topology.types[0]);
    return message(topology);
  };
  EXPECT_THAT(edited([](Block& b) { b.gpus[1].partition = 1; }), HasSubstr("NVLink partition 1"));
  EXPECT_THAT(edited([](Block& b) { b.gpus[1].nic = 0; }), HasSubstr("told to use NIC 0"));
  EXPECT_THAT(edited([](Block& b) { b.hosts = 2; }), HasSubstr("a block of 2 hosts"));
  EXPECT_THAT(edited([](Block& b) { b.nvlink_known = false; }), HasSubstr("NVLink not known"));
  EXPECT_THAT(edited([](Block& b) { b.nics[1].rail = 5; }), HasSubstr("on rail 5"));
  EXPECT_THAT(edited([](Block& b) { b.nics[1].card = 0; }), HasSubstr("card 0"));
  EXPECT_THAT(edited([](Block& b) { b.nics[1].rate = gb(50.00001); }),
              HasSubstr("NIC 1 (mlx5_1) of 50.00001 GB/s"));
  const auto rate_of = [&](WireKind kind, double rate) {
    return edited([&](Block& b) { std::ranges::find(b.wires, kind, &BlockWire::kind)->rate = gb(rate); });
  };
  EXPECT_THAT(rate_of(WireKind::pcie, 50), HasSubstr("PCIe of 50 GB/s at GPU 0"));
  EXPECT_THAT(rate_of(WireKind::nvlink, 99), HasSubstr("nvlink from GPU 0"));
  EXPECT_THAT(rate_of(WireKind::socket, 30), HasSubstr("socket from CPU 0"));
  EXPECT_THAT(edited([](Block& b) {
                std::erase_if(b.wires, [](const BlockWire& w) { return w.kind == WireKind::socket; });
              }),
              HasSubstr("the file would say"));
  EXPECT_THAT(edited([](Block& b) {
                std::erase_if(b.wires, [](const BlockWire& w) { return w.kind == WireKind::pcie; });
              }),
              HasSubstr("which no PCIe wire joins to a CPU"));
  EXPECT_THAT(edited([](Block& b) {
                b.wires.push_back({0, 1, WireKind::pcie, 1, gb(63)});
              }),
              HasSubstr("tree below"));
  EXPECT_THAT(edited([](Block& b) { b.vertices[0].attributes["gpu.x"] = "'\""; }),
              HasSubstr("printable characters"));
  Topology two = good;
  two.blocks = {0, 0};
  EXPECT_THAT(message(two), HasSubstr("2 blocks"));
}

TEST(NcclXmlWriter, more_elements_than_nccl_reads_are_refused) {
  const auto bridges = [](int number) {
    std::string text;
    for (int i = 0; i < number; ++i) text += fmt::format("<pci busid='{:x}' class='0x060400'/>\n", i + 1);
    return read(xml_system(xml_cpu(0, text)));
  };
  EXPECT_EQ(message(bridges(254)), "accepted");
  EXPECT_THAT(message(bridges(255)), HasSubstr("more than 256 elements"));
}

}  // namespace
}  // namespace isthmus::nccl_xml_writer_test

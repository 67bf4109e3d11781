#include "model/topology/importers.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/error.hpp"
#include "tests/support/nccl_xml_texts.hpp"

namespace isthmus::nccl_xml_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const std::string hidden = "fffffff:ff:ff.0";
const std::string switched = xml_link(hidden, "18");

ImportedTopology read(const std::string& text) { return read_nccl_xml(text, "a.xml"); }
Block block_of(const std::string& text) { return read(text).topology.types.at(0); }

std::vector<std::string> codes(const std::string& text) {
  std::vector<std::string> found;
  for (const Finding& finding : read(text).findings) found.push_back(finding.code);
  return found;
}

std::string message(const std::string& text) {
  try {
    read(text);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::int64_t count(const Block& block, VertexKind kind) {
  return std::ranges::count(block.vertices, kind, &BlockVertex::kind);
}

/// Wires that leave a vertex, of a kind.
std::vector<BlockWire> wires(const Block& block, std::uint32_t from, WireKind kind) {
  std::vector<BlockWire> found;
  for (const BlockWire& wire : block.wires)
    if (wire.from == from && wire.kind == kind) found.push_back(wire);
  return found;
}

Bandwidth gb(double rate) { return gigabytes_per_second(rate); }

std::string with(std::string text, const std::string& old, const std::string& replacement) {
  const std::size_t place = text.find(old);
  EXPECT_NE(place, text.npos) << old;
  return text.replace(place, old.size(), replacement);
}

TEST(NcclXml, a_plain_host_is_read_without_findings_but_that_it_is_partial) {
  const Block block = block_of(xml_small_host());
  EXPECT_THAT(codes(xml_small_host()), ElementsAre("partial-host"));
  EXPECT_EQ(block.gpus.size(), 2U);
  EXPECT_EQ(block.nics.size(), 2U);
  EXPECT_EQ(count(block, VertexKind::nvswitch), 2);
  EXPECT_EQ(count(block, VertexKind::cpu), 2);
  EXPECT_EQ(count(block, VertexKind::pcie_switch), 2);
  EXPECT_TRUE(block.nvlink_known);
  EXPECT_EQ(block.nics[1].rate, gb(50));
  EXPECT_EQ(block.nics[1].rail, 1U);
  EXPECT_EQ(block.vertices[block.nics[1].vertex].label, "mlx5_1");
  EXPECT_TRUE(block.gpus[0].gpudirect);
}

TEST(NcclXml, every_wire_has_its_way_back) {
  const Block block = block_of(xml_small_host());
  for (const BlockWire& wire : block.wires) {
    BlockWire back = wire;
    std::swap(back.from, back.to);
    EXPECT_THAT(block.wires, Contains(back));
  }
}

TEST(NcclXml, chips_stand_by_address_and_links_add_up_at_nominal_rates) {
  const Block block = block_of(xml_small_host());
  const auto links = wires(block, block.gpus[0].vertex, WireKind::nvlink);
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(block.vertices[links[0].to].label, "0000:1a:00.0");
  EXPECT_EQ(links[0].wires, 4U);
  EXPECT_EQ(links[0].rate, gb(100));
  EXPECT_EQ(links[1].rate, gb(125));
  const std::string twice = xml_link(hidden, "4") + xml_link(hidden, "5");
  const Block summed = block_of(xml_system(xml_cpu(0, xml_gpu(0, "1", twice))));
  EXPECT_EQ(wires(summed, 0, WireKind::nvlink).at(0).wires, 9U);
}

TEST(NcclXml, cpus_are_joined_as_nccl_plans) {
  const Block block = block_of(xml_small_host());
  const auto sockets = std::ranges::find(block.wires, WireKind::socket, &BlockWire::kind);
  ASSERT_NE(sockets, block.wires.end());
  EXPECT_EQ(sockets->rate, gb(22));
  EXPECT_EQ(sockets->evidence, Evidence::nccl);
  const std::string bare = "<system version='1'><cpu numaid='0'/><cpu numaid='1'/></system>";
  EXPECT_THAT(codes(bare), Contains("cpu-unknown"));
  EXPECT_EQ(block_of(bare).wires.at(0).rate, Bandwidth{});
}

TEST(NcclXml, the_uplink_of_a_slow_bridge_is_not_between_gpu_and_nic) {
  const std::string text = xml_system(
      xml_cpu(-1, xml_bridge("0000:a1:00.0", "2.5 GT/s PCIe", "1",
                             xml_gpu(0, "0000:a4:00.0", switched) + xml_nic(0, "0000:a3:00.0", "0x1"))));
  EXPECT_THAT(codes(text), Contains("virtual-bridge"));
  const Block block = block_of(text);
  const auto gpu = wires(block, block.gpus[0].vertex, WireKind::pcie);
  const auto nic = wires(block, block.nics[0].vertex, WireKind::pcie);
  ASSERT_EQ(gpu.size(), 1U);
  EXPECT_EQ(gpu[0].to, nic.at(0).to);
  EXPECT_EQ(gpu[0].rate, gb(63));
  EXPECT_EQ(nic[0].rate, gb(63));
  for (const BlockWire& wire : wires(block, gpu[0].to, WireKind::pcie)) {
    const bool up = block.vertices[wire.to].kind == VertexKind::cpu;
    EXPECT_EQ(wire.rate, gb(up ? 0.25 : 63));
  }
}

TEST(NcclXml, missing_widths_are_16_and_missing_speeds_generation_3_with_a_finding) {
  for (const char* width : {"0", "", "16", "0x10", "020"}) {
    const std::string text = xml_system(xml_cpu(0, xml_bridge("1", "16.0 GT/s PCIe", width, "")));
    EXPECT_EQ(block_of(text).wires.at(0).rate, gb(31.5)) << width;
  }
  const std::string none = xml_system(xml_cpu(0, xml_bridge("1", "", "16", "")));
  EXPECT_EQ(block_of(none).wires.at(0).rate, gb(15.75));
  EXPECT_EQ(block_of(none).wires.at(0).evidence, Evidence::nccl);
  EXPECT_THAT(codes(none), Contains("pcie-speed-unknown"));
  EXPECT_THAT(codes(xml_system(xml_cpu(0, xml_bridge("1", "16.0 GT/s", "16", "")))),
              Contains("pcie-speed-not-nccl"));
  EXPECT_THAT(codes(xml_system(xml_cpu(0, xml_bridge("1", "16 GT/s", "16", "")))),
              Not(Contains(HasSubstr("speed"))));
  EXPECT_THAT(codes(xml_system(xml_cpu(0, xml_bridge("1", "16 GT/s", "255", "")))), Contains("pcie-width"));
}

TEST(NcclXml, a_socket_nic_under_several_cpus_is_one) {
  const std::string nic = "<nic><net name='eth0' dev='0' speed='10000' guid='0x0'/></nic>";
  const Block block = block_of(xml_system(xml_cpu(0, nic) + xml_cpu(1, nic)));
  EXPECT_EQ(block.nics.size(), 1U);
  EXPECT_EQ(wires(block, block.nics[0].vertex, WireKind::pcie).size(), 2U);
  const std::string other = "<nic><net name='eth1' dev='1' speed='10000' guid='0x0'/></nic>";
  EXPECT_EQ(block_of(xml_system(xml_cpu(0, nic) + xml_cpu(1, other))).nics.size(), 2U);
}

TEST(NcclXml, ports_with_one_guid_are_one_card) {
  const std::string text =
      xml_system(xml_cpu(0, xml_nic(1, "0000:02:00.0", "0x7") + xml_nic(0, "0000:01:00.0", "0x8") +
                                xml_nic(2, "0000:02:00.1", "0x7") + xml_nic(3, "0000:03:00.0", "0x0") +
                                xml_nic(4, "0000:04:00.0", "0x0")));
  const Block block = block_of(text);
  std::vector<std::uint32_t> cards;
  for (const BlockNic& nic : block.nics) cards.push_back(nic.card);
  EXPECT_THAT(cards, ElementsAre(0, 1, 1, 2, 3));  // in the order of dev
  for (const BlockNic& nic : block.nics) EXPECT_EQ(nic.rail, nic.card);
}

TEST(NcclXml, two_ports_of_one_device_share_its_pcie_link) {
  const std::string nets =
      "<nic><net name='a' dev='0' speed='180000' port='1' guid='0x1'/>"
      "<net name='b' dev='1' speed='180000' port='2' guid='0x1'/></nic>";
  const Block block =
      block_of(xml_system(xml_cpu(0, xml_bridge("0000:0c:00.0", "32.0 GT/s PCIe", "16", nets))));
  ASSERT_EQ(block.nics.size(), 2U);
  EXPECT_EQ(block.nics[0].card, block.nics[1].card);
  const auto first = wires(block, block.nics[0].vertex, WireKind::pcie);
  const auto second = wires(block, block.nics[1].vertex, WireKind::pcie);
  EXPECT_EQ(first.at(0).to, second.at(0).to);
  EXPECT_EQ(block.vertices[first[0].to].kind, VertexKind::pcie_switch);
}

TEST(NcclXml, gpus_stand_by_dev_and_nics_by_theirs) {
  const Block block = block_of(
      xml_system(xml_cpu(3, xml_gpu(1, "0000:01:00.0", switched) + xml_nic(5, "0000:02:00.0", "0x5")) +
                 xml_cpu(1, xml_gpu(0, "0000:03:00.0", switched) + xml_nic(2, "0000:04:00.0", "0x2"))));
  EXPECT_EQ(block.vertices[block.gpus[0].vertex].label, "0000:03:00.0");
  EXPECT_EQ(block.vertices[block.nics[0].vertex].label, "mlx5_2");
  EXPECT_EQ(block.vertices[block.nics[0].vertex].index, 0U);
}

TEST(NcclXml, pci_devices_alone_are_counted_by_class) {
  const std::string devices =
      "<pci busid='ffff:ff:01.0' class='0x060400' link_speed='16 GT/s' link_width='16'>"
      "<pci busid='0003:00:00.0' class='0x030200'/><pci busid='0001:00:00.0' class='0x030200'/>"
      "<pci busid='0101:00:00.0' class='0x020700'/></pci>";
  const std::string text = xml_system(xml_cpu(0, devices));
  const Block block = block_of(text);
  EXPECT_EQ(block.gpus.size(), 2U);
  EXPECT_EQ(block.vertices[block.gpus[0].vertex].label, "0001:00:00.0");
  ASSERT_EQ(block.nics.size(), 1U);
  EXPECT_EQ(block.nics[0].rate, Bandwidth{});
  EXPECT_FALSE(block.nvlink_known);
  EXPECT_THAT(codes(text), Contains("pci-only"));
  EXPECT_THAT(codes(text), Contains("nic-speed-missing"));
}

TEST(NcclXml, devices_without_class_are_unknown) {
  const std::string text = xml_system(xml_cpu(0, "<pci busid='0000:00:16.0'/><pci busid='0000:00:17.0'/>"));
  EXPECT_FALSE(read(text).topology.gpus_known);
  EXPECT_THAT(codes(text), Contains("unknown-device"));
  EXPECT_EQ(count(block_of(text), VertexKind::pcie_switch), 2);
}

TEST(NcclXml, nvlink_to_itself_is_no_wire) {
  const std::string self = xml_link("0000:01:00.0", "12", "0x030200");
  const std::string text = xml_system(xml_cpu(0, xml_gpu(0, "0000:01:00.0", self)));
  EXPECT_THAT(wires(block_of(text), 0, WireKind::nvlink), IsEmpty());
  EXPECT_FALSE(block_of(text).nvlink_known);
  EXPECT_THAT(codes(text), Contains("nvlink-to-itself"));
}

TEST(NcclXml, direct_nvlink_is_listed_by_both) {
  const auto pair = [](const std::string& first, const std::string& second) {
    return xml_system(xml_cpu(0, xml_gpu(0, "0000:01:00.0", first) + xml_gpu(1, "0000:02:00.0", second)));
  };
  const std::string to_second = xml_link("0000:02:00.0", "6", "0x030200");
  const std::string to_first = xml_link("0000:01:00.0", "6", "0x030200");
  EXPECT_THAT(codes(pair(to_second, to_first)), Not(Contains(HasSubstr("nvlink"))));
  EXPECT_EQ(wires(block_of(pair(to_second, to_first)), 1, WireKind::nvlink).at(0).rate, gb(150));
  EXPECT_THAT(codes(pair(to_second, "")), Contains("nvlink-one-sided"));
  EXPECT_EQ(wires(block_of(pair(to_second, "")), 1, WireKind::nvlink).size(), 1U);
  EXPECT_THAT(codes(pair(to_second, xml_link("0000:01:00.0", "4", "0x030200"))),
              Contains("nvlink-counts-differ"));
  EXPECT_THAT(codes(pair(xml_link("0000:09:00.0", "6", "0x030200"), "")), Contains("nvlink-to-unlisted"));
}

TEST(NcclXml, a_gpu_outside_the_domain_is_found) {
  const auto three = [](const std::string& links) {
    return xml_system(
        xml_cpu(0, xml_gpu(0, "1", switched) + xml_gpu(1, "2", switched) + xml_gpu(2, "3", links)));
  };
  EXPECT_THAT(codes(three("")), Contains("gpu-without-nvlink"));
  EXPECT_THAT(codes(three(xml_link(hidden, "17"))), Contains("nvlink-degraded"));
  EXPECT_THAT(codes(three(switched)), Not(Contains(HasSubstr("gpu-without"))));
  EXPECT_THAT(codes(three(switched)), Not(Contains("nvlink-degraded")));
}

TEST(NcclXml, nvlink_rates_follow_sm) {
  const auto rate = [](int sm) {
    return wires(block_of(xml_system(xml_cpu(0, xml_gpu(0, "1", switched, sm)))), 0, WireKind::nvlink)
        .at(0)
        .rate;
  };
  EXPECT_EQ(rate(90), gb(450));
  EXPECT_EQ(rate(100), gb(900));
  EXPECT_EQ(rate(50), Bandwidth{});
  EXPECT_THAT(codes(xml_system(xml_cpu(0, xml_gpu(0, "1", switched, 50)))), Contains("nvlink-rate-unknown"));
}

TEST(NcclXml, xgmi_has_no_rate) {
  const std::string text =
      with(xml_system(xml_cpu(
               0,
               "<pci busid='1' class='0x120000'><gpu dev='0' sm='304' rank='0'><xgmi target='2' "
               "count='1' tclass='0x120000'/></gpu></pci><pci busid='2' class='0x120000'><gpu dev='1' "
               "sm='304' rank='1'><xgmi target='1' count='1' tclass='0x120000'/></gpu></pci>")),
           "version=\"1\"", "version=\"2\"");
  const Block block = block_of(text);
  EXPECT_EQ(block.gpus.size(), 2U);
  EXPECT_EQ(wires(block, 0, WireKind::nvlink).at(0).rate, Bandwidth{});
  EXPECT_THAT(codes(text), Contains("xgmi-rate-unknown"));
}

TEST(NcclXml, two_gpus_in_one_pci_are_halves_that_share_its_link) {
  const auto half = [](int part) {
    return fmt::format("<gpu dev='0' sm='107' rank='{}' mlopart='{}'>{}<c2c bw='56376' count='7'/></gpu>",
                       part, part, switched);
  };
  const std::string text = xml_system(
      xml_cpu(0, "<pci busid='0009:01:00.0' class='0x030200' link_speed='64.0 GT/s PCIe' link_width='16'>" +
                     half(0) + half(1) + "</pci>"));
  const Block block = block_of(text);
  ASSERT_EQ(block.gpus.size(), 2U);
  EXPECT_THAT(codes(text), Contains("split-gpu"));
  EXPECT_THAT(codes(text), Not(Contains("dev-twice")));
  EXPECT_EQ(wires(block, 0, WireKind::pcie).at(0).to, wires(block, 1, WireKind::pcie).at(0).to);
  EXPECT_EQ(wires(block, 1, WireKind::c2c).at(0).rate, Bandwidth{394'632'000'000});
}

TEST(NcclXml, each_host_hash_is_a_host_of_one_block) {
  const std::string cpu = xml_cpu(0, xml_gpu(0, "0008:01:00.0", switched));
  const std::string text =
      xml_system(with(cpu, "<cpu ", "<cpu host_hash='0xa' ") + with(cpu, "<cpu ", "<cpu host_hash='b' "));
  const Block block = block_of(text);
  EXPECT_EQ(block.hosts, 2U);
  EXPECT_EQ(block.gpus.size(), 2U);
  EXPECT_EQ(count(block, VertexKind::nvswitch), 1);  // one domain, one fabric
  EXPECT_EQ(block.vertices[block.gpus[1].vertex].host, 1U);
  EXPECT_EQ(std::ranges::count(block.wires, WireKind::socket, &BlockWire::kind), 0);
  EXPECT_THAT(message(xml_system(cpu + cpu)), HasSubstr("pci.busid: found a second 0008:01:00.0"));
}

TEST(NcclXml, gpudirect_needs_gpu_and_nic) {
  const std::string text = xml_system(xml_cpu(0, xml_gpu(0, "1", switched) + xml_nic(0, "2", "0x1")));
  EXPECT_TRUE(block_of(text).gpus[0].gpudirect);
  const std::string gpu_off = with(text, "gdr=\"1\"", "gdr=\"0\"");
  EXPECT_FALSE(block_of(gpu_off).gpus[0].gpudirect);
  EXPECT_THAT(codes(gpu_off), Contains("gpudirect-off"));
  const std::string nic_off = with(text, "gdr=\"1\"/>", "gdr=\"0\"/>");
  EXPECT_FALSE(block_of(nic_off).gpus[0].gpudirect);
  EXPECT_THAT(codes(nic_off), Contains("gpudirect-off-nic"));
}

TEST(NcclXml, odd_pairs_of_gpus_and_nics_are_found) {
  const auto flat = [](const std::string& nics) {
    return codes(xml_system(xml_cpu(0, xml_gpu(0, "1", switched) + xml_gpu(1, "2", switched) + nics)));
  };
  EXPECT_THAT(flat(xml_nic(0, "3", "0x1")), Contains("nic-shared"));
  EXPECT_THAT(flat(xml_nic(0, "3", "0x1") + xml_nic(1, "4", "0x2")), Contains("nic-ambiguous"));
  const std::string host = xml_small_host();
  EXPECT_THAT(codes(host), Not(Contains(HasSubstr("nic-"))));
  std::string swapped = with(host, "name=\"mlx5_0\" dev=\"0\"", "name=\"mlx5_0\" dev=\"7\"");
  EXPECT_THAT(codes(swapped), Contains("nic-order"));
}

TEST(NcclXml, switches_that_nccl_flattens_keep_their_levels) {
  const auto levels = [](const std::string& upper, const std::string& lower) {
    const std::string switch_of =
        "vendor='0x1000' device='0xc030' subsystem_vendor='0x1000' subsystem_device='";
    const std::string below = with(xml_bridge("2", "32.0 GT/s PCIe", "16", xml_gpu(0, "3", switched)),
                                   "class", switch_of + lower + "' class");
    return xml_system(xml_cpu(
        0, with(xml_bridge("1", "5.0 GT/s PCIe", "16", below), "class", switch_of + upper + "' class")));
  };
  EXPECT_THAT(codes(levels("0x0072", "0x1003")), Contains("nccl-flattens"));
  EXPECT_THAT(codes(levels("0x0072", "0x1003")), Contains("slow-bridge"));
  EXPECT_EQ(count(block_of(levels("0x0072", "0x1003")), VertexKind::pcie_switch), 2);
  EXPECT_THAT(codes(levels("0x1d25", "0x1003")), Not(Contains("nccl-flattens")));
}

TEST(NcclXml, pcilinks_join_switches_without_a_rate) {
  const auto linked = [](const std::string& target) {
    return xml_system(
        xml_cpu(0, xml_bridge("0000:01:00.0", "32.0 GT/s PCIe", "16", "<pcilink target='" + target + "'/>") +
                       xml_bridge("0000:02:00.0", "32.0 GT/s PCIe", "16", "")));
  };
  EXPECT_THAT(codes(linked("0000:02:00.0")), Contains("pcilink-rate-unknown"));
  EXPECT_EQ(block_of(linked("0000:02:00.0")).wires.size(), 6U);
  EXPECT_THAT(codes(linked("0000:03:00.0")), Contains("pcilink-unlisted"));
  EXPECT_EQ(block_of(linked("0000:03:00.0")).wires.size(), 4U);
}

TEST(NcclXml, what_is_unknown_is_left_out_with_a_finding) {
  EXPECT_THAT(codes(xml_system(xml_cpu(0, "<switch><gpu dev='0'/></switch>"))), Contains("skipped-element"));
  EXPECT_EQ(block_of(xml_system(xml_cpu(0, "<switch><gpu dev='x'/></switch>"))).gpus.size(), 0U);
  EXPECT_THAT(codes(xml_system(xml_cpu(0, "<nic><net name='a'/></nic>"))), Contains("net-without-dev"));
  EXPECT_THAT(codes(xml_system(xml_cpu(0, "<nic><net name='a' dev='0'/></nic>"))),
              Contains("nic-speed-unknown"));
}

TEST(NcclXml, values_of_no_form_are_refused_with_line_and_attribute) {
  const std::string host = xml_small_host();
  for (const auto& [old, replacement, place] : std::initializer_list<std::array<std::string, 3>>{
           {"sm=\"90\"", "sm=\"90a\"", "gpu.sm"},
           {"speed=\"400000\"", "speed=\"4e5\"", "net.speed"},
           {"speed=\"400000\"", "speed=\"400,0\"", "net.speed"},
           {"count=\"5\"", "count=\"4000000000\"", "nvlink.count"},
           {"count=\"5\"", "count=\"-1\"", "nvlink.count"},
           {"target=\"0000:1b:00.0\"", "target=\"chip\"", "nvlink.target"},
           {"busid=\"0000:0f:00.0\"", "busid=\"\"", "pci.busid"},
           {"busid=\"0000:0f:00.0\"", "busid=\"fffffff:ff:ff.0\"", "pci.busid"},
           {"busid=\"0000:0f:00.0\"", "busid=\"0000:0c:00.0\"", "pci.busid"},
           {"class=\"0x030200\"", "class=\"gpu\"", "pci.class"},
           {"link_width=\"16\"", "link_width=\"x16\"", "pci.link_width"},
           {"guid=\"0x1\"", "guid=\"0xg\"", "net.guid"},
           {"gdr=\"1\"", "gdr=\"2\"", "gpu.gdr"},
           {"numaid=\"0\"", "numaid=\"-2\"", "cpu.numaid"},
           {"numaid=\"0\"", "numaid=\"0\" affinity=\"ff,fffffffff\"", "cpu.affinity"},
           {"numaid=\"0\"", "numaid=\"0\" affinity=\"ff,\"", "cpu.affinity"},
           {"version=\"1\"", "version=\"3\"", "system.version"}}) {
    const std::string text = with(host, old, replacement);
    const auto place_of = text.find(replacement);
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place_of), '\n');
    const std::string found = message(text);
    EXPECT_THAT(found, HasSubstr(place)) << replacement;
    const bool later = replacement == "busid=\"0000:0c:00.0\"";  // the second of the two is at fault
    EXPECT_THAT(found, HasSubstr(fmt::format("a.xml:{}: ", later ? line + 1 : line))) << replacement;
  }
  EXPECT_EQ(message(with(host, "sm=\"90\"", "sm=\"0x5a\"")), "accepted");
  EXPECT_EQ(message(with(host, "numaid=\"0\"", "numaid=\"0\" affinity=\"ff,ffffffff\"")), "accepted");
}

TEST(NcclXml, more_elements_than_nccl_reads_are_a_finding_and_absurd_numbers_refused) {
  const auto bridges = [](int number) {
    std::string text;
    for (int i = 0; i < number; ++i) text += fmt::format("<pci busid='{:x}' class='0x060400'/>\n", i + 1);
    return xml_system(xml_cpu(0, text));
  };
  EXPECT_THAT(codes(bridges(254)), Not(Contains("nccl-refuses-size")));
  EXPECT_THAT(codes(bridges(255)), Contains("nccl-refuses-size"));
  EXPECT_THAT(message(bridges(18'500)), HasSubstr("at most 18432"));
  std::string cpus;
  for (int i = 0; i < 65; ++i) cpus += "<cpu numaid='0'/>\n";
  EXPECT_THAT(message(xml_system(cpus)),
              HasSubstr("found one more cpu of the same host; allowed: at most 64"));
}

TEST(NcclXml, the_largest_files_are_read_within_seconds) {
  std::string nics, links, cpus;
  for (int i = 0; i < 6'000; ++i) nics += fmt::format("<net name='n{}' dev='{}'/>", i, i);
  for (int i = 0; i < 6'000; ++i) links += xml_link(fmt::format("0001:{:x}", i), "1");
  for (int i = 0; i < 6'000; ++i) cpus += fmt::format("<cpu host_hash='{:x}'/>", i + 1);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(
      block_of(xml_system(xml_cpu(0, "<nic>" + nics + "</nic>" + xml_gpu(0, "1", links)) + cpus)).nics.size(),
      6'000U);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace isthmus::nccl_xml_test

#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/topology_faults.hpp"
#include "tests/support/imported_topology.hpp"

namespace isthmus::ibnetdiscover_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// One end of a cable: a device as it is named in the file ("S-1"), and its port.
struct End {
  std::string device;
  int port = 0;
};

struct Cable {
  End a, b;
  std::string rate = "4xNDR";
};

/// A fabric to be printed: the names of devices, and cables. Devices of `without_section` are only named.
struct Listing {
  std::map<std::string, std::string> names;
  std::vector<Cable> cables;
  std::set<std::string> without_section{};

  std::string text() const {
    std::string result = "#\n# Topology file: generated on some day\n#\n";
    for (const auto& [device, name] : names) {
      if (without_section.contains(device)) continue;
      const bool adapter = device.starts_with("H-");
      result += fmt::format("\nvendid=0x2c9\n{}guid=0x{}\n{}\t65 \"{}\"\t\t# \"{}\"{}\n",
                            adapter ? "ca" : "switch", device.substr(2), adapter ? "Ca" : "Switch", device,
                            name, adapter ? "" : " enhanced port 0 lid 7 lmc 0");
      for (const Cable& cable : cables) {
        if (cable.a.device == device) result += line(cable.a, cable.b, cable.rate);
        if (cable.b.device == device) result += line(cable.b, cable.a, cable.rate);
      }
    }
    return result;
  }

  std::string line(const End& from, const End& to, const std::string& rate) const {
    const bool out_of_adapter = from.device.starts_with("H-"), into_adapter = to.device.starts_with("H-");
    return fmt::format("[{}]{} \t\"{}\"[{}]{}\t\t# {}\"{}\" lid 9 {}\n", from.port,
                       out_of_adapter ? "(" + from.device.substr(2) + ")" : "", to.device, to.port,
                       into_adapter ? "(" + to.device.substr(2) + ")" : "",
                       out_of_adapter ? "lid 9 lmc 0 " : "", names.at(to.device), rate);
  }
};

std::string guid(char kind, int number) { return fmt::format("{}-{:x}", kind, number); }

/// `leaves` x `spines` with two cables between each pair, and `hosts` with an adapter on every leaf.
Listing two_tiers(int leaves, int spines, int hosts) {
  Listing listing;
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const std::string here = guid('S', 0x100 + leaf);
    listing.names[here] = fmt::format("MF0;LEAF-{:02}:Q/U1", leaf + 1);
    for (int host = 0; host < hosts; ++host) {
      const std::string adapter = guid('H', 0x1000 + leaf * 64 + host);
      listing.names[adapter] = fmt::format("h{} mlx5_{}", host + 1, leaf);
      listing.cables.push_back({{here, host + 1}, {adapter, 1}});
    }
    for (int spine = 0; spine < spines; ++spine) {
      for (int k = 0; k < 2; ++k)
        listing.cables.push_back({{here, 33 + 2 * spine + k}, {guid('S', 0x200 + spine), 2 * leaf + 1 + k}});
    }
  }
  for (int spine = 0; spine < spines; ++spine)
    listing.names[guid('S', 0x200 + spine)] = fmt::format("MF0;SPINE-{:02}:Q/U1", spine + 1);
  return listing;
}

ImportedTopology read(const std::string& text) {
  ImportedTopology imported = read_ibnetdiscover(text, "fabric.out");
  EXPECT_THAT(topology_faults(imported.topology), IsEmpty());
  return imported;
}

std::string refusal(const std::string& text) {
  try {
    read_ibnetdiscover(text, "fabric.out");
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

std::uint32_t cables_of(const Topology& topology) {
  std::uint32_t cables = 0;
  for (const NetworkCable& cable : topology.network.cables) cables += cable.wires;
  return cables;
}

TEST(Ibnetdiscover, links_listed_from_both_ends_count_once) {
  const ImportedTopology imported = read(two_tiers(4, 2, 3).text());
  EXPECT_EQ(switches_of(imported.topology, VertexKind::leaf), 4U);
  EXPECT_EQ(switches_of(imported.topology, VertexKind::spine), 2U);
  EXPECT_EQ(cables_of(imported.topology), 4U * 2 * 2);
  EXPECT_THAT(imported.topology.network.cables, SizeIs(8)) << "two parallel cables are one bundle";
  EXPECT_EQ(vertices_of(imported.topology, VertexKind::nic), 12U);
  EXPECT_THAT(imported.topology.blocks, SizeIs(3));
  EXPECT_THAT(imported.findings, ElementsAre(::testing::Field(&Finding::code, "gpus-not-in-file")));
}

TEST(Ibnetdiscover, a_cut_listing_has_the_same_links_and_says_what_is_missing) {
  Listing listing = two_tiers(3, 2, 2);
  const Topology whole = read(listing.text()).topology;
  for (const auto& [device, name] : listing.names)
    if (device.starts_with("H-")) listing.without_section.insert(device);
  const ImportedTopology cut = read(listing.text());
  EXPECT_EQ(cut.topology.network, whole.network);
  EXPECT_EQ(vertices_of(cut.topology, VertexKind::nic), 6U);
  EXPECT_THAT(texts_of(cut, "sections-missing"), ElementsAre(HasSubstr("6 devices")));
  const std::string text = two_tiers(3, 2, 2).text();
  const ImportedTopology torn = read(text.substr(0, text.size() - 30));
  EXPECT_EQ(cables_of(torn.topology), 12U);
  EXPECT_EQ(refusal(text.substr(0, text.size() / 2)), "accepted");
}

TEST(Ibnetdiscover, one_end_that_does_not_list_a_link_is_reported_and_the_link_counts) {
  std::string text = two_tiers(2, 1, 1).text();
  EXPECT_THAT(texts_of(read(text), "links-listed-once"), IsEmpty());
  const std::size_t spine = text.find("[1] \t\"S-100\"");
  ASSERT_NE(spine, std::string::npos);
  text.erase(spine, text.find('\n', spine) + 1 - spine);
  const ImportedTopology imported = read(text);
  EXPECT_THAT(texts_of(imported, "links-listed-once"), ElementsAre(HasSubstr("1 links")));
  EXPECT_EQ(cables_of(imported.topology), 4U);
}

struct Rate {
  std::string word;
  double gigabytes_per_second;
  bool degraded;
};

TEST(Ibnetdiscover, rate_words_are_lanes_times_their_speed) {
  for (const Rate& rate : {Rate{"4xHDR", 25, false}, Rate{"4xNDR", 50, false}, Rate{"4xXDR", 100, false},
                           Rate{"4xEDR", 12.5, false}, Rate{"2xNDR", 25, true}, Rate{"1xHDR", 6.25, true}}) {
    Listing listing = two_tiers(1, 0, 1);
    listing.cables.front().rate = rate.word;
    const ImportedTopology imported = read(listing.text());
    EXPECT_EQ(imported.topology.types.front().nics.front().rate,
              gigabytes_per_second(rate.gigabytes_per_second))
        << rate.word;
    EXPECT_THAT(texts_of(imported, "link-of-few-lanes"), SizeIs(rate.degraded ? 1 : 0)) << rate.word;
  }
  Listing listing = two_tiers(1, 0, 1);
  for (const char* word : {"3xNDR", "0xNDR", "400xNDR", "4xQQDR"}) {
    listing.cables.front().rate = word;
    EXPECT_THAT(refusal(listing.text()), HasSubstr("the rate")) << word;
  }
}

TEST(Ibnetdiscover, ends_that_disagree_on_the_rate_give_the_lower) {
  std::string text = two_tiers(1, 0, 1).text();
  text.replace(text.rfind("4xNDR"), 5, "4xHDR");
  const ImportedTopology imported = read(text);
  EXPECT_EQ(imported.topology.types.front().nics.front().rate, gigabytes_per_second(25));
  EXPECT_THAT(texts_of(imported, "link-ends-disagree"), SizeIs(1));
}

TEST(Ibnetdiscover, adapters_are_told_apart_by_guid_whatever_their_names) {
  Listing listing = two_tiers(1, 0, 6);
  const std::vector<std::string> names{"localhost HCA-1",
                                       "localhost HCA-2",
                                       "MT4129 ConnectX7   Mellanox Technologies",
                                       "MT4129 ConnectX7   Mellanox Technologies",
                                       "",
                                       "h9 mlx5_0"};
  for (int host = 0; host < 6; ++host)
    listing.names[guid('H', 0x1000 + host)] = names[static_cast<std::size_t>(host)];
  const ImportedTopology imported = read(listing.text());
  EXPECT_THAT(imported.topology.blocks, SizeIs(6));
  EXPECT_THAT(texts_of(imported, "adapters-without-host"), ElementsAre(HasSubstr("5 adapters")));
}

TEST(Ibnetdiscover, names_make_hosts_only_where_adapter_numbers_are_distinct) {
  Listing listing = two_tiers(1, 0, 3);
  listing.names[guid('H', 0x1000)] = "h1 mlx5_0";
  listing.names[guid('H', 0x1001)] = "h1 HCA-2";  // the same as mlx5_1
  listing.names[guid('H', 0x1002)] = "h1 mlx5_3";
  const ImportedTopology one = read(listing.text());
  EXPECT_THAT(one.topology.blocks, SizeIs(1));
  EXPECT_EQ(one.topology.types.front().nics.back().rail, 2U);
  listing.names[guid('H', 0x1002)] = "h1 mlx5_1";
  const ImportedTopology three = read(listing.text());
  EXPECT_THAT(three.topology.blocks, SizeIs(3));
  EXPECT_THAT(texts_of(three, "host-name-ambiguous"), ElementsAre(HasSubstr("3 adapters")));
}

TEST(Ibnetdiscover, unnamed_adapters_are_on_the_rail_of_their_leaf) {
  Listing listing = two_tiers(3, 1, 4);
  listing.names[guid('H', 0x1000 + 2 * 64)] = "MT4129";
  const ImportedTopology imported = read(listing.text());
  EXPECT_EQ(imported.topology.types.back().name, "MT4129");
  EXPECT_EQ(imported.topology.types.back().nics.front().rail, 2U);
  EXPECT_THAT(texts_of(imported, "host-short-of-adapters"), ElementsAre(HasSubstr("h1")));
}

TEST(Ibnetdiscover, ports_of_one_adapter_are_nics_of_one_card) {
  Listing listing = two_tiers(1, 0, 2);
  listing.cables.push_back({{"S-100", 9}, {"H-1000", 2}});
  const ImportedTopology imported = read(listing.text());
  const Block& host = imported.topology.types.front();
  ASSERT_THAT(host.nics, SizeIs(2));
  EXPECT_EQ(host.nics[0].card, host.nics[1].card);
  EXPECT_EQ(host.vertices[0].attributes.at("guid"), "0x0000000000001000");
  EXPECT_EQ(host.vertices[1].attributes.at("port"), "2");
}

TEST(Ibnetdiscover, aggregation_nodes_are_no_hosts_and_make_no_leaf) {
  Listing listing = two_tiers(2, 1, 1);
  listing.names["H-9000"] = "Mellanox Technologies Aggregation Node";
  listing.cables.push_back({{"S-200", 65}, {"H-9000", 1}});
  const ImportedTopology imported = read(listing.text());
  EXPECT_EQ(vertices_of(imported.topology, VertexKind::nic), 2U);
  EXPECT_EQ(switches_of(imported.topology, VertexKind::spine), 1U);
  EXPECT_THAT(texts_of(imported, "aggregation-nodes"), ElementsAre(HasSubstr("1 adapters")));
  listing.names["H-9000"] = "h9 mlx5_0";  // a host among many links to leaves: still a spine
  for (int k = 0; k < 2; ++k) listing.cables.push_back({{"S-100", 60 + k}, {"S-200", 60 + k}});
  EXPECT_THAT(texts_of(read(listing.text()), "hosts-on-spine"), SizeIs(1));
}

TEST(Ibnetdiscover, switches_above_spines_are_cores_and_a_fourth_tier_is_refused) {
  Listing listing = two_tiers(2, 2, 1);
  listing.names["S-300"] = "core";
  listing.cables.push_back({{"S-200", 64}, {"S-300", 1}});
  const ImportedTopology imported = read(listing.text());
  EXPECT_EQ(switches_of(imported.topology, VertexKind::core), 1U);
  EXPECT_EQ(imported.topology.network.switches.back().name, "core");
  listing.names["S-400"] = "beyond";
  listing.cables.push_back({{"S-300", 64}, {"S-400", 1}});
  EXPECT_THAT(refusal(listing.text()), HasSubstr("beyond: found a switch 3 switches away"));
}

TEST(Ibnetdiscover, leaves_with_fewer_up_links_than_most_are_named) {
  Listing listing = two_tiers(4, 3, 1);
  EXPECT_THAT(texts_of(read(listing.text()), "leaf-short-of-up-links"), IsEmpty());
  std::erase_if(listing.cables,
                [](const Cable& cable) { return cable.a.device == "S-102" && cable.a.port >= 37; });
  EXPECT_THAT(texts_of(read(listing.text()), "leaf-short-of-up-links"),
              ElementsAre("leaf LEAF-03 has 4 up-links, most have 6"));
}

/// Leaves named by rail and rack; the one of that number is left out.
Listing grid(int rails, int racks, int absent) {
  Listing listing = two_tiers(rails * racks, 2, 1);
  for (int leaf = 0; leaf < rails * racks; ++leaf)
    listing.names[guid('S', 0x100 + leaf)] =
        fmt::format("LEAF-{:02}-{:02}", leaf % rails + 1, leaf / rails + 1);
  if (absent < 0) return listing;
  const std::string gone = guid('S', 0x100 + absent), host = guid('H', 0x1000 + absent * 64);
  listing.names.erase(gone);
  listing.names.erase(host);
  std::erase_if(listing.cables, [&](const Cable& cable) { return cable.a.device == gone; });
  return listing;
}

RC_GTEST_PROP(Ibnetdiscover, a_leaf_missing_from_a_grid_of_names_and_ports_is_named, ()) {
  const int rails = *rc::gen::inRange(2, 6), racks = *rc::gen::inRange(3, 6);
  const int absent = *rc::gen::inRange(0, rails * racks - 1);
  const ImportedTopology whole = read_ibnetdiscover(grid(rails, racks, -1).text(), "whole");
  RC_ASSERT(texts_of(whole, "leaf-missing").empty());
  RC_ASSERT(texts_of(whole, "spine-ports-free").empty());
  const ImportedTopology short_of_one = read_ibnetdiscover(grid(rails, racks, absent).text(), "short");
  const std::string name = fmt::format("{:02}-{:02}", absent % rails + 1, absent / rails + 1);
  const std::vector<std::string> names = texts_of(short_of_one, "leaf-missing");
  RC_ASSERT(names.size() == 1U);
  RC_ASSERT(names.front().find("numbered " + name + ",") != std::string::npos);
  if (rails * racks <= 8) return;  // few leaves make no pattern of ports
  const std::vector<std::string> ports = texts_of(short_of_one, "spine-ports-free");
  RC_ASSERT(ports.size() == 1U);
  RC_ASSERT(ports.front().find(fmt::format("ports {} and {} ", 2 * absent + 1, 2 * absent + 2)) == 0U);
}

TEST(Ibnetdiscover, what_no_fabric_can_be_is_refused_with_its_line) {
  const std::string start = "Switch 65 \"S-1\" # \"a\"\n[1] \"H-a\"[1] # \"h0 mlx5_0\" lid 1 4xNDR\n";
  EXPECT_EQ(refusal(start), "accepted");
  EXPECT_THAT(refusal(start + "[1] \"H-b\"[1] # \"h1 mlx5_0\" lid 1 4xNDR\n"),
              HasSubstr("fabric.out:3: S-0000000000000001"));
  EXPECT_THAT(refusal(start + "[2] \"H-a\"[1] # \"h0\" lid 1 4xNDR\n"), HasSubstr("joined to two ports"));
  EXPECT_THAT(refusal(start + "[1] \"H-a\"[1] # \"h0\" lid 1 4xNDR\n"),
              HasSubstr("port 1 for the second time"));
  EXPECT_THAT(refusal(start + "[3] \"S-1\"[3] # \"a\" lid 1 4xNDR\n"), HasSubstr("joined to itself"));
  EXPECT_THAT(refusal(start + "Switch 65 \"S-1\" # \"a\"\n"), HasSubstr("a second section"));
  EXPECT_THAT(refusal(start + "Switch 65 \"H-1\" # \"a\"\n"), HasSubstr("the name \"H-1\""));
  EXPECT_THAT(refusal(start + "Switch 9999999999 \"S-2\" # \"a\"\n"), HasSubstr("\"9999999999\" ports"));
  EXPECT_THAT(refusal(start + "[0] \"H-b\"[1] # \"h1\" lid 1 4xNDR\n"), HasSubstr("port \"0\""));
  EXPECT_THAT(refusal(start + "[255] \"H-b\"[1] # \"h1\" lid 1 4xNDR\n"), HasSubstr("port \"255\""));
  EXPECT_THAT(refusal(start + "[2] \"H-10000000000000000\"[1] # \"h1\" lid 1 4xNDR\n"),
              HasSubstr("the far end"));
  EXPECT_THAT(refusal(start + "[2] H-b[1]\n"), HasSubstr("the far end"));
  EXPECT_THAT(refusal(start + "something else\n"), HasSubstr("fabric.out:3"));
  EXPECT_THAT(refusal("[1] \"H-a\"[1]\n\n"), HasSubstr("outside of a section"));
  EXPECT_THAT(refusal(""), HasSubstr("no section"));
  EXPECT_THAT(refusal("Switch 65 \"S-1\" # \"a\"\n"), HasSubstr("no switch with a link to a host"));
}

TEST(Ibnetdiscover, floods_are_read_in_time_and_findings_stay_few) {
  std::string text = "Switch 65 \"S-1\" # \"a\"\n[1] \"H-a\"[1] # \"h0 mlx5_0\" lid 1 4xNDR\n";
  for (int i = 16; i < 100'000; ++i)
    text += fmt::format("Switch 65 \"S-{:x}\" # \"s\"\n[1] \"H-{:x}\"[1] # \"h\" lid 1 1xNDR\n", i, i);
  EXPECT_THAT(refusal(text), HasSubstr("hosts; allowed: at most 65536"));
  text.resize(text.find("\"S-8000\""));
  text.resize(text.rfind('\n') + 1);
  EXPECT_LT(read(text).findings.size(), 100U);
  EXPECT_THAT(refusal(std::string((std::size_t{64} << 20) + 1, '\n')), HasSubstr("at most 64 MiB"));
}

RC_GTEST_PROP(Ibnetdiscover, fabrics_come_back_as_they_were_printed, ()) {
  const int leaves = *rc::gen::inRange(1, 9), spines = *rc::gen::inRange(0, 5),
            hosts = *rc::gen::inRange(1, 7);
  Listing listing = two_tiers(leaves, spines, hosts);
  std::size_t up = 0;
  std::erase_if(listing.cables, [&](const Cable& cable) {  // some up-links are gone
    const bool is_up = cable.b.device.starts_with("S-");
    const bool gone = is_up && *rc::gen::inRange(0, 8) == 0;
    up += is_up && !gone ? 1U : 0U;
    return gone;
  });
  for (const auto& [device, name] : listing.names)
    if (device.starts_with("H-") && *rc::gen::arbitrary<bool>()) listing.without_section.insert(device);
  const std::string text = listing.text();
  const ImportedTopology imported = read_ibnetdiscover(text, "fabric");
  RC_ASSERT(topology_faults(imported.topology).empty());
  RC_ASSERT(switches_of(imported.topology, VertexKind::leaf) == static_cast<std::size_t>(leaves));
  RC_ASSERT(cables_of(imported.topology) == up);
  RC_ASSERT(imported.topology.blocks.size() == static_cast<std::size_t>(hosts));
  std::size_t nic = 0;
  for (int host = 0; host < hosts; ++host) {
    const Block& block = imported.topology.types[imported.topology.blocks[static_cast<std::size_t>(host)]];
    RC_ASSERT(block.name == fmt::format("h{}", host + 1));
    for (int leaf = 0; leaf < leaves; ++leaf, ++nic) {
      RC_ASSERT(block.nics[static_cast<std::size_t>(leaf)].rail == static_cast<std::uint32_t>(leaf));
      RC_ASSERT(imported.topology.switch_of_nic[nic] == static_cast<std::uint32_t>(leaf));
    }
  }
}

}  // namespace
}  // namespace isthmus::ibnetdiscover_test

// What stands out in the network: cables that are missing, parts that do not reach each other, rails that
// cross.

#include <algorithm>
#include <set>
#include <tuple>

#include "model/fabric_paths.hpp"
#include "model/topology/finding_list.hpp"

namespace isthmus {
namespace {

struct PluggedNic {
  std::uint32_t place = no_switch, rail = 0;
};

class NetworkReview {
 public:
  NetworkReview(const Topology& topology, FindingList& findings)
      : topology_(topology),
        network_(topology.network),
        findings_(findings),
        nics_at_(network_.switches.size()),
        up_(network_.switches.size()),
        down_(network_.switches.size()) {
    for (const NetworkCable& cable : network_.cables) {
      up_[cable.low] += cable.wires;
      down_[cable.high] += cable.wires;
    }
    std::size_t number = 0;
    for (const std::uint32_t type : topology.blocks) {
      for (const BlockNic& nic : topology.types[type].nics) {
        const std::uint32_t place = topology.switch_of_nic[number++];
        nics_.push_back({place, nic.rail});
        if (place != no_switch) ++nics_at_[place];
      }
    }
  }

  void review() {
    if (network_.switches.empty()) {
      review_absence();
      return;
    }
    review_nics();
    review_uplinks();
    review_switches();
    review_parts();
    review_cables();
  }

 private:
  std::string name(std::uint32_t number) const { return switch_name(network_, number); }
  std::string nic_name(std::size_t number) const;
  void review_absence();
  void review_nics();
  void review_uplinks();
  void review_switches();
  void review_parts();
  void review_cables();

  const Topology& topology_;
  const Network& network_;
  FindingList& findings_;
  std::vector<PluggedNic> nics_;
  std::vector<std::uint64_t> nics_at_, up_, down_;
};

/// Found by walking the blocks: only for the few that are told.
std::string NetworkReview::nic_name(std::size_t number) const {
  BlockPlace place;
  for (const std::uint32_t type : topology_.blocks) {
    const Block& block = topology_.types[type];
    if (number < block.nics.size()) return vertex_name(block.vertices[block.nics[number].vertex], place);
    number -= block.nics.size();
    place.host += block.hosts;
    ++place.block;
  }
  return {};
}

void NetworkReview::review_absence() {
  std::uint64_t hosts = 0;
  for (const std::uint32_t type : topology_.blocks) hosts += topology_.types[type].hosts;
  if (hosts < 2) return;
  findings_.add("network-unknown",
                [&] { return fmt::format("nothing is said of the network between the {} hosts", hosts); });
}

void NetworkReview::review_nics() {
  std::vector<std::map<std::uint32_t, std::uint64_t>> rails(network_.switches.size());
  for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
    if (nics_[nic].place != no_switch) {
      ++rails[nics_[nic].place][nics_[nic].rail];
    } else {
      findings_.add("nic-not-cabled", [&] { return fmt::format("{} is not cabled", nic_name(nic)); });
    }
  }
  // The rail that more than half of a leaf's NICs are of.
  std::vector<std::optional<std::uint32_t>> usual;
  for (const auto& at_switch : rails) {
    Peers<std::uint32_t> peers;
    for (const auto& [rail, count] : at_switch) peers.add(rail, count);
    usual.push_back(peers.usual(3));
  }
  for (std::size_t nic = 0; nic < nics_.size(); ++nic) {
    const PluggedNic& plugged = nics_[nic];
    if (plugged.place == no_switch || !usual[plugged.place] || *usual[plugged.place] == plugged.rail)
      continue;
    findings_.add("rail-on-another-leaf", [&] {
      return fmt::format("{} is of rail {} and plugged into {}, whose other NICs are of rail {}",
                         nic_name(nic), plugged.rail, name(plugged.place), *usual[plugged.place]);
    });
  }
}

void NetworkReview::review_uplinks() {
  Peers<std::uint64_t> peers;
  const auto counts = [&](std::uint32_t number) {
    return network_.switches[number].tier == VertexKind::leaf && (nics_at_[number] > 0 || up_[number] > 0);
  };
  for (std::uint32_t number = 0; number < up_.size(); ++number)
    if (counts(number)) peers.add(up_[number]);
  const auto usual = peers.usual(2);
  if (!usual) return;
  for (std::uint32_t number = 0; number < up_.size(); ++number) {
    if (!counts(number) || up_[number] >= *usual) continue;
    findings_.add("leaf-short-of-up-links", [&] {
      return fmt::format("{} has {} wires up, most leaves {}", name(number), up_[number], *usual);
    });
  }
}

void NetworkReview::review_switches() {
  for (std::uint32_t number = 0; number < up_.size(); ++number) {
    if (up_[number] + down_[number] + nics_at_[number] > 0) continue;
    findings_.add("switch-not-connected",
                  [&] { return fmt::format("nothing is plugged into {}", name(number)); });
  }
}

/// Parts are told from the largest to the smallest, at most eight of them.
void NetworkReview::review_parts() {
  std::vector<Arc> arcs;
  for (const NetworkCable& cable : network_.cables) arcs.push_back({cable.low, cable.high});
  const std::vector<std::uint32_t> part =
      components(static_cast<std::uint32_t>(network_.switches.size()), arcs);
  std::map<std::uint32_t, std::pair<std::uint64_t, std::uint32_t>> parts;  // NICs, a switch with NICs
  for (std::uint32_t number = 0; number < part.size(); ++number) {
    if (nics_at_[number] == 0) continue;
    const auto found = parts.emplace(part[number], std::pair(0, number)).first;
    found->second.first += nics_at_[number];
  }
  if (parts.size() < 2) return;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
  for (const auto& [number, each] : parts) sorted.push_back(each);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, sorted.size()); ++i) {
    text += fmt::format("{}{} NICs around {}", i == 0 ? "" : ", ", sorted[i].first, name(sorted[i].second));
  }
  if (sorted.size() > most) text += fmt::format(", and {} more", sorted.size() - most);
  findings_.add("network-in-parts", [&] {
    return fmt::format("the network falls into {} parts that reach each other through hosts at best: {}",
                       sorted.size(), text);
  });
}

void NetworkReview::review_cables() {
  using Tiers = std::pair<VertexKind, VertexKind>;
  const auto tiers = [&](const NetworkCable& cable) {
    return Tiers{network_.switches[cable.low].tier, network_.switches[cable.high].tier};
  };
  std::map<Tiers, Peers<Bandwidth>> peers;
  std::uint64_t unknown = 0;
  for (const NetworkCable& cable : network_.cables) {
    if (cable.wire == Bandwidth{0}) unknown += cable.wires;
    if (cable.wire > Bandwidth{0}) peers[tiers(cable)].add(cable.wire, cable.wires);
  }
  std::map<Tiers, std::optional<Bandwidth>> usual;
  for (const auto& [ends, counts] : peers) usual[ends] = counts.usual(3);
  for (const NetworkCable& cable : network_.cables) {
    if (cable.wire == Bandwidth{0}) continue;
    const std::optional<Bandwidth>& most = usual[tiers(cable)];
    if (!most || *most == cable.wire) continue;
    findings_.add("odd-link-rate", [&] {
      return fmt::format("{} cables between {} and {} run at {}, most such cables at {}", cable.wires,
                         name(cable.low), name(cable.high), rate_text(cable.wire), rate_text(*most));
    });
  }
  if (unknown == 0) return;
  findings_.add("rate-unknown",
                [&] { return fmt::format("the rate of {} cables between switches is not known", unknown); });
}

}  // namespace

void find_in_network(const Topology& topology, FindingList& findings) {
  NetworkReview(topology, findings).review();
}

}  // namespace isthmus

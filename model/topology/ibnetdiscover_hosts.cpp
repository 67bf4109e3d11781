#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "model/topology/ibnetdiscover_parts.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_adapters_of_host = 256;

struct AdapterName {
  std::string host;
  std::uint64_t number = 0;
};

/// "h07 HCA-6" is adapter 5 of h07, as "h07 mlx5_5" is: HCA-<n> counts from one.
std::optional<AdapterName> parse_adapter_name(std::string_view name) {
  const std::size_t blank = name.find_last_of(" \t");
  if (blank == std::string_view::npos) return std::nullopt;
  const std::string_view host = trimmed(name.substr(0, blank)), adapter = name.substr(blank + 1);
  const std::size_t stem = adapter.find_last_not_of("0123456789") + 1;
  const auto number = whole_number(adapter.substr(stem), 10, 9999);
  const bool is_default = host.starts_with("localhost") || host.starts_with("(none)");
  if (!number || stem == 0 || host.empty() || is_default) return std::nullopt;
  const bool from_one = adapter.starts_with("HCA-") && *number > 0;
  return AdapterName{std::string(host), from_one ? *number - 1 : *number};
}

/// An adapter of a host, with its number where the name says one.
struct Member {
  std::uint32_t device = 0;
  std::optional<std::uint64_t> number;
};

struct Group {
  std::string name;
  std::vector<Member> members;
};

using Slot = std::pair<std::uint64_t, std::uint32_t>;  // adapter number, port

class HostFinder {
 public:
  HostFinder(const IbListing& listing, Findings& findings)
      : listing_(listing), findings_(findings), nics_of_(listing.devices.size()) {}

  std::vector<IbHost> find() {
    collect_nics();
    const std::vector<Group> groups = make_groups();
    find_slots(groups);
    vote(groups);
    std::vector<IbHost> hosts;
    for (const Group& group : groups) hosts.push_back(host_of(group));
    report_short(groups);
    return hosts;
  }

 private:
  void collect_nics();
  std::vector<Group> make_groups();
  void find_slots(const std::vector<Group>& groups);
  void vote(const std::vector<Group>& groups);
  IbHost host_of(const Group& group) const;
  void report_short(const std::vector<Group>& groups);
  std::optional<std::uint32_t> rail_of(const Member& member, const IbNic& nic) const;

  const IbListing& listing_;
  Findings& findings_;
  std::vector<std::vector<IbNic>> nics_of_;  // by device
  std::map<Slot, std::uint32_t> rail_of_slot_;
  std::map<std::uint32_t, std::map<std::uint32_t, std::size_t>> votes_;  // by switch: rail, adapters
};

void HostFinder::collect_nics() {
  std::size_t back_to_back = 0, aggregation = 0;
  const auto is_host = [&](IbPort end) {
    const IbDevice& device = listing_.devices[end.device];
    return device.kind == IbKind::adapter && !is_aggregation(device);
  };
  for (const IbLink& link : listing_.links) {
    back_to_back += is_host(link.a) && is_host(link.b) ? 1U : 0U;
    for (const auto& [end, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
      if (!is_host(end)) continue;
      IbNic nic{end.device, end.port, std::nullopt, link.rate};
      if (listing_.devices[far.device].kind == IbKind::network_switch) nic.at = far.device;
      nics_of_[end.device].push_back(nic);
    }
  }
  std::vector<std::string> unlinked;
  for (std::uint32_t i = 0; i < listing_.devices.size(); ++i) {
    std::sort(nics_of_[i].begin(), nics_of_[i].end(),
              [](const IbNic& a, const IbNic& b) { return a.port < b.port; });
    aggregation += is_aggregation(listing_.devices[i]) ? 1U : 0U;
    if (is_host({i, 0}) && nics_of_[i].empty()) unlinked.push_back(display_name(listing_.devices[i]));
  }
  if (aggregation > 0) {
    findings_.add("aggregation-nodes",
                  fmt::format("{} adapters are aggregation nodes inside switches, no hosts", aggregation));
  }
  if (!unlinked.empty())
    findings_.add("adapter-without-link", fmt::format("{} have no link and are left out", listed(unlinked)));
  if (back_to_back > 0)
    findings_.add("adapters-back-to-back",
                  fmt::format("{} links join two adapters, no switch", back_to_back));
}

std::vector<Group> HostFinder::make_groups() {
  std::map<std::string, std::vector<Member>> by_name;
  std::vector<Group> groups, alone;
  std::size_t unnamed = 0;
  for (std::uint32_t i = 0; i < listing_.devices.size(); ++i) {
    if (nics_of_[i].empty()) continue;
    if (auto name = parse_adapter_name(listing_.devices[i].name)) {
      by_name[name->host].push_back({i, name->number});
    } else {
      alone.push_back({display_name(listing_.devices[i]), {{i, std::nullopt}}});
      ++unnamed;
    }
  }
  for (auto& [name, members] : by_name) {
    std::sort(members.begin(), members.end(),
              [](const Member& a, const Member& b) { return a.number < b.number; });
    const auto same = [](const Member& a, const Member& b) { return a.number == b.number; };
    const bool distinct = std::adjacent_find(members.begin(), members.end(), same) == members.end();
    if (distinct && members.size() <= max_adapters_of_host) {
      groups.push_back({name, members});
      continue;
    }
    findings_.add("host-name-ambiguous", fmt::format("{} adapters are named after host \"{}\", some with the "
                                                     "same number: each is read as a host of its own",
                                                     members.size(), name));
    for (const Member& member : members)
      alone.push_back({display_name(listing_.devices[member.device]), {{member.device, std::nullopt}}});
  }
  if (unnamed > 0) {
    findings_.add(
        "adapters-without-host",
        fmt::format("{} adapters do not say which host they are in (unconfigured, or a host without "
                    "a name): each is read as a host of its own, on the rail of its leaf",
                    unnamed));
  }
  std::sort(groups.begin(), groups.end(),
            [](const Group& a, const Group& b) { return natural_less(a.name, b.name); });
  groups.insert(groups.end(), alone.begin(), alone.end());
  return groups;
}

/// The numbers that most hosts have, in order, are the rails.
void HostFinder::find_slots(const std::vector<Group>& groups) {
  std::map<std::vector<Slot>, std::size_t> hosts_with;
  for (const Group& group : groups) {
    std::vector<Slot> slots;
    for (const Member& member : group.members) {
      if (!member.number) continue;
      for (const IbNic& nic : nics_of_[member.device]) slots.emplace_back(*member.number, nic.port);
    }
    if (!slots.empty()) ++hosts_with[slots];
  }
  const auto best = std::max_element(hosts_with.begin(), hosts_with.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second, a.first.size()) < std::pair(b.second, b.first.size());
  });
  if (best == hosts_with.end()) return;
  for (const Slot& slot : best->first)
    rail_of_slot_.emplace(slot, static_cast<std::uint32_t>(rail_of_slot_.size()));
}

std::optional<std::uint32_t> HostFinder::rail_of(const Member& member, const IbNic& nic) const {
  if (!member.number) return std::nullopt;
  const auto rail = rail_of_slot_.find({*member.number, nic.port});
  return rail == rail_of_slot_.end() ? std::nullopt : std::optional(rail->second);
}

void HostFinder::vote(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    for (const Member& member : group.members) {
      for (const IbNic& nic : nics_of_[member.device]) {
        const auto rail = rail_of(member, nic);
        if (rail && nic.at) ++votes_[*nic.at][*rail];
      }
    }
  }
}

IbHost HostFinder::host_of(const Group& group) const {
  IbHost host{group.name, {}};
  for (std::uint32_t card = 0; card < group.members.size(); ++card) {
    for (IbNic nic : nics_of_[group.members[card].device]) {
      nic.card = card;
      nic.rail = card;
      const auto rail = rail_of(group.members[card], nic);
      const auto votes = nic.at ? votes_.find(*nic.at) : votes_.end();
      if (rail) {
        nic.rail = *rail;
      } else if (votes != votes_.end()) {
        const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
        nic.rail = std::max_element(votes->second.begin(), votes->second.end(), fewer)->first;
      }
      host.nics.push_back(nic);
    }
  }
  return host;
}

void HostFinder::report_short(const std::vector<Group>& groups) {
  std::vector<std::size_t> sizes;
  for (const Group& group : groups)
    if (group.members.front().number) sizes.push_back(group.members.size());
  if (sizes.empty()) return;
  const std::size_t usual = most_common(sizes);
  std::vector<std::string> fewer;
  for (const Group& group : groups)
    if (group.members.front().number && group.members.size() < usual) fewer.push_back(group.name);
  if (fewer.empty()) return;
  findings_.add("host-short-of-adapters",
                fmt::format("{} hosts have fewer adapters with their name than the usual {}: {}",
                            fewer.size(), usual, listed(fewer, 6)));
}

}  // namespace

std::string display_name(const IbDevice& device) {
  std::string_view name = device.name;
  constexpr std::string_view before = "MF0;";
  const std::size_t colon = name.rfind(':');
  if (name.starts_with(before) && colon != std::string_view::npos)
    name = name.substr(before.size(), colon - before.size());
  return name.empty() ? fmt::format("{:016x}", device.guid) : std::string(name);
}

std::vector<IbHost> find_hosts(const IbListing& listing, Findings& findings) {
  return HostFinder(listing, findings).find();
}

}  // namespace isthmus

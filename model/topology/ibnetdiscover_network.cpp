#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/ibnetdiscover_parts.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t usual_lanes = 4;

bool is_switch(const IbListing& listing, IbPort end) {
  return listing.devices[end.device].kind == IbKind::network_switch;
}

/// Links of each device: to hosts, and to other switches.
struct Counts {
  std::vector<std::size_t> hosts, switches;
};

Counts count_links(const IbListing& listing) {
  Counts counts{std::vector<std::size_t>(listing.devices.size()),
                std::vector<std::size_t>(listing.devices.size())};
  for (const IbLink& link : listing.links) {
    for (const auto& [end, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
      const IbDevice& device = listing.devices[far.device];
      if (device.kind == IbKind::network_switch) ++counts.switches[end.device];
      if (device.kind == IbKind::adapter && !is_aggregation(device)) ++counts.hosts[end.device];
    }
  }
  return counts;
}

/// Spines may carry a host or two, such as the fabric's manager. A switch joined to leaves is no leaf itself
/// where its links to switches outnumber those to hosts by more than four to one.
std::vector<bool> find_leaves(const IbListing& listing, Findings& findings) {
  const Counts counts = count_links(listing);
  std::vector<bool> mostly_up(listing.devices.size()), below(listing.devices.size());
  std::vector<bool> leaves(listing.devices.size());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    leaves[i] = listing.devices[i].kind == IbKind::network_switch && counts.hosts[i] > 0;
    mostly_up[i] = leaves[i] && counts.hosts[i] * 4 < counts.switches[i];
  }
  for (const IbLink& link : listing.links) {
    for (const auto& [end, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
      if (leaves[far.device] && !mostly_up[far.device]) below[end.device] = true;
  }
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!mostly_up[i] || !below[i]) continue;
    leaves[i] = false;
    findings.add("hosts-on-spine",
                 fmt::format("switch {} has {} links to hosts and {} to switches: read as a "
                             "spine",
                             display_name(listing.devices[i]), counts.hosts[i], counts.switches[i]));
  }
  return leaves;
}

/// Steps from the nearest leaf, over switches.
std::vector<std::size_t> steps_from_leaves(const IbListing& listing, const std::vector<bool>& leaves) {
  std::vector<std::vector<std::uint32_t>> neighbours(listing.devices.size());
  for (const IbLink& link : listing.links) {
    if (!is_switch(listing, link.a) || !is_switch(listing, link.b)) continue;
    neighbours[link.a.device].push_back(link.b.device);
    neighbours[link.b.device].push_back(link.a.device);
  }
  const std::size_t far = listing.devices.size();
  std::vector<std::size_t> steps(listing.devices.size(), far);
  std::vector<std::uint32_t> order;
  for (std::uint32_t i = 0; i < leaves.size(); ++i) {
    if (!leaves[i]) continue;
    steps[i] = 0;
    order.push_back(i);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    for (const std::uint32_t next : neighbours[order[at]]) {
      if (steps[next] != far) continue;
      steps[next] = steps[order[at]] + 1;
      order.push_back(next);
    }
  }
  return steps;
}

/// The numbers in a name, with where they stand.
struct NumberedName {
  std::vector<std::string> numbers;
  std::vector<std::size_t> positions;
};

NumberedName numbers_in(const std::string& name) {
  constexpr std::string_view digits = "0123456789";
  NumberedName result;
  for (std::size_t at = name.find_first_of(digits); at != std::string::npos;
       at = name.find_first_of(digits, at)) {
    const std::size_t end = std::min(name.find_first_not_of(digits, at), name.size());
    result.positions.push_back(at);
    result.numbers.push_back(name.substr(at, end - at));
    at = end;
  }
  return result;
}

using Place = std::vector<std::string>;  // the numbers that differ between leaves

/// Combinations of the numbers in the names of leaves that no leaf has, where nearly all others do.
void report_missing_names(const std::vector<std::string>& leaves, Findings& findings) {
  std::vector<NumberedName> names;
  for (const std::string& leaf : leaves) names.push_back(numbers_in(leaf));
  const std::size_t fields = names.empty() ? 0 : names.front().numbers.size();
  for (const NumberedName& name : names)
    if (name.numbers.size() != fields) return;
  std::vector<std::size_t> varying;
  std::vector<std::set<std::string>> values;
  std::size_t combinations = 1;
  for (std::size_t field = 0; field < fields; ++field) {
    std::set<std::string> seen;
    for (const NumberedName& name : names) seen.insert(name.numbers[field]);
    if (seen.size() < 2) continue;
    combinations *= seen.size();
    if (combinations > 2 * leaves.size()) return;
    varying.push_back(field);
    values.push_back(std::move(seen));
  }
  std::set<Place> present;
  for (const NumberedName& name : names) {
    Place place;
    for (const std::size_t field : varying) place.push_back(name.numbers[field]);
    present.insert(place);
  }
  const std::size_t missing = combinations - present.size();
  if (varying.size() < 2 || missing == 0 || missing * 4 > leaves.size()) return;
  for (std::size_t number = 0; number < combinations; ++number) {
    Place place;
    std::size_t rest = number;
    for (const std::set<std::string>& each : values) {
      place.push_back(*std::next(each.begin(), static_cast<std::ptrdiff_t>(rest % each.size())));
      rest /= each.size();
    }
    if (present.contains(place)) continue;
    findings.add("leaf-missing",
                 fmt::format("no leaf is numbered {}, though {} of the {} combinations of such "
                             "numbers name one (such as {})",
                             fmt::join(place, "-"), present.size(), combinations, leaves.front()));
  }
}

/// Ports below the highest used one that no spine uses, though all others are used by most spines.
void report_free_ports(const IbListing& listing, const IbTiers& tiers, Findings& findings) {
  std::map<std::uint32_t, std::set<std::uint32_t>> spines_at;  // by port
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> bundles;
  std::size_t spines = 0;
  for (const VertexKind tier : tiers.of_device) spines += tier == VertexKind::spine ? 1U : 0U;
  for (const IbLink& link : listing.links) {
    for (const auto& [end, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}}) {
      if (tiers.of(end) != VertexKind::spine || tiers.of(far) != VertexKind::leaf) continue;
      spines_at[end.port].insert(end.device);
      ++bundles[{end.device, far.device}];
    }
  }
  if (spines < 2 || spines_at.empty()) return;
  std::vector<std::size_t> sizes;
  for (const auto& [pair, size] : bundles) sizes.push_back(size);
  const std::size_t usual = most_common(sizes);
  std::vector<std::string> free;
  for (std::uint32_t port = 1; port < spines_at.rbegin()->first; ++port)
    if (!spines_at.contains(port)) free.push_back(fmt::format("{}", port));
  if (free.empty() || free.size() * 4 > spines_at.size()) return;
  findings.add("spine-ports-free",
               fmt::format("ports {} are free on all {} spines, between ports that lead to "
                           "leaves; with {} links between a leaf and a spine as usual, that "
                           "is room for {} more",
                           listed(free), spines, usual, free.size() / usual));
}

void report_up_links(const IbListing& listing, const IbTiers& tiers, const std::vector<std::uint32_t>& leaves,
                     Findings& findings) {
  std::vector<std::size_t> up(listing.devices.size());
  for (const IbLink& link : listing.links) {
    for (const auto& [end, far] : {std::pair{link.a, link.b}, std::pair{link.b, link.a}})
      if (tiers.of(end) == VertexKind::leaf && tiers.of(far) > VertexKind::leaf) ++up[end.device];
  }
  std::vector<std::size_t> of_leaves;
  for (const std::uint32_t leaf : leaves) of_leaves.push_back(up[leaf]);
  const std::size_t usual = most_common(of_leaves);
  for (const std::uint32_t leaf : leaves) {
    if (up[leaf] >= usual) continue;
    findings.add("leaf-short-of-up-links", fmt::format("leaf {} has {} up-links, most have {}",
                                                       display_name(listing.devices[leaf]), up[leaf], usual));
  }
}

void report_links(const IbListing& listing, const IbTiers& tiers, Findings& findings) {
  std::size_t within = 0, unrated = 0, routers = 0;
  for (const IbLink& link : listing.links) {
    const IbDevice &a = listing.devices[link.a.device], &b = listing.devices[link.b.device];
    const VertexKind tier = tiers.of(link.a);
    within += tier >= VertexKind::leaf && tier == tiers.of(link.b) ? 1U : 0U;
    unrated += link.lanes == 0 ? 1U : 0U;
    routers += a.kind == IbKind::router || b.kind == IbKind::router ? 1U : 0U;
    if (link.lanes == 0 || link.lanes >= usual_lanes) continue;
    findings.add("link-of-few-lanes", fmt::format("{} port {} to {} port {} (line {}) runs {} of {} lanes: "
                                                  "degraded, or a split cable",
                                                  display_name(a), link.a.port, display_name(b), link.b.port,
                                                  link.line, link.lanes, usual_lanes));
  }
  if (within > 0) {
    findings.add("links-within-tier", fmt::format("{} links join switches of the same tier: left out, since "
                                                  "routes go up and down",
                                                  within));
  }
  if (unrated > 0)
    findings.add("links-without-rate", fmt::format("{} links have no rate in the file", unrated));
  if (routers > 0) findings.add("routers", fmt::format("{} links lead to routers: left out", routers));
}

}  // namespace

IbTiers find_tiers(const IbListing& listing, const std::string& file, Findings& findings) {
  const std::vector<bool> leaves = find_leaves(listing, findings);
  if (std::find(leaves.begin(), leaves.end(), true) == leaves.end())
    throw InputError({file, 0, ""}, "no switch with a link to a host",
                     "switches and the adapters below them");
  const std::vector<std::size_t> steps = steps_from_leaves(listing, leaves);
  IbTiers tiers{std::vector<VertexKind>(listing.devices.size(), VertexKind::nic)};
  std::vector<std::string> apart;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const IbDevice& device = listing.devices[i];
    if (device.kind != IbKind::network_switch) continue;
    tiers.of_device[i] = steps[i] == 0   ? VertexKind::leaf
                         : steps[i] == 2 ? VertexKind::core
                                         : VertexKind::spine;
    if (steps[i] <= 2) continue;
    if (steps[i] < listing.devices.size()) {
      throw InputError({file, device.line, display_name(device)},
                       fmt::format("a switch {} switches away from the nearest with hosts", steps[i]),
                       "three tiers: leaves, spines, cores");
    }
    apart.push_back(display_name(device));
  }
  if (!apart.empty()) {
    findings.add("switches-apart",
                 fmt::format("{} switches are joined to no leaf ({}): kept as spines without "
                             "cables",
                             apart.size(), listed(apart, 4)));
  }
  return tiers;
}

void report_network(const IbListing& listing, const IbTiers& tiers, Findings& findings) {
  std::vector<std::uint32_t> leaves;
  for (std::uint32_t i = 0; i < tiers.of_device.size(); ++i)
    if (tiers.of_device[i] == VertexKind::leaf) leaves.push_back(i);
  std::vector<std::string> names;
  for (const std::uint32_t leaf : leaves) names.push_back(display_name(listing.devices[leaf]));
  report_missing_names(names, findings);
  report_free_ports(listing, tiers, findings);
  report_up_links(listing, tiers, leaves, findings);
  report_links(listing, tiers, findings);
}

}  // namespace isthmus

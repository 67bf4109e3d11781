#pragma once
// Internal to the reader of `ibnetdiscover`: what its devices are. A switch with host links is a *leaf*; one
// joined to leaves and without hosts a *spine*, and one joined to spines alone a *core*. Adapters make up a
// host where their names agree before the last word, which ends in distinct numbers ("h07 mlx5_0", "h07
// mlx5_3"); else each is a host of its own. Rails are the positions of those numbers on most hosts; an
// adapter without a number is on the rail of its leaf's other adapters.
// Invariants: in-switch aggregation is no host; every adapter with a link is in exactly one host; hosts are
// in natural order of names, those without a name last.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/topology/ibnetdiscover_listing.hpp"

namespace isthmus {

/// Tier per device; VertexKind::nic for what is no switch.
struct IbTiers {
  std::vector<VertexKind> of_device;
  VertexKind of(IbPort end) const { return of_device[end.device]; }
};
/// Raises InputError where no switch has hosts, or one is more than two switches away from all that have.
IbTiers find_tiers(const IbListing& listing, const std::string& file, Findings& findings);

struct IbNic {
  std::uint32_t adapter = 0, port = 0;  // device and its port
  std::optional<std::uint32_t> at;      // the switch, a device
  Bandwidth rate;
  std::uint32_t rail = 0;
  std::uint32_t card = 0;  // number of its adapter on the host
};

struct IbHost {
  std::string name;
  std::vector<IbNic> nics;
};
std::vector<IbHost> find_hosts(const IbListing& listing, Findings& findings);

/// "IBLEAF-03-01" of "MF0;IBLEAF-03-01:MQM9701/U1"; any other name as it is; the GUID for an empty one.
std::string display_name(const IbDevice& device);

/// What looks wrong in the network: leaves short of up-links, places where a leaf is missing, links of few
/// lanes or within a tier. From the graph alone, by comparison with most of it.
void report_network(const IbListing& listing, const IbTiers& tiers, Findings& findings);

}  // namespace isthmus

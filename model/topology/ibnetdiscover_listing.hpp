#pragma once
// Internal to the reader of `ibnetdiscover`: its text as devices and links. A device is known by kind and
// GUID, never by its name. A link that both ends list is one link; where one end has no section (the file was
// cut) one listing is enough.
// Invariants: the ends of all links are different ports; `rate` is the lower where the two listings differ.
// A port joined to two others is InputError. Rates per lane in Gbit/s of data: SDR 2, DDR 4, QDR 8, FDR10 10,
// FDR 13.64, EDR 25, HDR 50, NDR 100, XDR 200 (IBTA's speeds less their line codes).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/topology/topology_text.hpp"

namespace isthmus {

enum class IbKind : std::uint8_t { network_switch, adapter, router };

struct IbDevice {
  IbKind kind = IbKind::adapter;
  std::uint64_t guid = 0;
  std::string name;  // free text
  int line = 0;      // of its section; 0 without
};

struct IbPort {
  std::uint32_t device = 0;  // index into IbListing::devices
  std::uint32_t port = 0;
  friend bool operator==(const IbPort&, const IbPort&) = default;
};

struct IbLink {
  IbPort a, b;  // as first listed
  Bandwidth rate;
  std::uint32_t lanes = 0;  // 0: the file does not say
  int line = 0;
  bool from_b = false;  // listed from the other side as well
};

struct IbListing {
  std::vector<IbDevice> devices;  // in the order of their first mention
  std::vector<IbLink> links;
};

inline constexpr std::uint32_t max_ib_ports = 254;  // InfiniBand's own

/// In-switch aggregation shows as an adapter; it is no host.
bool is_aggregation(const IbDevice& device);

/// Raises InputError with file, line and the device.
IbListing read_ib_listing(std::string_view text, const std::string& file, Findings& findings);

}  // namespace isthmus

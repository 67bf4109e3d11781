// Rates inside one type of block: unlike those of their peers, too small for the NIC behind, not known.

#include <array>
#include <set>
#include <tuple>

#include "model/topology/finding_list.hpp"

namespace isthmus {
namespace {

/// Wires of one kind between vertices of the same two kinds are peers.
using PeerKind = std::tuple<WireKind, VertexKind, VertexKind>;

PeerKind peer_kind(const Block& block, const BlockWire& wire) {
  const VertexKind a = block.vertices[wire.from].kind, b = block.vertices[wire.to].kind;
  return {wire.kind, std::min(a, b), std::max(a, b)};
}

Bandwidth of_one(const BlockWire& wire) { return {wire.rate.value / wire.wires}; }

void find_odd_wires(const BlockFindings& where, FindingList& findings) {
  std::map<PeerKind, Peers<Bandwidth>> peers;
  for (const BlockWire& wire : where.block.wires)
    if (wire.rate > Bandwidth{0}) peers[peer_kind(where.block, wire)].add(of_one(wire));
  std::map<PeerKind, std::optional<Bandwidth>> usual;
  for (const auto& [kind, counts] : peers) usual[kind] = counts.usual(3);
  std::set<std::tuple<std::uint32_t, std::uint32_t, WireKind, Bandwidth>> told;
  for (const BlockWire& wire : where.block.wires) {
    if (wire.rate == Bandwidth{0}) continue;
    const std::optional<Bandwidth>& most = usual[peer_kind(where.block, wire)];
    if (!most || *most == of_one(wire)) continue;
    const auto [low, high] = std::minmax(wire.from, wire.to);
    if (!told.emplace(low, high, wire.kind, of_one(wire)).second) continue;
    // Both ends in the order of their names, so that the order of vertices does not show.
    std::string a = where.name(wire.from), b = where.name(wire.to);
    if (b < a) std::swap(a, b);
    findings.add("odd-link-rate", [&] {
      return fmt::format("{} between {} and {} runs at {} per wire, most such wires at {}{}",
                         display_name(wire.kind), a, b, rate_text(of_one(wire)), rate_text(*most),
                         where.elsewhere());
    });
  }
}

void find_slow_slots(const BlockFindings& where, FindingList& findings) {
  std::vector<std::optional<Bandwidth>> slots(where.block.vertices.size(), Bandwidth{});
  for (const BlockWire& wire : where.block.wires) {
    if (wire.kind != WireKind::pcie) continue;
    std::optional<Bandwidth>& slot = slots[wire.from];
    // What NCCL plans with is no slot's rate: it plans a Gen5 slot below a 400 Gbit/s port.
    if (wire.rate == Bandwidth{0} || wire.evidence == Evidence::nccl) slot.reset();
    if (slot) *slot += wire.rate;
  }
  for (const BlockNic& nic : where.block.nics) {
    const std::optional<Bandwidth>& slot = slots[nic.vertex];
    if (!slot || *slot == Bandwidth{0} || *slot >= nic.rate) continue;
    findings.add("nic-behind-slower-slot", [&] {
      return fmt::format("{} runs at {}, its PCIe slot at {}{}", where.name(nic.vertex), rate_text(nic.rate),
                         rate_text(*slot), where.elsewhere());
    });
  }
}

void find_unknown(const BlockFindings& where, FindingList& findings) {
  std::array<std::uint64_t, 4> unknown{};  // both ways
  for (const BlockWire& wire : where.block.wires)
    if (wire.rate == Bandwidth{0}) unknown.at(static_cast<std::size_t>(wire.kind)) += wire.wires;
  const auto tell = [&](std::uint64_t count, std::string_view what) {
    if (count == 0) return;
    findings.add("rate-unknown", [&] {
      return fmt::format("the rate of {} {} in block {} is not known{}", count, what, where.place.block,
                         where.elsewhere());
    });
  };
  for (std::size_t kind = 0; kind < unknown.size(); ++kind) {
    tell((unknown.at(kind) + 1) / 2, fmt::format("{} wires", display_name(static_cast<WireKind>(kind))));
  }
  std::uint64_t ports = 0;
  for (const BlockNic& nic : where.block.nics)
    if (nic.rate == Bandwidth{0}) ++ports;
  tell(ports, "NICs");
}

}  // namespace

void find_in_rates(const BlockFindings& where, FindingList& findings) {
  find_odd_wires(where, findings);
  find_slow_slots(where, findings);
  find_unknown(where, findings);
}

}  // namespace isthmus

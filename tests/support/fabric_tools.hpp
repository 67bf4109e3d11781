#pragma once
// What tests of the fabric ask of it in short words, and judges that know nothing of how routes are found:
// maximum flow (push-relabel, Boost.Graph) and searches over the expanded graph.
// Equations: rates in GB/s per direction; a climb from switch to switch is counted in switches, both ends
// included, and goes up and then down, as in any Clos fabric.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/fabric.hpp"
#include "model/fabric_graph.hpp"

namespace isthmus {

FabricSpec preset_spec(const std::string& preset, int hosts, std::vector<FabricEdit> edits = {});
Fabric preset_fabric(const std::string& preset, int hosts, std::vector<FabricEdit> edits = {});

std::vector<std::uint32_t> vertices_of(const FabricGraph& graph, VertexKind kind);
/// Wires from vertices of one kind to those of another.
std::uint32_t wires_between(const FabricGraph& graph, VertexKind from, VertexKind to);

using EdgeCapacity = std::function<std::int64_t(const FabricEdge&)>;
std::int64_t maximum_flow(const FabricGraph& graph, const EdgeCapacity& capacity,
                          const std::vector<std::uint32_t>& sources, const std::vector<std::uint32_t>& sinks);
/// GB/s that the NICs of the first half of the hosts (or of the even ones) can send to the others at once.
double bisection(const Fabric& fabric, bool interleaved);

/// Whether the links, taken in order, are a walk of the graph from one vertex to the other.
bool is_walk(const FabricGraph& graph, const std::vector<LinkId>& route, std::uint32_t from,
             std::uint32_t to);
/// The switch that a link's NIC is cabled to; nullopt when the link reaches none.
std::optional<std::uint32_t> switch_beside(const FabricGraph& graph, LinkId link);
/// The fewest switches on a way up and down again; nullopt when two switches have no ancestor in common.
std::optional<int> fewest_switches(const FabricGraph& graph, std::uint32_t from, std::uint32_t to);

double rate_of(const Fabric& fabric, std::optional<LinkId> link);
double nvlink_rate(const Fabric& fabric, std::uint32_t gpu);  // out; asserts that into is equal
double nic_rate(const Fabric& fabric, std::uint32_t gpu);     // out; asserts that into is equal
/// GB/s of a host's network ports, each counted once however many GPUs share it.
double network_rate(const Fabric& fabric, std::uint32_t host);
/// The link of this name, which must be there.
double rate_named(const Fabric& fabric, const std::string& name);
std::map<std::string, Bandwidth> rates_by_name(const Fabric& fabric);
std::vector<std::string> names_along(const Fabric& fabric, std::uint32_t from, std::uint32_t to);
double least_along(const Fabric& fabric, std::uint32_t from, std::uint32_t to);

/// The message of the InputError that a call raises; "accepted" when it raises none.
std::string refusal(const std::function<void()>& call);
std::string fabric_refusal(const FabricSpec& spec);

}  // namespace isthmus

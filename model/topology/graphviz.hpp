#pragma once
// A topology as a drawing for Graphviz (dot): a cluster per block and per host inside it, switches of the
// network in one rank per tier, edges labelled with wires and rate of one wire and direction.
// Large fabrics stay readable: a type of more than max_drawn_blocks blocks is drawn once, as its first block,
// with their number; a tier of more than max_drawn_switches switches is one vertex; edges then stand for all
// cables that run between what is drawn, and their label counts them.
// Invariant: valid dot for every topology without topology_faults; equal topologies give equal texts.

#include <cstddef>
#include <string>

#include "model/topology/topology.hpp"

namespace isthmus {

inline constexpr std::size_t max_drawn_blocks = 4, max_drawn_switches = 32;

std::string to_graphviz(const Topology& topology);

}  // namespace isthmus

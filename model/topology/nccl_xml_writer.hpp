#pragma once
// A host as NCCL's system XML, for NCCL_TOPO_FILE and for other tools. What came from such a file goes back
// with its attributes; a host of a preset gets invented addresses (buses 10, 11, ... for devices and switch
// chips), 0xffff for vendors, and the words that stand for its rates.
// Invariant: read_nccl_xml gives the same host again - vertices, wires, rates, cards, rails, GPUDirect;
// this is checked before the text is returned, and whatever the format cannot say is refused with the
// reason. The network above the NICs is no part of such a file. The form is NCCL's own: no declaration, no
// line break in a tag, at most 16 attributes and 256 elements.

#include <string>

#include "model/topology/topology.hpp"

namespace isthmus {

/// Requires one block of one host; else, and for what the format cannot say, raises InputError.
std::string to_nccl_xml(const Topology& topology);

}  // namespace isthmus

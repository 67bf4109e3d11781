#pragma once
// How NCCL grades a path between two devices, best first. The kind of a path is the worst along it.
//   LOC the device itself     NVL NVLink             NVB NVLink through one other GPU
//   C2C GPU and its Grace     PIX one PCIe switch    PXB several PCIe switches
//   P2C C2C, then PCIe below the same CPU            PXN NVLink to a GPU that has the NIC
//   PHB through a CPU         SYS between CPUs       NET another host         DIS no path
// Invariant: the order of the enumerators is NCCL's order, so kinds compare as NCCL compares them.
// Source: NCCL 2.30.7, restated in docs/nccl-rules.md.

#include <cstdint>
#include <string_view>

namespace isthmus {

enum class PathKind : std::uint8_t { loc, nvl, nvb, c2c, pix, pxb, p2c, pxn, phb, sys, net, dis };

/// As NCCL prints it: "PIX".
std::string_view to_string(PathKind kind);

}  // namespace isthmus

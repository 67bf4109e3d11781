#include "model/topology/topology.hpp"

#include <array>

namespace isthmus {

std::string_view to_string(VertexKind kind) {
  constexpr std::array<std::string_view, 9> names{"gpu",  "nvswitch", "pcie-switch", "cpu",    "nic",
                                                  "leaf", "spine",    "core",        "gateway"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(Evidence evidence) {
  constexpr std::array<std::string_view, 7> names{"vendor",   "published", "derived", "nccl",
                                                  "inferred", "file",      "user"};
  return names.at(static_cast<std::size_t>(evidence));
}

std::string_view to_string(WireKind kind) {
  constexpr std::array<std::string_view, 4> names{"nvlink", "c2c", "pcie", "socket"};
  return names.at(static_cast<std::size_t>(kind));
}

}  // namespace isthmus

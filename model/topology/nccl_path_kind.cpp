#include "model/topology/nccl_path_kind.hpp"

#include <array>

namespace isthmus {

std::string_view to_string(PathKind kind) {
  constexpr std::array<std::string_view, 12> names{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                   "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
  return names.at(static_cast<std::size_t>(kind));
}

}  // namespace isthmus

#include "planner/large_arrays.hpp"

#include <bit>
#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace isthmus {

void ask_for_huge_pages([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t page = 4096;
  const auto from = std::bit_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (from + page - 1) / page * page, last = (from + bytes) / page * page;
  // Refused where the kernel has none, or has larger pages: then memory comes as it always does.
  if (first < last) ::madvise(std::bit_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace isthmus

#pragma once
// Arrays of many megabytes. The kernel hands out memory at the first touch of each page, 4 KiB at a time, and
// for a plan of a million steps that takes as long as everything else. Where it has huge pages to give to who
// asks (Linux, transparent_hugepage: madvise or always), these arrays ask; elsewhere they are plain vectors.
// Invariant: values and capacities are those of std::vector without the request; a request that is refused
// changes nothing. Arrays below `worth_asking`, twice a huge page of x86-64 and ARM, hold no whole huge page
// for sure, and do not ask. Memory in use grows by less than one huge page (2 MiB) an array.

#include <cstddef>
#include <vector>

namespace isthmus {

inline constexpr std::size_t worth_asking = std::size_t{4} << 20U;  // bytes

/// Asks for huge pages below the whole 4 KiB pages of [begin, begin + bytes), untouched as yet.
void ask_for_huge_pages(const void* begin, std::size_t bytes);

/// Like list.reserve(count).
template <class Value>
void reserve_large(std::vector<Value>& list, std::size_t count) {
  if (count <= list.capacity()) return;
  list.reserve(count);
  if (count * sizeof(Value) >= worth_asking) ask_for_huge_pages(list.data(), count * sizeof(Value));
}

/// Like std::vector<Value>(count).
template <class Value>
std::vector<Value> large_vector(std::size_t count) {
  std::vector<Value> list;
  reserve_large(list, count);
  list.resize(count);
  return list;
}

}  // namespace isthmus

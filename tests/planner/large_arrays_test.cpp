#include "planner/large_arrays.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace isthmus {
namespace {

constexpr std::size_t small_page = 4096;

RC_GTEST_PROP(LargeArrays, hold_what_plain_vectors_hold, ()) {
  const auto count = *rc::gen::inRange<std::size_t>(0, worth_asking / 2);
  std::vector<std::uint32_t> plain(count), large = large_vector<std::uint32_t>(count);
  RC_ASSERT(large == plain);
  const auto values = *rc::gen::arbitrary<std::vector<std::uint32_t>>();
  std::vector<std::uint32_t> kept = values;
  reserve_large(kept, count);
  RC_ASSERT(kept == values);
  RC_ASSERT(kept.capacity() >= std::max(count, values.size()));
  const std::uint32_t* const place = kept.data();
  for (std::size_t i = kept.size(); i < count; ++i) kept.push_back(static_cast<std::uint32_t>(i));
  RC_ASSERT(kept.data() == place);
}

#ifdef __linux__
/// The 4 KiB pages of [begin, begin + pages) for which the process has asked for huge ones, by the kernel.
std::vector<bool> asked_pages(const std::byte* begin, std::size_t pages) {
  const auto first = std::bit_cast<std::uintptr_t>(begin);
  std::vector<bool> asked(pages);
  std::ifstream smaps("/proc/self/smaps");
  std::uintptr_t from = 0, to = 0;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::uintptr_t start = 0, end = 0;
    char dash = 0;
    if (words >> std::hex >> start >> dash >> end && dash == '-') {
      from = start;
      to = end;
    }
    if (line.rfind("VmFlags:", 0) != 0 || line.find(" hg") == std::string::npos) continue;
    for (std::size_t p = 0; p < pages; ++p)
      if (first + p * small_page >= from && first + p * small_page < to) asked[p] = true;
  }
  return asked;
}

struct Unmap {
  std::size_t bytes;
  void operator()(void* begin) const { ::munmap(begin, bytes); }
};

RC_GTEST_PROP(LargeArrays, ask_for_the_whole_pages_within_and_no_others, ()) {
  if (!std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled"))
    RC_SUCCEED("a kernel without huge pages");
  constexpr std::size_t pages = 64;
  const std::unique_ptr<void, Unmap> memory(
      ::mmap(nullptr, pages * small_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
      Unmap{pages * small_page});
  const bool mapped = memory.get() != MAP_FAILED;
  RC_ASSERT(mapped);
  const auto* const begin = static_cast<const std::byte*>(memory.get());
  const auto from = *rc::gen::inRange<std::size_t>(0, pages * small_page);
  const auto bytes = *rc::gen::inRange<std::size_t>(0, pages * small_page - from + 1);
  ask_for_huge_pages(begin + from, bytes);
  const std::vector<bool> asked = asked_pages(begin, pages);
  for (std::size_t p = 0; p < pages; ++p)
    RC_ASSERT(asked[p] == (p * small_page >= from && (p + 1) * small_page <= from + bytes));
}
#endif

}  // namespace
}  // namespace isthmus

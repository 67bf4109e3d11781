// What `ibnetdiscover` prints.
#include "tests/fuzz/topology_use.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const std::string_view text = fuzz::text_of(data, size);
  recognise_topology(text);
  fuzz::read_topology(read_ibnetdiscover, text);
  return 0;
}

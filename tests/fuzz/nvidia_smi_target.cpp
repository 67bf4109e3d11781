// What `nvidia-smi topo -m` prints.
#include "tests/fuzz/topology_use.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const std::string_view text = fuzz::text_of(data, size);
  recognise_topology(text);
  fuzz::read_topology(read_nvidia_smi, text);
  return 0;
}

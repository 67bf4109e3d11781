// Manifests: a JSON list of tensors, whose names become an inventory.

#include "model/checkpoint.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const fuzz::PrivateFolder folder;
  const auto file = folder.write("manifest.json", fuzz::text_of(data, size));
  fuzz::only_input_errors([&] { fuzz::use(read_manifest(file)); });
  return 0;
}

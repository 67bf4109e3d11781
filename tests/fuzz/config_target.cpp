// config.json of HuggingFace models: all families.

#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const fuzz::PrivateFolder folder;
  const auto file = folder.write("config.json", fuzz::text_of(data, size));
  fuzz::only_input_errors([&] { fuzz::use(read_model_config(file)); });
  return 0;
}

// System configurations of NCCL M2N, without and with a model.

#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const fuzz::PrivateFolder folder;
  const auto file = folder.write("system.json", fuzz::text_of(data, size));
  fuzz::only_input_errors([&] {
    const Input input = read_input(file);
    if (input.kind != InputKind::m2n_config) return;  // the others have targets of their own
    fuzz::use(input);
    fuzz::use(read_input(file, {}, folder.write_small_model()));
  });
  return 0;
}

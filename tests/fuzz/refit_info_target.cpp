// NeMo RL's refit descriptions with local maps, and local maps in a file of their own.

#include "model/refit_info.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const fuzz::PrivateFolder folder;
  const std::string text(fuzz::text_of(data, size));
  fuzz::only_input_errors([&] {
    const Input input = read_input(folder.write("info.json", text));
    if (input.kind == InputKind::refit_info) fuzz::use(input);  // the others have targets of their own
  });
  fuzz::only_input_errors([&] {
    LocalMaps maps;
    parse_local_maps(text, "maps.json", maps);
  });
  return 0;
}

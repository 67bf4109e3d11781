// Checkpoints: the bytes are a whole safetensors file. Where they begin with 'i' and hold a line of three
// dashes, what stands before it is an index and what stands behind it its only shard, a.safetensors; both are
// read by the index and as a folder.

#include "model/checkpoint.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  constexpr std::string_view mark = "\n---\n";
  const fuzz::PrivateFolder folder;
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t cut = bytes.starts_with("i") ? bytes.find(mark) : std::string_view::npos;
  if (cut == std::string_view::npos) {
    const auto file = folder.write("model.safetensors", bytes);
    fuzz::only_input_errors([&] { fuzz::use(read_checkpoint(file)); });
    return 0;
  }
  folder.write("a.safetensors", bytes.substr(cut + mark.size()));
  const auto index = folder.write("model.safetensors.index.json", bytes.substr(1, cut - 1));
  fuzz::only_input_errors([&] { fuzz::use(read_inventory(index)); });
  fuzz::only_input_errors([&] { fuzz::use(read_checkpoint(index.parent_path())); });
  return 0;
}

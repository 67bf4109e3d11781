// safetensors: the bytes are a whole file. With a first byte of 'i', which as the length of a header would
// need a file of that many bytes in the least, the rest is "index JSON, line of three dashes, file": a
// checkpoint of one shard with its index. With 'f' it is the folder of that one file.

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

// NeMo RL recipes, without and with a model. What stands behind a line of three dashes is a second file,
// parent.yaml, which `defaults` may name; no other file of the machine may be named.

#include "model/yaml.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using namespace isthmus;

/// Whether all that `defaults` names lies in the folder itself.
bool stays_inside(std::string_view text) {
  bool inside = true;
  fuzz::only_input_errors([&] {
    const YamlDocument document(text, "recipe.yaml");
    const auto defaults = document.root().find("defaults");
    if (!defaults) return;
    inside = defaults->node().text.find('/') == std::string::npos;
    for (const YamlNode& base : defaults->node().children) inside &= base.text.find('/') == std::string::npos;
  });
  return inside;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::string_view mark = "\n---\n";
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::size_t cut = std::min(bytes.find(mark), size);
  const std::string_view recipe = bytes.substr(0, cut);
  const std::string_view parent = bytes.substr(std::min(cut + mark.size(), size));
  if (!stays_inside(recipe) || !stays_inside(parent)) return 0;
  const fuzz::PrivateFolder folder;
  const auto file = folder.write("recipe.yaml", recipe);
  folder.write("parent.yaml", parent);
  fuzz::only_input_errors([&] {
    const Input input = read_input(file);
    if (input.kind != InputKind::nemo_rl_recipe) return;  // the others have targets of their own
    fuzz::use(input);
    fuzz::use(read_input(file, {}, folder.write_small_model()));
  });
  return 0;
}

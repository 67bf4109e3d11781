// Scenarios: what is read is written and read again to the same content, then judged and resolved. The model
// that a scenario names is replaced by a small one, so that no other file is read.

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/scenario.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  fuzz::only_input_errors([&] {
    Input input;
    input.scenario = parse_scenario(std::string(fuzz::text_of(data, size)), "scenario.yaml");
    const std::string written = to_yaml(input.scenario);
    std::string refusal;
    try {
      const bool same = same_content(input.scenario, parse_scenario(written, "written.yaml"));
      ISTHMUS_ASSERT(same, "other content after writing and reading: {}", written);
    } catch (const InputError& error) {
      refusal = error.what();
    }
    ISTHMUS_ASSERT(refusal.empty(), "{}: {}", refusal, written);
    const fuzz::PrivateFolder folder;
    if (input.scenario.model) input.scenario.model->config = folder.write_small_model().string();
    fuzz::use(input);
  });
  return 0;
}

// NCCL's graph XML: whatever is read, its channels hold what the elements said, and findings can be printed.

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "model/topology/nccl_graph.hpp"
#include "tests/fuzz/target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::only_input_errors([&] {
    const NcclGraphFile file = read_nccl_graph(text, "graph.xml");
    std::size_t elements = 1;
    for (const NcclGraph& graph : file.graphs) {
      ISTHMUS_ASSERT(graph.id >= 0 && graph.id <= 4 && graph.pattern >= 0 && graph.pattern <= 6, "{} {}",
                     graph.id, graph.pattern);
      ISTHMUS_ASSERT(graph.speed_intra >= 0 && graph.speed_inter >= 0, "{}", graph.speed_intra);
      ++elements;
      for (const auto& channel : graph.channels) elements += 1 + channel.size();
    }
    ISTHMUS_ASSERT(elements <= text.size() / 4 + 1, "{} elements of {} bytes", elements, text.size());
    for (const Finding& finding : file.findings)
      ISTHMUS_ASSERT(!finding.code.empty() && first_unprintable(finding.text) == finding.text.size(), "{}",
                     finding.code);
  });
  return 0;
}

#pragma once
// What the targets of line-wise topology files do with what a reader returns.
// Invariant: no topology_faults, findings of one printable line, the same value when read again.
// No target reads files.

#include <string>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "model/topology/importers.hpp"
#include "model/topology/topology_faults.hpp"
#include "tests/fuzz/target.hpp"

namespace isthmus::fuzz {

inline void read_topology(ImportedTopology (*read)(std::string_view, const std::string&),
                          std::string_view text) {
  only_input_errors([&] {
    const ImportedTopology imported = read(text, "input");
    const auto faults = topology_faults(imported.topology);
    ISTHMUS_ASSERT(faults.empty(), "{}: {}", faults.front().where.key, faults.front().found);
    for (const Finding& finding : imported.findings) {
      ISTHMUS_ASSERT(!finding.code.empty() && !finding.text.empty(), "{}", finding.code);
      ISTHMUS_ASSERT(first_unprintable(finding.text) == finding.text.size(), "{}", finding.text);
    }
    const ImportedTopology again = read(text, "input");
    ISTHMUS_ASSERT(again.topology == imported.topology && again.findings == imported.findings, "{}", text);
  });
}

}  // namespace isthmus::fuzz

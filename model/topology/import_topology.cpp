#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/text.hpp"
#include "model/topology/importers.hpp"
#include "model/topology/topology_json.hpp"

namespace isthmus {
namespace {

[[noreturn]] void refuse_unknown(std::string_view text, const std::string& file) {
  std::string_view start = text.substr(0, 200);
  start.remove_prefix(std::min(start.find_first_not_of(" \t\r\n"), start.size()));
  start = start.substr(0, start.find('\n'));
  const std::string found = start.empty()
                                ? "an empty file"
                                : fmt::format("a text of no known format (\"{}\")", printable(start, 40));
  throw InputError({file, 0, ""}, found,
                   "NCCL's system XML (root <system>), `nvidia-smi topo -m`, `ibnetdiscover`, a log of NCCL "
                   "with a system block, or a topology in JSON");
}

}  // namespace

ImportedTopology import_topology(const std::filesystem::path& file) {
  const std::string text = read_text_file(file, max_topology_bytes);
  const std::string name = file.string();
  const std::optional<TopologyFormat> format = recognise_topology(text);
  if (!format) refuse_unknown(text, name);
  switch (*format) {
    case TopologyFormat::nccl_xml: return read_nccl_xml(text, name);
    case TopologyFormat::nvidia_smi: return read_nvidia_smi(text, name);
    case TopologyFormat::ibnetdiscover: return read_ibnetdiscover(text, name);
    case TopologyFormat::nccl_log: return read_nccl_log(text, name);
    case TopologyFormat::json: return {topology_from_json(text, name), {}};
    case TopologyFormat::nccl_graph: break;
  }
  throw InputError({name, 0, ""}, "NCCL's graph XML, which lists the rings and trees found on a machine",
                   "a file that describes the machine, such as NCCL's system XML");
}

}  // namespace isthmus

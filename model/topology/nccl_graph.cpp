#include "model/topology/nccl_graph.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "model/text.hpp"
#include "model/topology/nccl_xml_document.hpp"
#include "model/topology/nccl_xml_items.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_elements = 65'536;  // NCCL's own bound
constexpr int ring_pattern = 4, nvls_pattern = 5;
constexpr double max_speed = 1e6;  // GB/s, microseconds
constexpr std::array<std::string_view, 9> path_kinds{"LOC", "NVL", "NVB", "PIX", "PXB",
                                                     "P2C", "PXN", "PHB", "SYS"};

class Reader {
 public:
  Reader(const NcclXmlDocument& document, NcclGraphFile& result) : document_(document), result_(result) {}

  void read() {
    document_.integer(document_.root(), "version", 1, 1);
    for (const pugi::xml_node element : document_.root().children()) {
      if (element.type() != pugi::node_element) continue;
      if (std::string_view(element.name()) == "graph")
        read_graph(element);
      else
        skip(element);
    }
    judge_gpus();
    result_.findings = findings_.take();
  }

 private:
  void skip(pugi::xml_node element) {
    findings_.add("skipped-element", printable(element.name()),
                  fmt::format("not known inside {}, and left out", printable(element.parent().name())));
  }

  static std::string name_of(const NcclGraph& graph) { return fmt::format("graph {}", graph.id); }

  void read_graph(pugi::xml_node element) {
    NcclGraph graph;
    const std::optional<std::int64_t> id = document_.integer(element, "id", 0, 4);
    if (!id) document_.refuse(element, "id", "none", "a whole number from 0 to 4");
    if (!ids_.insert(*id).second)
      document_.refuse(element, "id", fmt::format("a second {}", *id), "each once");
    graph.id = static_cast<int>(*id);
    graph.pattern = static_cast<int>(document_.integer(element, "pattern", 1, 6).value_or(0));
    if (graph.pattern == 0) findings_.add("no-pattern", name_of(graph), "no pattern");
    // 2: NCCL tries both and has not decided.
    graph.cross_nic = document_.integer(element, "crossnic", 0, 2).value_or(0) != 0;
    graph.same_channels = document_.integer(element, "samechannels", 0, 1).value_or(0) != 0;
    graph.speed_intra = document_.decimal(element, "speedintra", max_speed).value_or(0);
    graph.speed_inter = document_.decimal(element, "speedinter", max_speed).value_or(0);
    graph.latency_inter = document_.decimal(element, "latencyinter", max_speed);
    graph.type_intra = read_type(element, "typeintra", graph);
    graph.type_inter = read_type(element, "typeinter", graph);
    for (const pugi::xml_node child : element.children()) {
      if (child.type() != pugi::node_element) continue;
      if (std::string_view(child.name()) == "channel")
        graph.channels.push_back(read_channel(child));
      else
        skip(child);
    }
    judge(element, graph);
    result_.graphs.push_back(std::move(graph));
  }

  std::string read_type(pugi::xml_node element, std::string_view name, const NcclGraph& graph) {
    const std::string_view kind = NcclXmlDocument::text(element, name).value_or("");
    if (std::ranges::find(path_kinds, kind) == path_kinds.end())
      findings_.add("path-kind-unknown", name_of(graph),
                    fmt::format("{} is no path kind of NCCL's graph files, which then takes LOC", name));
    return std::string(kind);
  }

  std::vector<NcclChannelStop> read_channel(pugi::xml_node element) {
    std::vector<NcclChannelStop> stops;
    for (const pugi::xml_node child : element.children()) {
      if (child.type() != pugi::node_element) continue;
      const std::string_view name = child.name();
      if (name == "gpu" || name == "net")
        stops.push_back(read_stop(child, name == "net"));
      else
        skip(child);
    }
    return stops;
  }

  NcclChannelStop read_stop(pugi::xml_node element, bool net) const {
    const std::optional<std::uint64_t> dev = document_.hexadecimal(element, "dev");
    if (!dev) document_.refuse(element, "dev", "none", "a hexadecimal number");
    constexpr std::uint64_t device_bits = 56, most = 0xFFFFFFFF;
    NcclChannelStop stop;
    stop.net = net;
    stop.host = static_cast<std::uint32_t>(*dev >> device_bits);
    const std::uint64_t device = *dev & ((std::uint64_t{1} << device_bits) - 1);
    if (device > most) document_.refuse(element, "dev", fmt::format("device {:#x}", device), "32 bits");
    stop.dev = static_cast<std::uint32_t>(device);
    stop.rank = document_.integer(element, "rank", -1, 0x7FFFFFFF);
    return stop;
  }

  void judge(pugi::xml_node element, const NcclGraph& graph) {
    const auto stated = document_.integer(element, "nchannels", 0, 0x7FFFFFFF);
    if (!stated)
      findings_.add("no-channel-count", name_of(graph), "no nchannels");
    else if (to_size(*stated) != graph.channels.size())
      findings_.add("channel-count", name_of(graph),
                    fmt::format("nchannels says {}, but {} channels follow", *stated, graph.channels.size()));
    for (std::size_t i = 0; i < graph.channels.size(); ++i) judge_channel(graph, i);
  }

  static std::tuple<std::uint32_t, std::uint32_t, std::int64_t> identity(const NcclChannelStop& stop) {
    return {stop.host, stop.dev, stop.rank.value_or(-1)};
  }

  void judge_channel(const NcclGraph& graph, std::size_t number) {
    const std::vector<NcclChannelStop>& stops = graph.channels[number];
    const std::string place = fmt::format("channel {} of {}", number, name_of(graph));
    Gpus gpus;
    std::size_t visits = 0, nets = 0;
    for (std::size_t i = 0; i < stops.size(); ++i) {
      if (!stops[i].net) {
        ++visits;
        gpus.insert(identity(stops[i]));
      } else if (++nets > 0 && i != 0 && i + 1 != stops.size()) {
        findings_.add("net-inside", place, "a net stands between GPUs; NCCL takes it at the ends");
      }
    }
    if (nets == 1 && graph.pattern == ring_pattern)
      findings_.add("net-one-sided", place, "a ring enters or leaves by a net, but not both");
    if (visits == 0) findings_.add("channel-empty", place, "visits no GPU");
    all_.insert(gpus.begin(), gpus.end());
    if (graph.pattern == nvls_pattern) {
      if (visits > 1) findings_.add("nvls-heads", place, "has more than one GPU, the head");
    } else if (gpus.size() != visits) {
      findings_.add("gpu-twice", place, "visits a GPU twice");
    }
    if (graph.pattern == ring_pattern) rings_.push_back({place, std::move(gpus)});
  }

  /// Whether every ring visits all GPUs of the file.
  void judge_gpus() {
    for (const auto& [place, gpus] : rings_)
      if (gpus.size() != all_.size())
        findings_.add("ring-incomplete", place, "leaves out GPUs that other channels visit");
  }

  using Gpus = std::set<std::tuple<std::uint32_t, std::uint32_t, std::int64_t>>;

  const NcclXmlDocument& document_;
  NcclGraphFile& result_;
  NcclFindings findings_;
  std::set<std::int64_t> ids_;
  Gpus all_;
  std::vector<std::pair<std::string, Gpus>> rings_;
};

}  // namespace

NcclGraphFile read_nccl_graph(std::string_view text, const std::string& file) {
  const NcclXmlDocument document(text, file, {"graphs", max_elements});
  NcclGraphFile result;
  Reader(document, result).read();
  return result;
}

}  // namespace isthmus

#include "model/disturbance.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include "model/fabric.hpp"
#include "model/fabric_graph.hpp"
#include "model/input_fault.hpp"
#include "model/scenario.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

using Kind = FaultSubject::Kind;

constexpr std::array<std::string_view, 5> kind_names{"nic", "gpu", "host", "leaf", "link"};
constexpr std::array<std::string_view, 3> policy_names{"stop", "retry", "reroute"};

/// Plain digits, no leading zero.
std::optional<std::uint32_t> whole_number(std::string_view text) {
  if (text.empty() || text.front() < '0' || text.front() > '9' || text.size() > 7) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::uint32_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  return number;
}

void add(std::vector<LinkId>& links, std::optional<LinkId> link) {
  if (link) links.push_back(*link);
}

/// Links whose wires end at a vertex.
void add_ends(const FabricGraph& graph, std::size_t vertex, std::vector<LinkId>& links) {
  for (const FabricEdge& edge : graph.edges) {
    if (edge.from == vertex || edge.to == vertex) links.push_back(edge.link);
  }
}

/// The vertex of a kind that has this number among its like.
std::size_t numbered_vertex(const FabricGraph& graph, VertexKind kind, std::size_t number) {
  for (std::size_t v = 0; v < graph.vertices.size(); ++v) {
    if (graph.vertices[v].kind == kind && number-- == 0) return v;
  }
  return graph.vertices.size();
}

std::size_t leaf_count(const Fabric& fabric) {
  const std::vector<NetworkSwitch>& switches = fabric.topology().network.switches;
  return to_size(std::count_if(switches.begin(), switches.end(),
                               [](const NetworkSwitch& each) { return each.tier == VertexKind::leaf; }));
}

/// Found and allowed; nullopt where the fabric has the subject.
std::optional<std::pair<std::string, std::string>> missing(const Fabric& fabric, const FaultSubject& what) {
  if (what.kind == Kind::link) {
    const std::vector<Link>& links = fabric.links();
    const auto same = [&](const Link& link) { return link.name == what.link; };
    if (std::any_of(links.begin(), links.end(), same)) return std::nullopt;
    std::vector<std::string_view> names;
    for (std::size_t l = 0; l < std::min<std::size_t>(links.size(), 4096); ++l)
      names.push_back(links[l].name);
    names = closest_first(what.link, names);
    return std::pair{fmt::format("no link '{}'", printable(what.link)),
                     fmt::format("the name of a link, such as '{}'", names.front())};
  }
  const std::size_t count = what.kind == Kind::leaf ? leaf_count(fabric) : fabric.host_count();
  if (what.number >= count) {
    const std::string_view things = what.kind == Kind::leaf ? "leaves" : "hosts";
    return std::pair{to_string(what), fmt::format("one of {} {}, from 0", count, things)};
  }
  if (what.kind != Kind::nic && what.kind != Kind::gpu) return std::nullopt;
  const std::size_t gpus = fabric.gpus_on({what.number});
  if (what.gpu >= gpus) return std::pair{to_string(what), fmt::format("one of its {} GPUs, from 0", gpus)};
  if (what.kind == Kind::gpu || fabric.nic_out(fabric.gpu_at({what.number}, what.gpu))) return std::nullopt;
  return std::pair{to_string(what) + ", a GPU without a NIC", std::string("a GPU with a NIC beside it")};
}

void judge_load(const Scenario& scenario, const Fabric& fabric, std::size_t number,
                std::vector<InputFault>& faults) {
  const BackgroundLoad& load = scenario.disturbances.background[number];
  const std::string key = fmt::format("background.{}", number);
  if (load.side != BackgroundLoad::Side::all && !scenario.model) {
    faults.push_back({scenario.at(key + ".side"), "a side beside bare tensors", "hosts and gpus", "hosts"});
  }
  std::size_t most_gpus = 0;
  for (std::uint32_t host = 0; host < fabric.host_count(); ++host) {
    most_gpus = std::max(most_gpus, fabric.gpus_on({host}));
  }
  const auto judge = [&](std::string_view list, const std::vector<int>& numbers, std::size_t count) {
    const auto wrong = std::find_if(numbers.begin(), numbers.end(),
                                    [count](int each) { return static_cast<std::size_t>(each) >= count; });
    if (wrong == numbers.end()) return;
    faults.push_back({scenario.at(fmt::format("{}.{}", key, list)), fmt::format("{}", *wrong),
                      fmt::format("0 to {}", count - 1), fmt::format("{}", count - 1)});
  };
  judge("hosts", load.hosts, fabric.host_count());
  judge("gpus", load.gpus, most_gpus);
}

}  // namespace

std::optional<FaultSubject> parse_fault_subject(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto known = std::find(kind_names.begin(), kind_names.end(), text.substr(0, colon));
  if (known == kind_names.end()) return std::nullopt;
  FaultSubject subject;
  subject.kind = static_cast<Kind>(known - kind_names.begin());
  std::string_view rest = text.substr(colon + 1);
  if (subject.kind == Kind::link) {
    subject.link = rest;
    return rest.empty() ? std::nullopt : std::optional(subject);
  }
  if (subject.kind == Kind::nic || subject.kind == Kind::gpu) {
    const std::size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return std::nullopt;
    const auto gpu = whole_number(rest.substr(dot + 1));
    if (!gpu) return std::nullopt;
    subject.gpu = *gpu;
    rest = rest.substr(0, dot);
  }
  const auto number = whole_number(rest);
  if (!number) return std::nullopt;
  subject.number = *number;
  return subject;
}

std::string to_string(const FaultSubject& subject) {
  const std::string_view kind = kind_names.at(static_cast<std::size_t>(subject.kind));
  if (subject.kind == Kind::link) return fmt::format("{}:{}", kind, subject.link);
  if (subject.kind == Kind::host || subject.kind == Kind::leaf)
    return fmt::format("{}:{}", kind, subject.number);
  return fmt::format("{}:{}.{}", kind, subject.number, subject.gpu);
}

std::string_view to_string(FailedSteps policy) { return policy_names.at(static_cast<std::size_t>(policy)); }

std::optional<FailedSteps> parse_failed_steps(std::string_view name) {
  const auto known = std::find(policy_names.begin(), policy_names.end(), name);
  if (known == policy_names.end()) return std::nullopt;
  return static_cast<FailedSteps>(known - policy_names.begin());
}

Affected affected(const Fabric& fabric, const FaultSubject& subject) {
  Affected result;
  if (subject.kind == Kind::link) {
    for (std::uint32_t l = 0; l < fabric.links().size(); ++l) {
      if (fabric.links()[l].name == subject.link) result.links.push_back({l});
    }
    return result;
  }
  if (subject.kind == Kind::leaf) {
    const FabricGraph graph = fabric.graph();
    add_ends(graph, numbered_vertex(graph, VertexKind::leaf, subject.number), result.links);
  } else {
    const bool host = subject.kind == Kind::host;
    const std::size_t first = host ? 0 : subject.gpu;
    const std::size_t end = host ? fabric.gpus_on({subject.number}) : first + 1;
    std::optional<FabricGraph> graph;
    if (subject.kind != Kind::nic) graph = fabric.graph();
    for (std::size_t local = first; local < end; ++local) {
      const GpuId gpu = fabric.gpu_at({subject.number}, local);
      if (graph) {
        add_ends(*graph, numbered_vertex(*graph, VertexKind::gpu, gpu.index()), result.links);
        result.gpus.push_back(gpu);
      }
      if (subject.kind == Kind::gpu) continue;
      add(result.links, fabric.nic_out(gpu));
      add(result.links, fabric.nic_in(gpu));
    }
  }
  std::sort(result.links.begin(), result.links.end());
  result.links.erase(std::unique(result.links.begin(), result.links.end()), result.links.end());
  return result;
}

std::vector<InputFault> disturbance_faults(const Scenario& scenario, const Fabric& fabric) {
  std::vector<InputFault> faults;
  for (std::size_t i = 0; i < scenario.disturbances.background.size(); ++i) {
    judge_load(scenario, fabric, i, faults);
  }
  for (std::size_t i = 0; i < scenario.disturbances.faults.size(); ++i) {
    const auto wrong = missing(fabric, scenario.disturbances.faults[i].what);
    if (!wrong) continue;
    const Location where = scenario.at(fmt::format("faults.{}.what", i));
    faults.push_back({where, wrong->first, wrong->second, "a part that is there"});
  }
  return faults;
}

}  // namespace isthmus

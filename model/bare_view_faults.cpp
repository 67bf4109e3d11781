// view_faults() of bare_tensors.hpp: whether the views of bare tensors tile their bases, rank by rank.

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"

namespace isthmus {
namespace {

/// One tensor's part of a base on one rank.
struct Part {
  Rank rank;
  std::size_t item;
  std::vector<std::int64_t> extents;
};

using Bases = std::map<std::string_view, std::vector<Part>>;

const std::optional<FusedView>& view_of(const TensorSpec& spec, bool source) {
  return source ? spec.source_view : spec.target_view;
}

Bases bases_of(const Scenario& scenario, bool source) {
  Bases bases;
  for (std::size_t item = 0; item < scenario.tensors.size(); ++item) {
    const TensorSpec& spec = scenario.tensors[item];
    const std::optional<FusedView>& view = view_of(spec, source);
    if (!view) continue;
    const Layout held = held_layout(source ? spec.source : spec.target);
    std::vector<Part>& parts = bases[view->base];
    for (std::size_t at = 0; at < held.mesh.size(); ++at) {
      const Region region = held.region(at);
      std::vector<std::int64_t> extents;
      for (std::size_t d = 0; d < region.dimensions; ++d)
        extents.push_back(region.end.at(d) - region.begin.at(d));
      parts.push_back({held.mesh.ranks[at], item, std::move(extents)});
    }
  }
  return bases;
}

/// Ranks whose parts are the same are judged once.
struct Group {
  std::size_t first = 0, parts = 0, ranks = 0;
};

std::vector<Group> groups_of(std::vector<Part>& parts) {
  std::stable_sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.rank < b.rank; });
  std::map<std::vector<std::int64_t>, std::size_t> known;
  std::vector<Group> groups;
  for (std::size_t first = 0; first < parts.size();) {
    std::vector<std::int64_t> content;
    std::size_t end = first;
    for (; end < parts.size() && parts[end].rank == parts[first].rank; ++end) {
      content.push_back(static_cast<std::int64_t>(parts[end].item));
      content.insert(content.end(), parts[end].extents.begin(), parts[end].extents.end());
    }
    const auto [group, is_new] = known.emplace(std::move(content), groups.size());
    if (is_new) groups.push_back({first, end - first, 0});
    ++groups[group->second].ranks;
    first = end;
  }
  return groups;
}

/// What is wrong on the first rank of a group.
std::vector<InputFault> faults_of(const Scenario& scenario, bool source, const std::vector<Part>& parts,
                                  const Group& group) {
  std::vector<LocalView> views;
  for (std::size_t i = group.first; i < group.first + group.parts; ++i) {
    const TensorSpec& spec = scenario.tensors[parts[i].item];
    views.push_back({spec.name, parts[i].extents, spec.source.dtype, *view_of(spec, source)});
  }
  const Part& first = parts[group.first];
  const std::string others = group.ranks == 1 ? "" : fmt::format(" and {} more", group.ranks - 1);
  const Location where =
      scenario.at(tensor_key(scenario, first.item, source ? "source.view" : "target.view"));
  std::vector<InputFault> found;
  for (const std::string& fault : fused_faults(views)) {
    found.push_back({where, fmt::format("on rank {}{}: {}", first.rank.value, others, fault),
                     "views that hold each index of their base exactly once",
                     "offset, block, stride and extent that do"});
  }
  return found;
}

}  // namespace

std::vector<InputFault> view_faults(const Scenario& scenario) {
  std::vector<InputFault> found;
  for (const bool source : {true, false}) {
    Bases bases = bases_of(scenario, source);
    for (auto& [base, parts] : bases) {
      for (const Group& group : groups_of(parts)) {
        for (InputFault& fault : faults_of(scenario, source, parts, group)) found.push_back(std::move(fault));
      }
    }
  }
  return found;
}

}  // namespace isthmus

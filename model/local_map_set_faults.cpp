// All local maps together: one for each rank, and in each every tensor that the description gives the rank.
#include <algorithm>

#include <fmt/format.h>

#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus::refit_info {
namespace {

/// The map of each rank of a side and the tensors it names.
struct SideMaps {
  std::vector<const LocalMap*> map_of_rank;
  std::vector<std::vector<std::uint32_t>> named;
};

void judge_missing_maps(Judged& judged, Side side, const SideMaps& maps) {
  std::vector<std::int64_t> missing;
  for (std::size_t rank = 0; rank < maps.map_of_rank.size(); ++rank) {
    if (maps.map_of_rank[rank] == nullptr) missing.push_back(static_cast<std::int64_t>(rank));
  }
  if (missing.empty()) return;
  if (side == Side::train && missing.size() == maps.map_of_rank.size()) {
    judged.notes.add("no source",
                     "no local maps of the training side are given: what it offers is not judged");
    return;
  }
  judged.faults.add(
      fmt::format("missing {}", to_string(side)),
      {judged.info.at("local_maps"),
       fmt::format("no map of {} rank{} {}", to_string(side), missing.size() == 1 ? "" : "s",
                   ranks_text(missing)),
       fmt::format("a map of each of the {} {} ranks", maps.map_of_rank.size(), to_string(side)), ""});
}

/// Tensors of the description that the maps of their ranks do not name.
void judge_missing_entries(Judged& judged, Side side, const SideMaps& maps) {
  for (std::uint32_t tensor = 0; tensor < judged.info.tensors.size(); ++tensor) {
    const Holders& holders = judged.holders(side, tensor);
    if (!holders.sound) continue;
    const std::string& name = judged.info.tensors[tensor].name;
    if (judged.tensor_of_name.at(name) != tensor) continue;
    const std::int64_t n = judged.info.stage_ranks();
    std::vector<std::int64_t> missing;
    const LocalMap* first = nullptr;
    for (const auto& [rank, position] : holders.positions) {
      const std::int64_t of_side =
          side == Side::train ? judged.stage(tensor) * n + rank.value : rank.value - n;
      const LocalMap* map = maps.map_of_rank[to_size(of_side)];
      if (map == nullptr) continue;
      const std::vector<std::uint32_t>& named = maps.named[to_size(of_side)];
      if (std::binary_search(named.begin(), named.end(), tensor)) continue;
      if (judged.layout(side, tensor).region(position).empty()) continue;
      if (first == nullptr) first = map;
      missing.push_back(of_side);
    }
    if (missing.empty()) continue;
    judged.faults.add(fmt::format("lacks {} {}", to_string(side), name),
                      {first->where,
                       fmt::format("tensor {} is not in the map of {} rank{} {}", printable(name, 200),
                                   to_string(side), missing.size() == 1 ? "" : "s", ranks_text(missing)),
                       "an entry for each tensor that the description gives the rank", ""});
  }
}

}  // namespace

void judge_local_maps(Judged& judged) {
  for (const Side side : {Side::train, Side::generate}) {
    const auto ranks = to_size(judged.side_ranks(side));
    SideMaps maps{std::vector<const LocalMap*>(ranks, nullptr),
                  std::vector<std::vector<std::uint32_t>>(ranks)};
    for (const LocalMap& map : judged.info.local.maps) {
      if (map.side != side) continue;
      const auto rank = to_size(map.rank);
      if (rank >= ranks || maps.map_of_rank[rank] != nullptr) {
        judged.faults.add(fmt::format("map {} {}", to_string(side), rank >= ranks),
                          {map.where,
                           rank >= ranks ? fmt::format("a map of {}", rank_text(side, map.rank))
                                         : fmt::format("a second map of {}", rank_text(side, map.rank)),
                           fmt::format("one map of each rank from 0 to {}", ranks - 1), ""});
        continue;
      }
      maps.map_of_rank[rank] = &map;
      maps.named[rank] = judge_local_map(judged, map);
    }
    judge_missing_maps(judged, side, maps);
    judge_missing_entries(judged, side, maps);
  }
}

}  // namespace isthmus::refit_info

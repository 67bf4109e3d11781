#include "model/rank_grid.hpp"

#include <algorithm>
#include <array>

namespace isthmus {
namespace {

constexpr std::array<std::string_view, 5> axes{"tp", "cp", "ep", "dp", "pp"};

std::vector<std::string_view> tokens(std::string_view order) {
  std::vector<std::string_view> result;
  while (true) {
    const std::size_t dash = order.find('-');
    result.push_back(order.substr(0, dash));
    if (dash == std::string_view::npos) return result;
    order.remove_prefix(dash + 1);
  }
}

}  // namespace

bool is_rank_order(std::string_view order) {
  std::vector<std::string_view> names = tokens(order);
  if (names.back() != "pp") return false;
  std::sort(names.begin(), names.end());
  const bool distinct = std::adjacent_find(names.begin(), names.end()) == names.end();
  return distinct && std::all_of(names.begin(), names.end(), [](std::string_view name) {
           return std::find(axes.begin(), axes.end(), name) != axes.end();
         });
}

std::vector<Rank> grid_ranks(std::string_view order, const RankGrid& grid, std::int64_t shards) {
  std::int64_t step = 1, tp_step = 0, cp_step = 0, ep_step = 0, dp_step = 0;
  const auto take = [&step](std::int64_t& axis_step, std::int64_t size) {
    axis_step = step;
    step *= size;
  };
  for (const std::string_view axis : tokens(order)) {
    if (axis == "tp") take(tp_step, grid.tp);
    if (axis == "cp") take(cp_step, grid.cp);
    if (axis == "ep") take(ep_step, grid.ep);
    if (axis == "dp") take(dp_step, grid.dp);
  }
  std::vector<std::int64_t> replicas;
  for (std::int64_t d = 0; d < grid.dp; ++d) {
    for (std::int64_t c = 0; c < grid.cp; ++c) replicas.push_back(c * cp_step + d * dp_step);
  }
  std::sort(replicas.begin(), replicas.end());
  std::vector<Rank> ranks;
  ranks.reserve(to_size(grid.ranks()));
  for (std::size_t outer = 0; outer < replicas.size(); outer += to_size(shards)) {
    for (std::int64_t e = 0; e < grid.ep; ++e) {
      for (std::int64_t t = 0; t < grid.tp; ++t) {
        for (std::size_t s = 0; s < to_size(shards); ++s) {
          const std::int64_t rank = replicas[outer + s] + e * ep_step + t * tp_step;
          ranks.push_back({static_cast<std::uint32_t>(rank)});
        }
      }
    }
  }
  return ranks;
}

}  // namespace isthmus

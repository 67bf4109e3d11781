#include "planner/certificate_paths.hpp"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t nowhere = 0xFFFFFFFF;

}  // namespace

PricedPaths::PricedPaths(const Fabric& fabric, const GpuList& gpus, const std::vector<LinkPrice>& prices)
    : gpus_(gpus), position_(fabric.gpu_count(), nowhere), prices_(prices) {
  std::vector<std::uint32_t> number_of_link(fabric.links().size(), nowhere);
  for (std::uint32_t i = 0; i < prices_.size(); ++i) number_of_link[prices_[i].link.index()] = i;
  for (std::uint32_t i = 0; i < gpus_.size(); ++i) position_[gpus_[i]] = i;
  std::map<Row, std::uint32_t> known;
  row_of_.assign(gpus_.size() * gpus_.size(), no_row);
  for (std::size_t from = 0; from < gpus_.size(); ++from) {
    for (std::size_t to = 0; to < gpus_.size(); ++to) {
      if (from != to && !fabric.reachable(GpuId{gpus_[from]}, GpuId{gpus_[to]})) continue;
      Row row;
      for (const LinkId link : fabric.route(GpuId{gpus_[from]}, GpuId{gpus_[to]})) {
        if (number_of_link[link.index()] != nowhere) row.push_back(number_of_link[link.index()]);
      }
      const auto [at, added] = known.try_emplace(row, static_cast<std::uint32_t>(rows_.size()));
      if (added) rows_.push_back(std::move(row));
      row_of_[from * gpus_.size() + to] = at->second;
    }
  }
  for (const Row& row : rows_) {
    std::int64_t length = 0;
    for (const std::uint32_t link : row) length += prices_[link].price;
    length_of_row_.push_back(length);
  }
}

void PricedPaths::solve() {
  const std::size_t n = gpus_.size();
  const auto length = [&](std::size_t from, std::size_t to) {
    const std::uint32_t known = row_of_[from * n + to];
    return known == no_row ? beyond : length_of_row_[known];
  };
  std::vector<std::size_t> first;  // position of each vertex's first GPU
  for (std::size_t i = 0; i < n; ++i) {
    const auto joined = std::find_if(first.begin(), first.end(), [&](std::size_t other) {
      return length(i, other) == 0 && length(other, i) == 0;
    });
    vertex_.push_back(static_cast<std::uint32_t>(joined - first.begin()));
    if (joined == first.end()) first.push_back(i);
  }
  const std::size_t count = vertex_count_ = first.size();
  distance_.assign(count * count, beyond);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      std::int64_t& best = distance_[vertex_[i] * count + vertex_[j]];
      best = std::min(best, length(i, j));
    }
  }
  for (std::size_t via = 0; via < count; ++via) {
    for (std::size_t from = 0; from < count; ++from) {
      const std::int64_t half = distance_[from * count + via];
      if (half == beyond) continue;
      for (std::size_t to = 0; to < count; ++to) {
        std::int64_t& best = distance_[from * count + to];
        best = std::min(best, half + distance_[via * count + to]);
      }
    }
  }
}

std::int64_t PricedPaths::distance(const GpuList& holders, std::uint32_t receiver) const {
  std::int64_t best = beyond;
  for (const std::uint32_t holder : holders) {
    const std::size_t from = vertex_[position_[holder]], to = vertex_[position_[receiver]];
    best = std::min(best, distance_[from * vertex_count_ + to]);
  }
  return best;
}

std::int64_t PricedPaths::distance(const GpuList& holders, std::uint32_t receiver,
                                   const std::vector<LinkPrice>& prices) const {
  std::vector<std::int64_t> price(prices_.size(), 0);
  for (const LinkPrice& each : prices) {
    const auto at = std::lower_bound(prices_.begin(), prices_.end(), each.link,
                                     [](const LinkPrice& a, LinkId link) { return a.link < link; });
    ISTHMUS_ASSERT(at != prices_.end() && at->link == each.link, "link {} has no price", each.link.value);
    price[static_cast<std::size_t>(at - prices_.begin())] = each.price;
  }
  std::vector<std::int64_t> length(rows_.size(), 0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    for (const std::uint32_t link : rows_[r]) length[r] += price[link];
  }
  const std::size_t n = gpus_.size();
  std::vector<std::int64_t> reached(n, beyond);
  std::vector<char> done(n, 0);
  for (const std::uint32_t holder : holders) reached[position_[holder]] = 0;
  for (std::size_t round = 0; round < n; ++round) {
    std::size_t next = n;
    for (std::size_t i = 0; i < n; ++i) {
      if (done[i] == 0 && (next == n || reached[i] < reached[next])) next = i;
    }
    if (reached[next] == beyond || next == position_[receiver]) break;
    done[next] = 1;
    for (std::size_t to = 0; to < n; ++to) {
      const std::uint32_t known = row_of_[next * n + to];
      if (known != no_row) reached[to] = std::min(reached[to], reached[next] + length[known]);
    }
  }
  return reached[position_[receiver]];
}

}  // namespace isthmus

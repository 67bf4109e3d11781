#include "planner/order_unit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

namespace isthmus {
namespace {

constexpr double close = 0.01;
constexpr std::size_t tried = 12;  // of the most frequent sizes and pair sums

double ratio(Bytes a, Bytes b) { return static_cast<double>(a.value) / static_cast<double>(b.value); }

/// By what fraction of a unit the nearest number of transfers of this size misses it.
double miss_of(Bytes size, Bytes unit) {
  const double part = ratio(size, unit);
  return std::abs(std::max(1.0, std::round(1 / part)) * part - 1);
}

/// What the last unit of a pair leaves unused.
double unused(Bytes pair, Bytes unit) {
  const auto rest = static_cast<double>(pair.value % unit.value), whole = static_cast<double>(unit.value);
  if (rest < close * whole || rest > (1 - close) * whole) return 0;
  const double share = std::floor(whole / rest);
  return whole / share - rest;
}

/// Size and how often, or the bytes it comes in.
using Counts = std::vector<std::pair<Bytes, double>>;

Counts sorted(const std::unordered_map<std::int64_t, double>& counts, bool by_bytes) {
  Counts result;
  for (const auto& [size, weight] : counts) result.emplace_back(Bytes{size}, weight);
  const auto weight = [by_bytes](const auto& entry) {
    return by_bytes ? entry.second : entry.second * static_cast<double>(entry.first.value);
  };
  std::sort(result.begin(), result.end(), [&](const auto& a, const auto& b) {
    return weight(a) != weight(b) ? weight(a) > weight(b) : a.first < b.first;
  });
  return result;
}

/// Multiples and fractions of what is frequent, within the range.
std::vector<Bytes> candidates(const Counts& sizes, const Counts& pairs, Bytes wanted) {
  const std::int64_t low = wanted.value * 60 / 100, high = wanted.value * 15 / 10;
  std::vector<Bytes> found{wanted};
  for (const Counts* counts : {&sizes, &pairs}) {
    for (std::size_t i = 0; i < std::min(tried, counts->size()); ++i) {
      const std::int64_t size = std::max<std::int64_t>(1, (*counts)[i].first.value);
      for (std::int64_t times = (low + size - 1) / size; times * size <= high && times <= 64; ++times)
        if (times > 0) found.push_back({times * size});
      for (std::int64_t parts = 2; size / parts >= low; ++parts)
        if (size / parts <= high) found.push_back({size / parts});
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

UnitCut cut_for_unit(Bytes size, Bytes unit) {
  const double whole = ratio(size, unit);
  if (8 * whole < 1) return {1, 0};  // so small that any number of them comes near
  const auto fewest = static_cast<std::int64_t>(std::ceil(whole));
  UnitCut best{fewest, 1};
  for (std::int64_t parts = fewest; parts <= 8 * fewest; ++parts) {
    const double miss = miss_of({size.value / parts}, unit);
    if (miss < best.miss) best = {parts, miss};
    if (best.miss < close) break;
  }
  return best;
}

Bytes fitting_unit(const std::vector<Transfer>& transfers, Bytes wanted, std::uint32_t depth) {
  std::unordered_map<std::int64_t, double> bytes_of_size, pairs_of_sum;
  std::unordered_map<std::uint64_t, Bytes> sums;
  std::unordered_map<std::uint32_t, Bytes> received;
  double all = 0;
  for (const Transfer& transfer : transfers) {
    bytes_of_size[transfer.bytes.value] += static_cast<double>(transfer.bytes.value);
    sums[std::uint64_t{transfer.source} << 32U | transfer.target] += transfer.bytes;
    received[transfer.target] += transfer.bytes;
    all += static_cast<double>(transfer.bytes.value);
  }
  Bytes busiest{1};
  for (const auto& [port, bytes] : received) busiest = std::max(busiest, bytes);
  for (const auto& [pair, sum] : sums) pairs_of_sum[sum.value] += 1;
  const Counts sizes = sorted(bytes_of_size, true), pairs = sorted(pairs_of_sum, false);
  Bytes best = wanted;
  double least = std::numeric_limits<double>::infinity();
  for (const Bytes unit : candidates(sizes, pairs, wanted)) {
    double cost = depth < 2 ? 0 : all * depth * ratio(unit, busiest);
    for (const auto& [size, bytes] : sizes)
      if (8 * size.value >= unit.value) cost += bytes * miss_of(size, unit);
    for (const auto& [sum, count] : pairs) cost += count * unused(sum, unit);
    if (cost < least) {
      least = cost;
      best = unit;
    }
  }
  return best;
}

}  // namespace isthmus

#include "report/timeline_view.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace isthmus::report {
namespace {

template <class Differs>
bool reaches(const Refit& refit, const Operations& operations, const Operation& what, Differs&& differs) {
  if (!operations.collective(what)) return differs(refit.gpu(what.target));
  const std::vector<Rank>& members = operations.members[what.members];
  return std::any_of(members.begin(), members.end(), [&](Rank rank) { return differs(refit.gpu(rank)); });
}

}  // namespace

KeptOperations keep_operations(const Operations& operations, const Timeline& timeline, std::size_t limit) {
  const std::vector<Span>& spans = timeline.spans;
  KeptOperations result;
  result.path = timeline.critical_path();
  result.is_critical.assign(spans.size(), 0);
  for (const std::uint32_t i : result.path) result.is_critical[i] = 1;
  std::vector<std::uint32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0U);
  const std::size_t kept = std::min(limit, order.size());
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    if (result.is_critical[a] != result.is_critical[b]) return result.is_critical[a] > result.is_critical[b];
    const Duration first = spans[a].end - spans[a].ready, second = spans[b].end - spans[b].ready;
    return first != second ? first > second : a < b;
  };
  if (kept < order.size()) {
    std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), before);
  }
  for (std::size_t i = kept; i < order.size(); ++i) result.dropped_bytes += operations.list[order[i]].bytes;
  order.resize(kept);
  std::sort(order.begin(), order.end());
  result.is_kept.assign(spans.size(), 0);
  for (const std::uint32_t i : order) result.is_kept[i] = 1;
  result.kept = std::move(order);
  return result;
}

bool leaves_gpu(const Refit& refit, const Operations& operations, const Operation& operation) {
  const GpuId from = refit.gpu(operation.source);
  return reaches(refit, operations, operation, [&](GpuId gpu) { return gpu != from; });
}

bool leaves_domain(const Refit& refit, const Operations& operations, const Operation& operation) {
  const DomainId from = refit.fabric.domain_of(refit.gpu(operation.source));
  return reaches(refit, operations, operation,
                 [&](GpuId gpu) { return refit.fabric.domain_of(gpu) != from; });
}

std::string operation_name(const Operations& operations, const Operation& operation) {
  const std::string_view kind = to_string(operation.kind);
  if (operations.collective(operation)) {
    return fmt::format("{} of {} from rank {}", kind, operations.members[operation.members].size(),
                       operation.source.value);
  }
  if (is_local(operation.kind)) return fmt::format("{} on rank {}", kind, operation.source.value);
  return fmt::format("{} {} to {}", kind, operation.source.value, operation.target.value);
}

}  // namespace isthmus::report

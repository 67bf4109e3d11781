#include "sim/activity.hpp"

#include <algorithm>

#include "sim/routes.hpp"

namespace isthmus::sim {
namespace {

/// Adds `amount`, spread evenly from begin to end (or all at once), to steps of equal length.
void spread(std::vector<double>& steps, Duration step, Instant begin, Instant end, double amount) {
  const auto at = [&](Instant when) { return std::min(to_size(when.value / step.value), steps.size() - 1); };
  const std::size_t first = at(begin), last = at(end);
  if (first == last) {
    steps[first] += amount;
    return;
  }
  const double rate = amount / static_cast<double>((end - begin).value);
  for (std::size_t s = first; s <= last; ++s) {
    const std::int64_t from = std::max(begin.value, static_cast<std::int64_t>(s) * step.value);
    const std::int64_t to = s == last ? end.value : static_cast<std::int64_t>(s + 1) * step.value;
    steps[s] += rate * static_cast<double>(to - from);
  }
}

std::vector<std::vector<std::uint32_t>> operations_by_route(const Operations& operations,
                                                            const Routes& routes) {
  std::vector<std::vector<std::uint32_t>> by_route(routes.size());
  for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
    const std::uint32_t route = routes.of(operations.list[i]);
    if (route != Routes::local) by_route[route].push_back(i);
  }
  return by_route;
}

void add_links(const Refit& refit, const Operations& operations, const Timeline& timeline,
               const std::vector<Instant>& flow_begins, std::size_t steps, Activity& result) {
  const Routes routes(refit, operations);
  std::vector<std::vector<double>> of_link(refit.fabric.links().size());
  std::vector<double> of_route(steps);
  const std::vector<std::vector<std::uint32_t>> by_route = operations_by_route(operations, routes);
  for (std::uint32_t route = 0; route < routes.size(); ++route) {
    if (by_route[route].empty()) continue;
    of_route.assign(steps, 0);
    for (const std::uint32_t i : by_route[route]) {
      const Span& span = timeline.spans[i];
      spread(of_route, result.step, flow_begins.empty() ? span.ready : flow_begins[i], span.end,
             static_cast<double>(operations.list[i].bytes.value));
    }
    for (const Usage& usage : routes.usages(route)) {
      std::vector<double>& link = of_link[usage.resource];
      link.resize(steps, 0);
      const double weight = static_cast<double>(usage.weight) / Usage::one;
      for (std::size_t s = 0; s < steps; ++s) link[s] += weight * of_route[s];
    }
  }
  const std::vector<Bytes>& bytes = routes.link_bytes();
  for (std::uint32_t l = 0; l < of_link.size(); ++l) {
    if (bytes[l].value > 0) result.links.push_back({LinkId{l}, bytes[l], {}, {}, std::move(of_link[l])});
  }
}

/// Unites spans that touch or overlap, and counts them into steps.
void unite(std::vector<Span>& spans, Duration step, RankActivity& rank) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.ready < b.ready; });
  for (std::size_t i = 0; i < spans.size();) {
    const Instant begin = spans[i].ready;
    Instant end = spans[i].end;
    for (++i; i < spans.size() && spans[i].ready <= end; ++i) end = std::max(end, spans[i].end);
    rank.active += end - begin;
    spread(rank.share, step, begin, end, static_cast<double>((end - begin).value));
  }
  for (double& share : rank.share) share /= static_cast<double>(step.value);
}

void add_ranks(const Refit& refit, const Operations& operations, const Timeline& timeline, std::size_t steps,
               Activity& result) {
  std::vector<std::vector<Span>> spans(refit.ranks());
  for (std::size_t i = 0; i < operations.list.size(); ++i) {
    const Operation& operation = operations.list[i];
    if (operations.collective(operation)) {
      for (const Rank rank : operations.members[operation.members])
        spans[rank.index()].push_back(timeline.spans[i]);
      continue;
    }
    spans[operation.source.index()].push_back(timeline.spans[i]);
    if (operation.target != operation.source) spans[operation.target.index()].push_back(timeline.spans[i]);
  }
  for (std::uint32_t r = 0; r < spans.size(); ++r) {
    if (spans[r].empty()) continue;
    RankActivity rank{Rank{r}, spans[r].size(), {}, std::vector<double>(steps, 0)};
    unite(spans[r], result.step, rank);
    result.ranks.push_back(std::move(rank));
  }
}

}  // namespace

Activity activity(const Refit& refit, const Operations& operations, const Timeline& timeline,
                  const std::vector<Instant>& flow_begins, const Calibration* calibration,
                  std::size_t steps) {
  const auto count = static_cast<std::int64_t>(steps);
  Activity result;
  result.step = {std::max<std::int64_t>((timeline.end.value + count - 1) / count, 1)};
  add_links(refit, operations, timeline, flow_begins, steps, result);
  add_ranks(refit, operations, timeline, steps, result);
  for (LinkActivity& link : result.links) {
    const Link& made = refit.fabric.links()[link.link.index()];
    link.rate = calibration != nullptr ? calibration->achieved(made) : made.nominal;
    link.busy = link.bytes / link.rate;
    const double most = static_cast<double>(link.rate.value) * seconds(result.step);
    for (double& load : link.load) load /= most;
  }
  return result;
}

}  // namespace isthmus::sim

#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace isthmus::sim {
namespace {

struct FlowCase {
  std::vector<Usage> usages;
  std::int64_t start = 0;  // picoseconds
  std::int64_t amount = 1;
};

struct Case {
  std::vector<std::int64_t> capacities;
  std::vector<FlowCase> flows;
};

Case random_case() {
  Case result;
  const auto resources = *rc::gen::inRange<std::uint32_t>(1, 9);
  for (std::uint32_t r = 0; r < resources; ++r) {
    result.capacities.push_back(*rc::gen::inRange<std::int64_t>(1, 1000) * 1'000'000);
  }
  const auto flows = *rc::gen::inRange<std::size_t>(1, 30);
  for (std::size_t f = 0; f < flows; ++f) {
    FlowCase flow;
    const auto links = *rc::gen::inRange<std::size_t>(1, 4);
    std::set<std::uint32_t> used;
    for (std::size_t l = 0; l < links; ++l) used.insert(*rc::gen::inRange<std::uint32_t>(0, resources));
    for (const std::uint32_t r : used) {
      flow.usages.push_back({r, *rc::gen::element(Usage::one, Usage::one, Usage::one / 8, Usage::one * 2)});
    }
    flow.start = *rc::gen::element<std::int64_t>(0, 0, 1'000'000, 2'500'000);
    flow.amount = *rc::gen::element<std::int64_t>(1, 1000, 1000, 777, 123'456);
    result.flows.push_back(flow);
  }
  return result;
}

/// End times by the textbook: a full water-fill in long doubles at every event, flow by flow.
std::vector<long double> naive_ends(const Case& input) {
  const std::size_t count = input.flows.size();
  std::vector<long double> left(count), rate(count), end(count, -1);
  for (std::size_t f = 0; f < count; ++f) left[f] = static_cast<long double>(input.flows[f].amount);
  long double now = 0;
  for (;;) {
    std::vector<char> active(count), frozen(count);
    std::vector<long double> capacity(input.capacities.begin(), input.capacities.end());
    for (std::size_t f = 0; f < count; ++f) {
      active[f] = end[f] < 0 && static_cast<long double>(input.flows[f].start) * 1e-12L <= now + 1e-18L;
      frozen[f] = !active[f];
    }
    for (;;) {  // freeze the flows of the tightest resource, again and again
      long double level = INFINITY;
      std::size_t tightest = 0;
      for (std::size_t r = 0; r < capacity.size(); ++r) {
        long double load = 0;
        for (std::size_t f = 0; f < count; ++f) {
          for (const Usage& usage : input.flows[f].usages) {
            if (!frozen[f] && usage.resource == r)
              load += usage.weight / static_cast<long double>(Usage::one);
          }
        }
        if (load > 0 && capacity[r] / load < level) {
          level = capacity[r] / load;
          tightest = r;
        }
      }
      if (std::isinf(level)) break;
      for (std::size_t f = 0; f < count; ++f) {
        const auto& usages = input.flows[f].usages;
        const bool uses = std::any_of(usages.begin(), usages.end(),
                                      [tightest](const Usage& usage) { return usage.resource == tightest; });
        if (frozen[f] || !uses) continue;
        frozen[f] = 1;
        rate[f] = level;
        for (const Usage& usage : usages) {
          capacity[usage.resource] -= level * usage.weight / static_cast<long double>(Usage::one);
        }
      }
    }
    long double next = INFINITY;
    for (std::size_t f = 0; f < count; ++f) {
      if (active[f]) next = std::min(next, now + left[f] / rate[f]);
      const long double start = static_cast<long double>(input.flows[f].start) * 1e-12L;
      if (!active[f] && end[f] < 0) next = std::min(next, start);
    }
    if (std::isinf(next)) return end;
    for (std::size_t f = 0; f < count; ++f) {
      if (!active[f]) continue;
      left[f] -= rate[f] * (next - now);
      if (left[f] <= 1e-9L * static_cast<long double>(input.flows[f].amount)) end[f] = next;
    }
    now = next;
  }
}

/// Runs a case through the solver, asserting the certificate at every instant.
std::vector<Instant> solver_ends(const Case& input) {
  Fluid fluid;
  for (const std::int64_t capacity : input.capacities) fluid.add_resource(capacity);
  std::vector<std::uint32_t> classes;
  for (const FlowCase& flow : input.flows) classes.push_back(fluid.add_class(flow.usages));
  std::vector<std::int64_t> starts;
  for (const FlowCase& flow : input.flows) starts.push_back(flow.start);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  std::vector<Instant> ends(input.flows.size());
  std::size_t next_start = 0;
  for (;;) {
    Instant when;
    const bool more = fluid.next_end(when);
    const bool start = next_start < starts.size() && (!more || starts[next_start] <= when.value);
    if (!more && !start) return ends;
    if (start) when = {starts[next_start++]};
    std::vector<std::uint32_t> ended;
    fluid.advance(when, ended);
    for (const std::uint32_t flow : ended) ends[flow] = when;
    for (std::uint32_t f = 0; start && f < input.flows.size(); ++f) {
      if (input.flows[f].start == when.value) fluid.start(classes[f], input.flows[f].amount, f);
    }
    fluid.solve();
    RC_ASSERT(fluid.certificate() == "");
  }
}

RC_GTEST_PROP(Fluid, ends_every_flow_when_a_naive_water_fill_does, ()) {
  const Case input = random_case();
  const auto expected = naive_ends(input);
  const auto found = solver_ends(input);
  for (std::size_t f = 0; f < input.flows.size(); ++f) {
    const long double picoseconds = expected[f] * 1e12L;
    // Each end may be a picosecond late, and what a late flow of weight 2 holds meanwhile keeps one of weight
    // 1/8 waiting for 16 of them.
    const long double allowed = 1e-9L * picoseconds + 17.0L * static_cast<long double>(input.flows.size());
    RC_ASSERT(std::abs(static_cast<long double>(found[f].value) - picoseconds) <= allowed);
  }
}

RC_GTEST_PROP(Fluid, takes_k_times_as_long_for_k_times_the_amounts, ()) {
  Case input = random_case();
  for (FlowCase& flow : input.flows) flow.start = 0;
  Case larger = input;
  for (FlowCase& flow : larger.flows) flow.amount *= 7;
  const auto once = solver_ends(input), scaled = solver_ends(larger);
  for (std::size_t f = 0; f < once.size(); ++f) {
    const auto slack = static_cast<std::int64_t>(8 * once.size()) + once[f].value / 100'000'000;
    RC_ASSERT(std::abs(scaled[f].value - 7 * once[f].value) <= slack);
  }
}

TEST(Fluid, shares_a_link_equally_and_gives_the_rest_to_who_can_use_it) {
  Fluid fluid;
  const auto wide = fluid.add_resource(100), narrow = fluid.add_resource(20);
  const auto a = fluid.add_class({{wide, Usage::one}});
  const auto b = fluid.add_class({{wide, Usage::one}, {narrow, Usage::one}});
  fluid.start(a, 1000, 0);
  fluid.start(b, 1000, 1);
  fluid.solve();
  EXPECT_EQ(fluid.rate(a), 80);
  EXPECT_EQ(fluid.rate(b), 20);
  EXPECT_EQ(fluid.certificate(), "");
}

TEST(Fluid, rounds_an_end_up_so_that_no_message_beats_its_wire) {
  Fluid fluid;
  const auto c = fluid.add_class({{fluid.add_resource(3), Usage::one}});
  fluid.start(c, 1, 0);
  fluid.solve();
  Instant when;
  ASSERT_TRUE(fluid.next_end(when));
  EXPECT_EQ(when.value, 333'333'333'334);
}

}  // namespace
}  // namespace isthmus::sim

#include "report/page_traffic.hpp"

#include <map>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/policy.hpp"
#include "tests/support/policy_plans.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::report {
namespace {

/// On every third GPU of six hosts.
Refit spread_refit() {
  Refit refit = test::make_refit(*test::refit_cases());
  refit.fabric = Fabric({"dgx-h100", 6, std::nullopt, std::nullopt});
  for (std::uint32_t r = 0; r < refit.ranks(); ++r) refit.gpu_of_rank[r] = GpuId{r * 3 % 48};
  return refit;
}

std::int64_t sum(const std::vector<std::int64_t>& cells) {
  return std::accumulate(cells.begin(), cells.end(), std::int64_t{0});
}

/// What arrives elsewhere, without a matrix: once for each receiver.
std::int64_t arriving(const Operations& operations) {
  std::int64_t bytes = 0;
  for (const Operation& each : operations.list) {
    std::int64_t receivers = each.source == each.target ? 0 : 1;
    if (operations.collective(each))
      receivers = static_cast<std::int64_t>(operations.members[each.members].size()) - 1;
    bytes += receivers * each.bytes.value;
  }
  return bytes;
}

RC_GTEST_PROP(TrafficMatrix, holds_every_byte_that_arrives_elsewhere, ()) {
  const Refit refit = spread_refit();
  for (const Plan& plan : test::plans_of(refit)) {
    const Operations operations = expand(refit, plan);
    const TrafficMatrix ranks = traffic_matrix(refit, operations, refit.ranks());
    RC_ASSERT(ranks.unit == "rank");
    RC_ASSERT(ranks.size() == refit.ranks());
    RC_ASSERT(sum(ranks.bytes) == arriving(operations));
    for (std::size_t r = 0; r < ranks.size(); ++r) RC_ASSERT(ranks.bytes[r * ranks.size() + r] == 0);
  }
}

RC_GTEST_PROP(TrafficMatrix, of_hosts_is_that_of_ranks_folded, ()) {
  const Refit refit = spread_refit();
  const auto most = *rc::gen::inRange<std::size_t>(1, 7);
  RC_PRE(refit.ranks() > most);
  const Operations operations = expand(refit, test::plans_of(refit).front());
  const TrafficMatrix ranks = traffic_matrix(refit, operations, refit.ranks());
  const TrafficMatrix hosts = traffic_matrix(refit, operations, most);
  RC_ASSERT(hosts.size() <= most);
  RC_ASSERT(sum(hosts.bytes) == sum(ranks.bytes));
  // The group of a host by its place among the hosts that hold ranks.
  std::map<std::uint32_t, std::size_t> place;
  for (const GpuId gpu : refit.gpu_of_rank) place[refit.fabric.host_of(gpu).value] = 0;
  const std::size_t together = (place.size() + most - 1) / most;
  std::size_t count = 0;
  for (auto& [host, group] : place) group = count++ / together;
  const auto group_of = [&](std::size_t rank) {
    return place[refit.fabric.host_of(refit.gpu_of_rank[rank]).value];
  };
  std::vector<std::int64_t> folded(hosts.bytes.size(), 0);
  for (std::size_t from = 0; from < ranks.size(); ++from) {
    for (std::size_t to = 0; to < ranks.size(); ++to)
      folded[group_of(from) * hosts.size() + group_of(to)] += ranks.bytes[from * ranks.size() + to];
  }
  RC_ASSERT(folded == hosts.bytes);
}

TEST(TrafficMatrix, shares_an_all_gather_between_its_members) {
  Refit refit = test::make_refit(test::sample_case(1));
  refit.fabric = Fabric({"dgx-h100", 1, std::nullopt, std::nullopt});
  refit.gpu_of_rank = {GpuId{0}, GpuId{1}, GpuId{2}};
  refit.relay_ranks = 0;
  Operations operations;
  operations.members = {{Rank{0}, Rank{1}, Rank{2}}};
  Operation gather;
  gather.kind = StepKind::all_gather;
  gather.bytes = Bytes{10};
  operations.list = {gather};
  EXPECT_EQ(traffic_matrix(refit, operations, 3).bytes,
            (std::vector<std::int64_t>{0, 4, 4, 3, 0, 3, 3, 3, 0}));
  operations.list.front().kind = StepKind::broadcast;
  operations.list.front().source = Rank{1};
  operations.list.front().target = Rank{1};
  EXPECT_EQ(traffic_matrix(refit, operations, 3).bytes,
            (std::vector<std::int64_t>{0, 0, 0, 10, 0, 10, 0, 0, 0}));
}

}  // namespace
}  // namespace isthmus::report

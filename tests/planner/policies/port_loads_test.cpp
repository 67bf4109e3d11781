#include "planner/policies/port_loads.hpp"

#include <gtest/gtest.h>

#include "planner/policies/balanced_pattern.hpp"
#include "tests/support/check_fixture.hpp"

namespace isthmus {
namespace {

using test::box;

class PortLoadsTest : public test::CheckFixture {};

TEST_F(PortLoadsTest, count_network_and_nvlink_by_gpu_and_instance) {
  refit({test::tensor("a", {4}, {1, 0}, {2, 8}), test::tensor("b", {4}, {1, 1}, {2, 9})}, 16);
  plan_.instances[1].pattern = {0};
  send(0, 0, box({0}, {4})).lane = network_lane;
  Step pass;
  pass.lane = nvlink_lane;
  pass.from = Buffer::target;
  pass.source = LocalRank::target(0);
  pass.target = LocalRank::target(1);
  pass.region = box({0}, {4});
  add(pass, {0});
  const PortLoads loads = port_loads(*refit_, plan_);
  for (const std::size_t gpu : {0U, 1U}) EXPECT_EQ(loads.network_out[gpu], Bytes{8}) << gpu;
  for (const std::size_t gpu : {8U, 9U}) EXPECT_EQ(loads.network_in[gpu], Bytes{8}) << gpu;
  for (const std::size_t gpu : {8U, 9U}) EXPECT_EQ(loads.nvlink_out[gpu], Bytes{8}) << gpu;
  for (const std::size_t gpu : {9U, 10U}) EXPECT_EQ(loads.nvlink_in[gpu], Bytes{8}) << gpu;
  EXPECT_EQ(loads.network_out[8], Bytes{});
}

TEST_F(PortLoadsTest, give_the_busiest_link_of_whole_routes) {
  refit({test::tensor("a", {4'000'000}, {1, 0}, {1, 8})}, 16);
  send(0, 0, box({0}, {4'000'000})).lane = network_lane;
  const Bandwidth nic = refit_->fabric.links()[refit_->fabric.nic_out({0})->index()].nominal;
  EXPECT_EQ(busiest_link(*refit_, plan_), Bytes{8'000'000} / nic);
}

}  // namespace
}  // namespace isthmus

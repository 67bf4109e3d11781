#include "planner/bound.hpp"

#include <gtest/gtest.h>

#include "planner/certified_bound.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus {
namespace {

constexpr double gigabyte = 1e9;

/// One tensor of 2 GB (BF16) with the given layouts, rank r on GPU r of DGX H100 hosts.
Refit two_gigabytes(std::vector<std::int64_t> source_mesh, std::vector<Placement> source,
                    std::vector<std::int64_t> target_mesh, std::vector<Placement> target,
                    std::uint32_t first_target) {
  TensorSpec spec;
  spec.name = "weight";
  const std::vector<std::int64_t> shape{1'000'000, 1000};
  spec.source = {shape, Dtype::bf16, contiguous_mesh(std::move(source_mesh), Rank{0}), std::move(source),
                 ChunkRule::even};
  spec.target = {shape, Dtype::bf16, contiguous_mesh(std::move(target_mesh), Rank{first_target}),
                 std::move(target), ChunkRule::even};
  const std::size_t ranks = first_target + spec.target.mesh.size();
  Refit refit = test::make_refit({{spec}, ranks});
  refit.fabric = Fabric({"dgx-h100", 8, std::nullopt, std::nullopt});
  return refit;
}

TEST(LowerBound, counts_bytes_that_enter_a_domain_once_whatever_the_replicas) {
  // 8 shards on host 0 to 8 replicas on host 1: 2 GB through 8 NICs of 50 GB/s, but each GPU needs all 2 GB,
  // and one GPU's NIC and NVLink ports together take 500 GB/s.
  const LowerBound bound = lower_bound(two_gigabytes({8}, {{0}}, {8}, {{}}, 8));
  EXPECT_NEAR(seconds(bound.time), 2 / 400.0, 1e-9);
  EXPECT_EQ(bound.cut_bytes.value, static_cast<std::int64_t>(2 * gigabyte));
}

TEST(LowerBound, of_one_holder_on_a_full_host_uses_all_nics_of_its_domain) {
  const LowerBound bound = lower_bound(two_gigabytes({1}, {{}}, {8}, {{0}}, 8));
  EXPECT_NEAR(seconds(bound.time), 2 / 400.0, 1e-9);
}

TEST(LowerBound, inside_one_domain_is_the_nvlink_port_of_the_receiver) {
  // 1 -> 1 in one host: NVLink alone, or also out and back over the two NICs.
  const LowerBound bound = lower_bound(two_gigabytes({1}, {{}}, {1}, {{}}, 1));
  EXPECT_NEAR(seconds(bound.time), 2 / 450.0, 1e-9);
  EXPECT_NEAR(seconds(bound.any_route), 2 / 500.0, 1e-9);
}

TEST(LowerBound, drops_the_nics_of_idle_gpus_when_only_members_may_relay) {
  Refit refit = two_gigabytes({1}, {{}}, {8}, {{0}}, 8);
  refit.settings.relay = Relay::members;  // ranks 1 to 7 hold nothing and need nothing
  EXPECT_NEAR(seconds(lower_bound(refit).time), 2 / 50.0, 1e-9);
}

TEST(LowerBound, does_not_ask_for_nvlink_where_a_holder_outside_can_send) {
  // Rank 1 needs what rank 0 beside it and rank 8 on another host hold: NVLink and NIC may both bring it.
  TensorSpec spec;
  spec.name = "weight";
  const Mesh holders{{2}, {Rank{0}, Rank{8}}};
  spec.source = {{1'000'000, 1000}, Dtype::bf16, holders, {{}}, ChunkRule::even};
  spec.target = {{1'000'000, 1000}, Dtype::bf16, contiguous_mesh({1}, Rank{1}), {{}}, ChunkRule::even};
  Refit refit = test::make_refit({{spec}, 9});
  refit.fabric = Fabric({"dgx-h100", 2, std::nullopt, std::nullopt});
  EXPECT_NEAR(seconds(lower_bound(refit).time), 2 / 500.0, 1e-9);
}

TEST(LowerBound, is_zero_when_every_receiver_holds_its_part) {
  const LowerBound bound = lower_bound(two_gigabytes({2}, {{0}}, {2}, {{0}}, 0));
  EXPECT_EQ(bound.time.value, 0);
}

// Bounds by hand: DGX H100 hosts, NVLink 450 GB/s and one NIC of 50 GB/s per GPU, only members take part.
double bound_of(const std::vector<test::SparseTensor>& tensors) {
  return seconds(lower_bound(test::sparse_refit(tensors)).time);
}

TEST(LowerBound, of_a_domain_with_few_holders_is_their_ports_and_the_nics_of_the_others) {
  // One of eight GPUs holds 9 GB that the seven others need: its NVLink port alone, as executors do it.
  EXPECT_NEAR(bound_of({{9'000'000'000, {0}, {1, 2, 3, 4, 5, 6, 7}}}), 9 / 450.0, 1e-9);
  // Seven classes of 9 GB, one for each: 63 GB leave that port.
  std::vector<test::SparseTensor> tensors;
  for (std::uint32_t gpu = 1; gpu < 8; ++gpu) tensors.push_back({9'000'000'000, {0}, {gpu}});
  EXPECT_NEAR(bound_of(tensors), 63 / 450.0, 1e-9);
}

TEST(LowerBound, of_holders_in_two_domains_is_what_both_can_send) {
  // GPUs 0 and 8 hold 4 GB each, and both another 2 GB, all for GPUs 16, 17 and 18: 10 GB through two NICs.
  const std::vector<std::uint32_t> targets{16, 17, 18};
  EXPECT_NEAR(
      bound_of(
          {{4'000'000'000, {0}, targets}, {4'000'000'000, {8}, targets}, {2'000'000'000, {0, 8}, targets}}),
      10 / 100.0, 1e-9);
}

TEST(LowerBound, of_a_broadcast_counts_each_domain_once) {
  // 5 GB from one GPU to two in each of three other domains: out of its NIC once; relays do the rest.
  EXPECT_NEAR(bound_of({{5'000'000'000, {0}, {8, 9, 16, 17, 24, 25}}}), 5 / 50.0, 1e-9);
}

TEST(LowerBound, of_an_exchange_is_the_larger_direction) {
  EXPECT_NEAR(bound_of({{3'000'000'000, {0}, {8}}, {7'000'000'000, {8}, {0}}}), 7 / 50.0, 1e-9);
}

TEST(LowerBound, of_a_domain_without_its_holders_adds_their_ports_to_its_nics) {
  // GPUs 0 and 8 hold what 1, 2 and 3 need: the port of 0 and the one NIC of 8 that can send.
  EXPECT_NEAR(bound_of({{10'000'000'000, {0, 8}, {1, 2, 3}}}), 10 / 500.0, 1e-9);
}

TEST(LowerBound, is_what_a_stated_link_between_two_fabrics_carries) {
  FabricSpec spec;
  FabricSpec hosts, rack;
  hosts.preset = "dgx-h100-superpod";
  hosts.hosts = 2;
  rack.preset = "gb200-nvl72";
  rack.hosts = 4;
  spec.parts = {hosts, rack};
  spec.join_bandwidth = gigabytes_per_second(80);
  Refit refit = two_gigabytes({8}, {{0}}, {8}, {{0}}, 16);
  refit.fabric = Fabric(spec);
  const LowerBound bound = lower_bound(refit);
  EXPECT_NEAR(seconds(bound.time), 2 / 80.0, 1e-9) << bound.binding;
  EXPECT_NE(bound.binding.find("behind"), std::string::npos);
  EXPECT_TRUE(certified_bound(refit).verified());
}

}  // namespace
}  // namespace isthmus

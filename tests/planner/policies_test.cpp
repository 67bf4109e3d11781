#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "planner/check.hpp"
#include "planner/policy.hpp"
#include "tests/support/refit_generator.hpp"
#include "tests/support/twin.hpp"

namespace isthmus {
namespace {

/// The refit of a case with its ranks on hosts of eight GPUs: small domains, so that cells enter several of
/// them.
Refit on_hosts(const test::RefitCase& refit_case, bool spread) {
  Refit refit = test::make_refit(refit_case);
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank) {
    refit.gpu_of_rank[rank] = spread ? GpuId{(rank * 4) % 128 + rank * 4 / 128} : GpuId{rank};
  }
  return refit;
}

void expect_correct(const Refit& refit, const Policy& policy) {
  const PlanResult result = policy.make(refit);
  if (std::holds_alternative<Refused>(result)) return;
  const Plan& plan = std::get<Plan>(result);
  const Proof proof = check(refit, plan);
  if (!proof.proven()) RC_FAIL(fmt::format("{}: {}", policy.name, proof.violations.front().message));
  const test::Twin twin(refit);
  for (std::uint64_t seed = 0; seed < 3; ++seed) {
    const test::TwinResult end = twin.run(plan, {seed, test::TwinSchedule::nobody});
    if (!end.correct()) RC_FAIL(fmt::format("{}: {}", policy.name, end.first_fault));
  }
}

RC_GTEST_PROP(Policies, every_plan_writes_each_target_element_exactly_once, ()) {
  const auto refit_case = *test::refit_cases();
  const Refit refit = on_hosts(refit_case, *rc::gen::arbitrary<bool>());
  for (const Policy& policy : policies()) expect_correct(refit, policy);
}

TEST(Policies, are_found_by_name_and_unknown_ones_are_not) {
  for (const Policy& policy : policies()) EXPECT_EQ(find_policy(policy.name), &policy);
  EXPECT_EQ(find_policy("teleport"), nullptr);
}

/// TP `source` on ranks 0.. to `replicas` x TP `target`, one tensor of `rows` x 1024 BF16.
test::RefitCase tensor_parallel(std::int64_t rows, std::int64_t source, std::int64_t replicas,
                                std::int64_t target) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{rows, 1024}, Dtype::bf16, contiguous_mesh({source}, Rank{0}), {{0}}, ChunkRule::even};
  const Rank first{static_cast<std::uint32_t>(source)};
  spec.target = {
      {rows, 1024}, Dtype::bf16, contiguous_mesh({replicas, target}, first), {{}, {0}}, ChunkRule::even};
  return {{spec}, to_size(source + replicas * target)};
}

TEST(Balanced, brings_each_byte_into_a_domain_once) {
  // 8 sources on host 0; 4 replicas of TP2 fill host 1: each byte must cross once, not four times.
  const Refit refit = on_hosts(tensor_parallel(65536, 8, 4, 2), false);
  const Plan plan = std::get<Plan>(plan_balanced(refit));
  Bytes crossing;
  for (const Instance& instance : plan.instances) {
    for (const Step& step : plan.pattern(instance).steps) {
      const DomainId from = refit.fabric.domain_of(refit.gpu(global_rank(instance, step.source)));
      const DomainId to = refit.fabric.domain_of(refit.gpu(global_rank(instance, step.target)));
      if (from != to) crossing += refit.geometry(instance.tensor).source.bytes(step.region);
    }
  }
  EXPECT_EQ(crossing, refit.payload());
}

TEST(Balanced, lets_every_receiver_of_a_domain_take_an_equal_share_from_the_network) {
  const Refit refit = on_hosts(tensor_parallel(65536, 8, 4, 2), false);
  const Plan plan = std::get<Plan>(plan_balanced(refit));
  std::vector<Bytes> received(refit.ranks());
  for (const Instance& instance : plan.instances) {
    for (const Step& step : plan.pattern(instance).steps) {
      if (step.from != Buffer::source) continue;
      received[global_rank(instance, step.target).index()] +=
          refit.geometry(instance.tensor).source.bytes(step.region);
    }
  }
  for (std::size_t rank = 8; rank < 16; ++rank)
    EXPECT_EQ(received[rank].value, refit.payload().value / 8) << rank;
}

TEST(Balanced, cuts_bytes_by_the_time_that_they_take_on_slow_ports_too) {
  // One source, three replicas on hosts of their own. A chain is as slow as its units are long.
  const auto steps = [](std::int64_t rows, Bandwidth nic) {
    Refit refit = test::make_refit(tensor_parallel(rows, 1, 3, 1));
    refit.fabric = Fabric({"dgx-h100", 4, nic, std::nullopt});
    for (std::uint32_t rank = 0; rank < 4; ++rank) refit.gpu_of_rank[rank] = GpuId{rank * 8};
    refit.settings.relay = Relay::members;
    return std::get<Plan>(plan_balanced(refit)).step_count();
  };
  const std::size_t fast = steps(1 << 20, Bandwidth{50'000'000'000});
  const std::size_t slow = steps(1 << 10, Bandwidth{50'000'000'000 / 1024});
  EXPECT_GT(slow, 100U);
  EXPECT_LT(slow, 2 * fast) << fast;
  EXPECT_GT(3 * slow, fast) << slow;
}

TEST(P2p, sends_every_replica_its_own_copy_from_the_first_holder) {
  const Refit refit = on_hosts(tensor_parallel(64, 2, 3, 2), false);
  const Plan plan = std::get<Plan>(plan_p2p(refit));
  EXPECT_EQ(plan.step_count(), 6U);
  for (const Step& step : plan.patterns[0].steps) EXPECT_EQ(step.kind, StepKind::send);
}

TEST(GatherBroadcast, materialises_full_tensors_and_the_others_do_not) {
  const Refit refit = on_hosts(tensor_parallel(64, 2, 1, 2), false);
  EXPECT_TRUE(check(refit, std::get<Plan>(plan_gather_broadcast(refit))).full_tensor_materialised);
  EXPECT_FALSE(check(refit, std::get<Plan>(plan_p2p(refit))).full_tensor_materialised);
  EXPECT_FALSE(check(refit, std::get<Plan>(plan_balanced(refit))).full_tensor_materialised);
}

TEST(Policies, keep_tensors_of_one_geometry_at_different_ranks_apart) {
  // One rank to one rank, between all pairs of three: copies, sends inside a host and across hosts.
  test::RefitCase refit_case{{}, 17};
  for (const std::uint32_t from : {0U, 1U, 16U}) {
    for (const std::uint32_t to : {0U, 1U, 16U}) {
      TensorSpec spec;
      spec.name = fmt::format("from {} to {}", from, to);
      spec.source = {{64}, Dtype::bf16, contiguous_mesh({1}, Rank{from}), {{}}, ChunkRule::even};
      spec.target = {{64}, Dtype::bf16, contiguous_mesh({1}, Rank{to}), {{}}, ChunkRule::even};
      refit_case.tensors.push_back(spec);
    }
  }
  const Refit refit = on_hosts(refit_case, false);
  for (const Policy& policy : policies()) {
    const Proof proof = check(refit, std::get<Plan>(policy.make(refit)));
    EXPECT_TRUE(proof.proven()) << policy.name << ": " << (proof.proven() ? "" : proof.violations[0].message);
  }
}

TEST(P2p, puts_no_more_operations_into_a_group_than_are_safe) {
  TensorSpec spec;
  spec.name = "weight";
  spec.source = {{64}, Dtype::bf16, contiguous_mesh({1}, Rank{0}), {{}}, ChunkRule::even};
  spec.target = {{64}, Dtype::bf16, contiguous_mesh({9000}, Rank{1}), {{}}, ChunkRule::even};
  Refit refit = test::make_refit({{spec, spec}, 9001});
  refit.tensors[1].tensor.name = "other";
  EXPECT_TRUE(check(refit, std::get<Plan>(plan_p2p(refit))).proven());
}

TEST(GatherBroadcast, cuts_one_tensor_that_no_message_holds_and_counts_it_once) {
  for (const std::int64_t rows : {std::int64_t{1} << 22, std::int64_t{1} << 20}) {  // 8.6 GB, 2.1 GB
    const Refit refit = on_hosts(tensor_parallel(rows, 1, 1, 2), false);
    const Plan plan = std::get<Plan>(plan_gather_broadcast(refit));
    EXPECT_TRUE(check(refit, plan).proven());
    std::size_t broadcasts = 0, parts = 0;
    for (const Step& step : plan.patterns.front().steps) {
      if (step.kind != StepKind::broadcast) continue;
      ++broadcasts;
      parts += step.parts;
    }
    EXPECT_EQ(broadcasts > 1, refit.payload() > Limits{}.largest_size) << rows;
    EXPECT_EQ(parts, 1U) << rows;
  }
}

TEST(GatherBroadcast, of_a_bare_tensor_reaches_its_own_ranks_only) {
  TensorSpec spec;
  spec.name = "weight";
  Mesh source{{2}, {Rank{0}, Rank{15}}}, target{{2}, {Rank{1}, Rank{14}}};
  spec.source = {{64}, Dtype::bf16, source, {{0}}, ChunkRule::even};
  spec.target = {{64}, Dtype::bf16, target, {{0}}, ChunkRule::even};
  const Refit refit = on_hosts({{spec}, 16}, false);
  const Plan plan = std::get<Plan>(plan_gather_broadcast(refit));
  for (const auto& members : plan.patterns[0].members) EXPECT_LE(members.size(), 4U);
  EXPECT_TRUE(check(refit, plan).proven());
}

}  // namespace
}  // namespace isthmus

#include "planner/policies/nic_loans.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/sparse_refit.hpp"

namespace isthmus {
namespace {

/// Ranks 0 and 8 take part; NICs of 50 GB/s, NVLink of 450 GB/s.
Refit pair_refit(Relay relay) { return test::sparse_refit({{1'000'000'000, {0}, {8}}}, relay); }

PortLoads no_loads(const Refit& refit) {
  const std::vector<Bytes> none(refit.fabric.gpu_count());
  return {none, none, none, none};
}

Bytes total(const std::vector<NicLoan>& loans) {
  Bytes sum;
  for (const NicLoan& loan : loans) sum += loan.bytes;
  return sum;
}

TEST(NicLoans, take_from_idle_gpus_of_the_domain_in_equal_parts) {
  const Refit refit = pair_refit(Relay::any);
  PortLoads loads = no_loads(refit);
  loads.network_out[0] = Bytes{8'000'000'000};
  const std::vector<NicLoan> loans = nic_loans(refit, loads, {1}, NicSide::out);
  ASSERT_EQ(loans.size(), 7U);
  for (const NicLoan& loan : loans) {
    EXPECT_EQ(loan.borrower, GpuId{0});
    EXPECT_LT(loan.lender.value, 8U);
    EXPECT_NEAR(static_cast<double>(loan.bytes.value), 1e9, 1e3);
  }
  EXPECT_TRUE(nic_loans(refit, loads, {1}, NicSide::in).empty());
}

TEST(NicLoans, take_from_nobody_outside_where_only_members_relay) {
  const Refit refit = pair_refit(Relay::members);
  PortLoads loads = no_loads(refit);
  loads.network_out[0] = Bytes{8'000'000'000};
  EXPECT_TRUE(nic_loans(refit, loads, {1}, NicSide::out).empty());
}

TEST(NicLoans, take_no_more_than_the_bound_asks_for_and_from_few_lenders) {
  const Refit refit = pair_refit(Relay::any);
  PortLoads loads = no_loads(refit);
  loads.network_in[8] = Bytes{1'000'000'000};  // 20 ms
  const Duration bound{19'500'000'000};
  const std::vector<NicLoan> loans = nic_loans(refit, loads, bound, NicSide::in);
  ASSERT_EQ(loans.size(), 1U);
  EXPECT_NEAR(static_cast<double>(loans[0].bytes.value), 25e6, 1e3);
}

TEST(NicLoans, leave_room_on_nvlink) {
  const Refit refit = pair_refit(Relay::any);
  PortLoads loads = no_loads(refit);
  loads.network_out[0] = Bytes{8'000'000'000};
  const double rate =
      static_cast<double>(refit.fabric.links()[refit.fabric.nvlink_out({0})->index()].nominal.value);
  loads.nvlink_out[0] = {static_cast<std::int64_t>(0.1 * rate)};  // 0.1 s of it are taken
  const double lent = static_cast<double>(total(nic_loans(refit, loads, {1}, NicSide::out)).value);
  const double level = (8e9 - lent) / 50e9;
  EXPECT_GT(level, 8e9 / 50e9 / 8 * 1.05);  // what the NICs alone would allow
  EXPECT_LE(lent, (level - 0.1) * rate * (1 + 1e-6));
}

RC_GTEST_PROP(NicLoans, level_the_nics_of_each_domain_and_overload_no_lender, ()) {
  const Refit refit = pair_refit(Relay::any);
  PortLoads loads = no_loads(refit);
  for (Bytes& bytes : loads.network_out) bytes = {*rc::gen::inRange<std::int64_t>(0, 1'000) * 10'000'000};
  std::vector<Bytes> after = loads.network_out;
  const std::vector<NicLoan> loans = nic_loans(refit, loads, {1}, NicSide::out);
  for (const NicLoan& loan : loans) {
    RC_ASSERT(loan.bytes.value > 0);
    RC_ASSERT(refit.fabric.domain_of(loan.borrower) == refit.fabric.domain_of(loan.lender));
    after[loan.borrower.index()] -= loan.bytes;
    after[loan.lender.index()] += loan.bytes;
  }
  Bytes busiest, level;
  for (std::size_t host = 0; host < 4; ++host) {
    Bytes sum;
    for (std::size_t g = 8 * host; g < 8 * host + 8; ++g) sum += loads.network_out[g];
    level = std::max(level, Bytes{sum.value / 8});
  }
  for (const Bytes bytes : after) busiest = std::max(busiest, bytes);
  if (!loans.empty()) RC_ASSERT(busiest.value <= level.value + 64 + level.value / 1'000'000);
}

}  // namespace
}  // namespace isthmus

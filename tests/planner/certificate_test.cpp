#include "planner/certificate.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "planner/certified_bound.hpp"
#include "planner/relay_program.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus {
namespace {

/// 10 GB from GPU 0 to two GPUs of another host, 4 GB from GPU 1 to a neighbour and to a third host.
const std::vector<test::SparseTensor> tensors{{10'000'000'000, {0}, {8, 9}}, {4'000'000'000, {1}, {2, 16}}};

struct Case {
  Refit refit = test::sparse_refit(tensors);
  BoundCertificate certificate = certified_bound(refit).certificate;
  CertificateVerdict verdict() const { return verify_certificate(refit, certificate); }
};

TEST(Certificate, of_a_cut_is_accepted_and_proves_its_time) {
  const Case each;
  EXPECT_TRUE(each.verdict().holds()) << each.verdict().refusal;
  EXPECT_EQ(each.verdict().time, each.certificate.time);
  EXPECT_EQ(each.certificate.classes, 2U);
  EXPECT_EQ(each.certificate.bytes.value, 14'000'000'000);
}

TEST(Certificate, that_claims_a_picosecond_more_is_refused) {
  Case each;
  ++each.certificate.time.value;
  EXPECT_NE(each.verdict().refusal.find("stated is"), std::string::npos) << each.verdict().refusal;
}

TEST(Certificate, with_a_raised_price_is_refused_by_the_capacity_that_it_states) {
  Case each;
  each.certificate.prices.front().price += 1;
  EXPECT_NE(each.verdict().refusal.find("capacity"), std::string::npos) << each.verdict().refusal;
  // Its twin says the capacity of the raised price, and proves what that gives.
  each.certificate.time = {};
  const LinkPrice& price = each.certificate.prices.front();
  each.certificate.priced_capacity += each.refit.fabric.links()[price.link.index()].nominal.value;
  EXPECT_TRUE(each.verdict().holds()) << each.verdict().refusal;
}

TEST(Certificate, that_leaves_out_a_class_or_bytes_is_refused) {
  Case each;
  --each.certificate.classes;
  EXPECT_NE(each.verdict().refusal.find("classes"), std::string::npos);
  ++each.certificate.classes;
  ++each.certificate.bytes.value;
  EXPECT_NE(each.verdict().refusal.find("bytes have to move"), std::string::npos);
  // Of another refit, with one tensor less, it proves nothing either.
  --each.certificate.bytes.value;
  each.refit.tensors.pop_back();
  EXPECT_FALSE(each.verdict().holds());
}

TEST(Certificate, of_another_model_is_refused) {
  const auto refused = [](auto change) {
    Case each;
    change(each.certificate.model);
    return !each.verdict().holds();
  };
  EXPECT_FALSE(refused([](BoundModel&) {}));
  EXPECT_TRUE(refused([](BoundModel& model) { model.unicast = false; }));
  EXPECT_TRUE(refused([](BoundModel& model) { model.relay = Relay::any; }));
  EXPECT_TRUE(refused([](BoundModel& model) { model.wire = {Dtype::bf16}; }));
  EXPECT_TRUE(refused([](BoundModel& model) { model.quantised = Quantised::target; }));
  EXPECT_TRUE(refused([](BoundModel& model) { model.quantised = Quantised::source; }));
}

TEST(Certificate, that_needs_nvlink_alone_does_not_hold_with_detours) {
  const Refit refit = test::sparse_refit({{9'000'000'000, {0}, {1}}, {1000, {0}, {8}}});
  CertifiedBound certified = certified_bound(refit);
  ASSERT_TRUE(certified.verified());
  EXPECT_LT(certified.bound.any_route, certified.bound.time);
  certified.certificate.model.detours = true;
  EXPECT_FALSE(verify_certificate(refit, certified.certificate).holds());
}

TEST(Certificate, with_a_malformed_list_of_prices_is_refused) {
  const auto refusal = [](auto change) {
    Case each;
    change(each.certificate.prices);
    return each.verdict().refusal;
  };
  using Prices = std::vector<LinkPrice>;
  EXPECT_NE(refusal([](Prices& prices) { prices[0].link = {1'000'000}; }).find("does not exist"),
            std::string::npos);
  EXPECT_NE(refusal([](Prices& prices) { prices[0].price = 0; }).find("is not in"), std::string::npos);
  EXPECT_NE(refusal([](Prices& prices) { prices[0].price = max_price + 1; }).find("is not in"),
            std::string::npos);
  EXPECT_NE(refusal([](Prices& prices) { prices.push_back(prices[0]); }).find("order"), std::string::npos);
}

/// Price 1 on the NICs into GPUs 8 and 16 of a class that both of two hosts need, split half and half.
struct SplitCase {
  Refit refit = test::sparse_refit({{10'000'000'000, {0}, {8, 16}}});
  BoundCertificate certificate;

  SplitCase() {
    const LinkId first = *refit.fabric.nic_in({8}), second = *refit.fabric.nic_in({16});
    certificate = cut_certificate(refit, true, {std::min(first, second), std::max(first, second)});
    certificate.splits = {{{{0}}, {{8}, {16}}, {{{8}, {{first, 1}}}, {{16}, {{second, 1}}}}}};
  }
  CertificateVerdict verdict() const { return verify_certificate(refit, certificate); }
};

TEST(Certificate, with_prices_split_over_receivers_proves_the_sum_of_their_distances) {
  SplitCase each;
  each.certificate.time = {200'000'000'000};  // each of two NICs of 50 GB/s takes in 10 GB
  EXPECT_TRUE(each.verdict().holds()) << each.verdict().refusal;
  // Without the split the farther of the two gets all, which is half as much.
  each.certificate.splits.clear();
  EXPECT_FALSE(each.verdict().holds());
  EXPECT_EQ(each.verdict().time.value, 100'000'000'000);
}

TEST(Certificate, with_shares_above_the_price_or_of_no_receiver_is_refused) {
  const auto refusal = [](auto change) {
    SplitCase each;
    change(each.certificate.splits);
    return each.verdict().refusal;
  };
  using Splits = std::vector<PriceSplit>;
  EXPECT_EQ(refusal([](Splits&) {}), "");
  const auto above = refusal([](Splits& splits) { splits[0].shares[0].prices[0].price = 2; });
  EXPECT_NE(above.find("add up to more"), std::string::npos);
  const auto both = refusal([](Splits& splits) { splits[0].shares[1].prices = splits[0].shares[0].prices; });
  EXPECT_NE(both.find("add up to more"), std::string::npos);
  const auto stranger = refusal([](Splits& splits) { splits[0].shares[0].receiver = {0}; });
  EXPECT_NE(stranger.find("no receiver"), std::string::npos);
  const auto twice = refusal([](Splits& splits) { splits.push_back(splits[0]); });
  EXPECT_NE(twice.find("split twice"), std::string::npos);
  const auto unknown = refusal([](Splits& splits) { splits[0].holders = {{1}}; });
  EXPECT_NE(unknown.find("does not exist"), std::string::npos);
}

}  // namespace
}  // namespace isthmus

#include "planner/certified_bound.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <coin/ClpSimplex.hpp>

#include "tests/support/fabric_generator.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus {
namespace {

constexpr double nvlink = 450e9, nic = 50e9;

/// The exact program another way: per class and receiver a flow over ports and hubs that are written down
/// here, without the fabric, without sets. GPU g is vertex g, its host's switch 32 + g / 8, the network 36.
class FlowProgram {
 public:
  FlowProgram(const std::vector<test::SparseTensor>& tensors, bool detours) {
    for (const auto& tensor : tensors) {
      for (const auto* side : {&tensor.holders, &tensor.receivers}) {
        for (const std::uint32_t gpu : *side) gpus_.insert(gpu);
      }
    }
    for (const std::uint32_t gpu : gpus_) {
      const int g = static_cast<int>(gpu), hub = 32 + g / 8;
      edges_.insert(edges_.end(), {{g, hub, nvlink}, {hub, g, nvlink}, {g, 36, nic}, {36, g, nic}});
    }
    model_.setLogLevel(0);
    model_.resize(static_cast<int>(edges_.size()), 0);
    std::vector<int> rows;
    std::vector<double> rates;
    for (const Edge& edge : edges_) {
      rows.push_back(static_cast<int>(rows.size()));
      rates.push_back(-edge.rate / 1e9);
      model_.setRowBounds(rows.back(), -COIN_DBL_MAX, 0);
    }
    model_.addColumn(static_cast<int>(rows.size()), rows.data(), rates.data(), 0, COIN_DBL_MAX, 1);
    for (const auto& tensor : tensors) add_class(tensor, detours);
  }

  double seconds() {
    model_.dual();
    EXPECT_EQ(model_.status(), 0);
    return model_.objectiveValue();
  }

 private:
  struct Edge {
    int from, to;
    double rate;
  };

  void add_class(const test::SparseTensor& tensor, bool detours) {
    const auto holds = [&](int vertex) {
      return std::count(tensor.holders.begin(), tensor.holders.end(), static_cast<std::uint32_t>(vertex)) > 0;
    };
    const int usage = model_.numberColumns();
    for (int e = 0; e < static_cast<int>(edges_.size()); ++e) {
      const double one = 1;
      model_.addColumn(1, &e, &one, 0, COIN_DBL_MAX, 0);
    }
    const auto home = tensor.holders.front() / 8;
    const bool sole = std::all_of(tensor.holders.begin(), tensor.holders.end(),
                                  [&](std::uint32_t holder) { return holder / 8 == home; });
    for (const std::uint32_t receiver : tensor.receivers) {
      if (holds(static_cast<int>(receiver))) continue;
      const bool inside = sole && !detours && receiver / 8 == home;
      const int flow = model_.numberColumns();
      for (const Edge& edge : edges_) {
        const bool open = !inside || (edge.from != 36 && edge.to != 36);
        model_.addColumn(0, nullptr, nullptr, 0, open ? COIN_DBL_MAX : 0, 0);
      }
      for (int e = 0; e < static_cast<int>(edges_.size()); ++e) {
        const int columns[] = {usage + e, flow + e};
        const double values[] = {1, -1};
        model_.addRow(2, columns, values, 0, COIN_DBL_MAX);
      }
      for (int vertex = 0; vertex <= 36; ++vertex) {
        if (!holds(vertex))
          add_balance(vertex, flow, vertex == static_cast<int>(receiver) ? tensor.bytes : 0);
      }
    }
  }

  void add_balance(int vertex, int flow, std::int64_t arrives) {
    std::vector<int> columns;
    std::vector<double> values;
    for (int e = 0; e < static_cast<int>(edges_.size()); ++e) {
      const Edge& edge = edges_[to_size(e)];
      if (edge.from != vertex && edge.to != vertex) continue;
      columns.push_back(flow + e);
      values.push_back(edge.to == vertex ? 1 : -1);
    }
    const double amount = static_cast<double>(arrives) * 1e-9;
    if (!columns.empty()) {
      model_.addRow(static_cast<int>(columns.size()), columns.data(), values.data(), amount, amount);
    }
  }

  std::set<std::uint32_t> gpus_;
  std::vector<Edge> edges_;
  ClpSimplex model_;
};

TEST(CertifiedBound, equals_the_exact_program_on_small_refits_and_the_cuts_nearly_always_do) {
  int instances = 0, cuts_exact = 0, exact = 0;
  double worst_cut = 1;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const auto tensors = test::sparse_tensors(seed);
    const Refit refit = test::sparse_refit(tensors);
    const CertifiedBound certified = certified_bound(refit);
    const LowerBound cuts = lower_bound(refit);
    ASSERT_TRUE(certified.verified()) << seed << ": " << certified.refusal;
    ASSERT_TRUE(certified.program_solved) << seed;
    for (const bool detours : {false, true}) {
      const double best = FlowProgram(tensors, detours).seconds();
      const double cut = seconds(detours ? cuts.any_route : cuts.time);
      const double proven = seconds(detours ? certified.bound.any_route : certified.bound.time);
      ASSERT_LE(cut, proven) << seed;
      ASSERT_LE(proven, best * (1 + 1e-6) + 1e-12) << seed << " " << detours;
      if (best == 0) continue;
      ++instances;
      exact += proven >= best * 0.9999 ? 1 : 0;
      cuts_exact += cut >= best * 0.9999 ? 1 : 0;
      worst_cut = std::min(worst_cut, cut / best);
    }
  }
  RecordProperty("worst_cut_per_mille", static_cast<int>(worst_cut * 1000));
  EXPECT_GT(instances, 250);
  EXPECT_EQ(exact, instances);
  EXPECT_GE(cuts_exact * 100, instances * 97) << cuts_exact << " of " << instances;
  EXPECT_GT(worst_cut, 0.9);
}

TEST(CertifiedBound, of_one_domain_alone_has_no_way_out_and_back) {
  // One host: what leaves over a NIC has nowhere to come back from.
  Refit refit = test::sparse_refit({{1'800'000'000, {0}, {1}}}, Relay::any);
  refit.fabric = Fabric({"dgx-h100", 1, std::nullopt, std::nullopt});
  const CertifiedBound certified = certified_bound(refit);
  EXPECT_TRUE(certified.verified()) << certified.refusal;
  EXPECT_NEAR(seconds(certified.bound.any_route), 1.8 / 450, 1e-9);
}

TEST(CertifiedBound, is_zero_and_verified_where_nothing_has_to_move) {
  const CertifiedBound certified = certified_bound(test::sparse_refit({{1000, {0, 1}, {0, 1}}}));
  EXPECT_TRUE(certified.verified()) << certified.refusal;
  EXPECT_EQ(certified.bound.time.value, 0);
}

TEST(CertifiedBound, is_tighter_than_every_cut_on_the_instance_that_shows_it) {
  std::size_t tighter = 0;
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    const CertifiedBound certified = certified_bound(test::sparse_refit(test::sparse_tensors(seed)));
    if (!certified.program_tighter) continue;
    ++tighter;
    EXPECT_NE(certified.bound.binding.find("linear program"), std::string::npos);
  }
  EXPECT_GE(tighter, 1U);
}

RC_GTEST_PROP(CertifiedBound, is_verified_on_any_fabric_however_it_is_broken, ()) {
  Fabric fabric(*arbitrary_topology(4, 3));
  const auto gpus = static_cast<std::uint32_t>(fabric.gpu_count());
  RC_PRE(gpus >= 2 && gpus <= 160);
  const auto some = [gpus](int most) {
    std::set<std::uint32_t> chosen;
    for (int i = 0, count = *rc::gen::inRange(1, most + 1); i < count; ++i) {
      chosen.insert(*rc::gen::inRange<std::uint32_t>(0, gpus));
    }
    return std::vector<std::uint32_t>(chosen.begin(), chosen.end());
  };
  std::vector<test::SparseTensor> tensors;
  for (int i = 0, count = *rc::gen::inRange(1, 4); i < count; ++i) {
    tensors.push_back({*rc::gen::inRange(1, 100) * 1'000'000, some(3), some(6)});
  }
  Refit refit = test::sparse_refit(tensors, *rc::gen::element(Relay::members, Relay::any), gpus);
  refit.fabric = std::move(fabric);
  for (const auto& tensor : tensors) {
    for (const std::uint32_t from : tensor.holders) {
      for (const std::uint32_t to : tensor.receivers) RC_PRE(refit.fabric.reachable({from}, {to}));
    }
  }
  const CertifiedBound certified = certified_bound(refit);
  const LowerBound cuts = lower_bound(refit);
  if (!certified.verified()) RC_FAIL(cuts.binding + ": " + certified.refusal);
  RC_ASSERT(certified.bound.time >= cuts.time);
  RC_ASSERT(certified.bound.any_route >= cuts.any_route);
  RC_ASSERT(certified.bound.time >= certified.bound.any_route);
}

}  // namespace
}  // namespace isthmus

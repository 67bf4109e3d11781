#include "planner/policies/nic_lending.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "planner/policies/balanced_pattern.hpp"
#include "planner/policies/nic_loans.hpp"
#include "planner/policies/port_loads.hpp"

namespace isthmus {
namespace {

/// Instances that share pattern and ranks: what is done for one is done for all.
struct LentBundle {
  std::vector<std::uint32_t> instances;
  StepCuts cuts;
};

/// Cuts a box in two after about `bytes`, along its outermost dimension that is longer than 1.
std::pair<Region, Region> cut_after(const Region& box, Bytes bytes, Bytes all) {
  std::size_t along = 0;
  while (along + 1 < box.dimensions && box.end[along] - box.begin[along] <= 1) ++along;
  const std::int64_t extent = box.end[along] - box.begin[along];
  const Int128 rows = (Int128{extent} * bytes.value + all.value / 2) / std::max<std::int64_t>(1, all.value);
  std::pair<Region, Region> parts{box, box};
  parts.first.end[along] = parts.second.begin[along] =
      box.begin[along] + std::clamp<std::int64_t>(static_cast<std::int64_t>(rows), 0, extent);
  return parts;
}

class NicLending {
 public:
  NicLending(const Refit& refit, Plan& plan)
      : refit_(refit), plan_(plan), rank_of_gpu_(refit.fabric.gpu_count(), 0) {
    for (std::size_t r = refit.ranks(); r-- > 0;)
      rank_of_gpu_[refit.gpu_of_rank[r].index()] = static_cast<std::uint32_t>(r);
  }

  bool lend(Duration least, NicSide side) {
    const std::vector<NicLoan> loans = nic_loans(refit_, port_loads(refit_, plan_), least, side);
    if (loans.empty()) return false;
    find_bundles();
    std::size_t begin = 0;
    for (std::size_t end = 0; begin < loans.size(); begin = end) {
      while (end < loans.size() && loans[end].borrower == loans[begin].borrower) ++end;
      give(loans[begin].borrower,
           {loans.begin() + static_cast<std::ptrdiff_t>(begin),
            loans.begin() + static_cast<std::ptrdiff_t>(end)},
           side);
    }
    rewrite(side);
    return true;
  }

 private:
  struct LentItem {
    int size_class = 0;  // large first
    std::size_t bundle = 0;
    std::uint32_t step = 0;
  };

  const Instance& like(const LentBundle& bundle) const { return plan_.instances[bundle.instances.front()]; }

  void find_bundles() {
    bundles_.clear();
    std::map<std::tuple<PatternId, std::uint32_t, Rank, Rank>, std::size_t> known;
    for (std::uint32_t i = 0; i < plan_.instances.size(); ++i) {
      const Instance& instance = plan_.instances[i];
      const std::uint32_t geometry = refit_.tensors[instance.tensor.index()].geometry;
      const auto [found, added] = known.try_emplace(
          {instance.pattern, geometry, instance.source_base, instance.target_base}, bundles_.size());
      if (added) bundles_.emplace_back();
      bundles_[found->second].instances.push_back(i);
    }
  }

  /// The steps that go through the borrower's NIC, large ones first.
  std::vector<LentItem> items_of(GpuId borrower, NicSide side) const {
    std::vector<LentItem> items;
    for (std::size_t b = 0; b < bundles_.size(); ++b) {
      const Instance& instance = like(bundles_[b]);
      const Pattern& pattern = plan_.pattern(instance);
      const Layout& layout = refit_.geometry(instance.tensor).source;
      for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
        const Step& step = pattern.steps[s];
        const LocalRank end = side == NicSide::out ? step.source : step.target;
        if (step.lane != network_lane || refit_.gpu(global_rank(instance, end)) != borrower) continue;
        const auto bytes = static_cast<std::uint64_t>(layout.bytes(step.region).value);
        items.push_back({static_cast<int>(std::bit_width(bytes)), b, s});
      }
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const LentItem& a, const LentItem& b) { return a.size_class > b.size_class; });
    return items;
  }

  void give(GpuId borrower, std::vector<NicLoan> loans, NicSide side) {
    auto loan = loans.begin();
    for (const LentItem& item : items_of(borrower, side)) {
      LentBundle& bundle = bundles_[item.bundle];
      const auto count = static_cast<std::int64_t>(bundle.instances.size());
      const Layout& layout = refit_.geometry(like(bundle).tensor).source;
      std::vector<StepPiece> pieces;
      Region rest = plan_.pattern(like(bundle)).steps[item.step].region;
      while (!rest.empty() && loan != loans.end()) {
        const Bytes bytes = layout.bytes(rest), wanted{loan->bytes.value / count};
        auto [lent, left] = cut_after(rest, std::min(wanted, bytes), bytes);
        loan->bytes -= layout.bytes(lent) * count;
        if (!lent.empty()) pieces.push_back({lent, loan->lender});
        if (!left.empty()) ++loan;
        rest = left;
      }
      if (!rest.empty()) pieces.push_back({rest, std::nullopt});
      if (!pieces.empty() && pieces.front().lender) bundle.cuts.emplace(item.step, std::move(pieces));
      if (loan == loans.end()) return;
    }
  }

  void rewrite(NicSide side) {
    for (const LentBundle& bundle : bundles_) {
      if (bundle.cuts.empty()) continue;
      const PatternId id{static_cast<std::uint32_t>(plan_.patterns.size())};
      Pattern lent =
          lent_pattern(refit_, plan_.pattern(like(bundle)), like(bundle), side, rank_of_gpu_, bundle.cuts);
      plan_.patterns.push_back(std::move(lent));
      for (const std::uint32_t i : bundle.instances) {
        plan_.instances[i].pattern = id;
        plan_.instances[i].source_base = {};
      }
    }
  }

  const Refit& refit_;
  Plan& plan_;
  std::vector<std::uint32_t> rank_of_gpu_;  // the first of each GPU
  std::vector<LentBundle> bundles_;
};

}  // namespace

void drop_unused_patterns(Plan& plan) {
  std::vector<std::uint32_t> number(plan.patterns.size());
  for (const Instance& instance : plan.instances) number[instance.pattern.index()] = 1;
  std::vector<Pattern> used;
  for (std::size_t p = 0; p < number.size(); ++p) {
    if (number[p] == 0) continue;
    number[p] = static_cast<std::uint32_t>(used.size());
    used.push_back(std::move(plan.patterns[p]));
  }
  plan.patterns = std::move(used);
  for (Instance& instance : plan.instances) instance.pattern = {number[instance.pattern.index()]};
}

bool lend_nics(const Refit& refit, Duration least, Plan& plan) {
  if (refit.fabric.topology().routing.pxn) return false;  // senders' NICs are chosen by the receiver's rail
  const PortLoads loads = port_loads(refit, plan);
  if (nic_loans(refit, loads, least, NicSide::in).empty() &&
      nic_loans(refit, loads, least, NicSide::out).empty())
    return false;
  Plan lent = plan;
  NicLending lending(refit, lent);
  const bool in = lending.lend(least, NicSide::in), out = lending.lend(least, NicSide::out);
  if (!in && !out) return false;
  const double before = seconds(busiest_link(refit, plan)), after = seconds(busiest_link(refit, lent));
  if (!worthwhile_loan(before, after)) return false;
  drop_unused_patterns(lent);
  lent.lanes.push_back({"lending", lending_window, true});
  plan = std::move(lent);
  return true;
}

}  // namespace isthmus

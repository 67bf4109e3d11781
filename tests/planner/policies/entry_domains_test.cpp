#include "planner/policies/entry_domains.hpp"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/refit_generator.hpp"

namespace isthmus {
namespace {

/// Ranks four GPUs apart, so that two share a host, or on 16 GPUs in order.
Refit on_small_hosts(const test::RefitCase& refit_case) {
  Refit refit = test::make_refit(refit_case);
  refit.fabric = Fabric({"dgx-h100", 16, std::nullopt, std::nullopt});
  if (*rc::gen::arbitrary<bool>()) return refit;
  for (std::uint32_t rank = 0; rank < refit.gpu_of_rank.size(); ++rank)
    refit.gpu_of_rank[rank] = GpuId{(rank * 4) % 128 + rank * 4 / 128};
  return refit;
}

RC_GTEST_PROP(EntryDomains, hold_each_receiver_in_need_and_each_holder_beside_it_once, ()) {
  const Refit refit = on_small_hosts(*test::refit_cases());
  const auto home = [&](std::uint32_t rank) { return refit.fabric.domain_of(refit.gpu(Rank{rank})); };
  for (const RefitEntry& entry : refit.tensors) {
    const Cells cells = cells_of(refit.geometries[entry.geometry]);
    EntryDomains domains(refit, cells, entry.source_base, entry.target_base);
    for (const Cell& cell : cells.list) {
      std::set<std::uint32_t> holders;  // global
      for (const std::uint32_t holder : cells.sources[cell.source].holders)
        holders.insert(entry.source_base.value + holder);
      std::set<std::uint32_t> needy, served;
      for (const std::uint32_t receiver : cells.targets[cell.target].holders)
        if (!holders.contains(entry.target_base.value + receiver)) needy.insert(receiver);
      std::set<DomainId> seen;
      for (const EntryDomain& each : domains.of(cell)) {
        RC_ASSERT(seen.insert(each.domain).second);
        RC_ASSERT(!each.receivers.empty());
        for (const std::uint32_t receiver : each.receivers) {
          RC_ASSERT(home(entry.target_base.value + receiver) == each.domain);
          RC_ASSERT(served.insert(receiver).second);
        }
        const auto beside = std::count_if(holders.begin(), holders.end(),
                                          [&](std::uint32_t rank) { return home(rank) == each.domain; });
        RC_ASSERT(static_cast<std::ptrdiff_t>(each.holders.size()) == beside);
        for (const std::uint32_t holder : each.holders)
          RC_ASSERT(home(entry.source_base.value + holder) == each.domain);
      }
      RC_ASSERT(served == needy);
    }
  }
}

}  // namespace
}  // namespace isthmus

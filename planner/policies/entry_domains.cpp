#include "planner/policies/entry_domains.hpp"

#include <algorithm>

namespace isthmus {

EntryDomains::EntryDomains(const Refit& refit, const Cells& cells, Rank source_base, Rank target_base)
    : refit_(refit),
      cells_(cells),
      source_base_(source_base),
      target_base_(target_base),
      of_target_(cells.targets.size()) {
  std::vector<char> holding(refit.fabric.domain_count());
  for (const Shard& shard : cells.sources)
    for (const std::uint32_t holder : shard.holders) holding[domain(source_base.value + holder).index()] = 1;
  for (const Shard& shard : cells.targets)
    for (const std::uint32_t receiver : shard.holders)
      meet_ |= holding[domain(target_base.value + receiver).index()] != 0;
}

const std::vector<EntryDomain>& EntryDomains::of(const Cell& cell) {
  std::vector<EntryDomain>& known = of_target_[cell.target];
  if (meet_ || known.empty()) known = find(cell);
  return known;
}

std::vector<EntryDomain> EntryDomains::find(const Cell& cell) const {
  const std::vector<std::uint32_t>& holders = cells_.sources[cell.source].holders;
  std::vector<EntryDomain> domains;
  for (const std::uint32_t receiver : cells_.targets[cell.target].holders) {
    const Rank rank{target_base_.value + receiver};
    const bool holds = std::any_of(holders.begin(), holders.end(), [&](std::uint32_t holder) {
      return source_base_.value + holder == rank.value;
    });
    if (holds) continue;
    const DomainId home = domain(rank.value);
    const auto known = std::find_if(domains.begin(), domains.end(),
                                    [home](const EntryDomain& entry) { return entry.domain == home; });
    if (known != domains.end()) {
      known->receivers.push_back(receiver);
    } else {
      domains.push_back({home, {receiver}, {}});
    }
  }
  for (EntryDomain& entry : domains) {
    for (const std::uint32_t holder : holders) {
      if (domain(source_base_.value + holder) == entry.domain) entry.holders.push_back(holder);
    }
  }
  return domains;
}

std::uint32_t rail_of(const Fabric& fabric, GpuId gpu) {
  constexpr std::uint32_t no_rail = 0xFFFFFFFF;
  return fabric.switch_of(gpu).value_or(no_rail);
}

bool spines_bind(const Fabric& fabric) {
  Int128 uplinks = 0, nics = 0;
  for (const Link& link : fabric.links()) {
    if (link.link_class == LinkClass::switch_uplink) uplinks += link.nominal.value;
    if (link.link_class == LinkClass::nic) nics += link.nominal.value;
  }
  return uplinks < nics;
}

}  // namespace isthmus

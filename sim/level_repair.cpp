// The repair of Levels: what a resource does when its level may have changed.

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "model/error.hpp"
#include "sim/levels.hpp"

namespace isthmus::sim {

/// The level that fits what the resource owns at present: never above the right one.
std::uint64_t Levels::candidate(std::uint32_t index) const {
  const Resource& resource = resources_[index];
  if (resource.left < 0) {
    const Uint128 whole = capacities_[index] / progress_[index].whole_load;
    return static_cast<std::uint64_t>(std::min<Uint128>(whole, highest));
  }
  if (resource.load == 0) return unlimited;
  // Rounding down twice is rounding down once, and most loads are multiples of 2^20.
  const int shift = std::countr_zero(resource.load);
  const std::uint64_t load = resource.load >> shift;
  const Uint128 left = static_cast<Uint128>(resource.left) >> shift;
  if (left >> 64U == 0) return std::min(static_cast<std::uint64_t>(left) / load, highest);
  return static_cast<std::uint64_t>(std::min<Uint128>(left / load, highest));
}

/// Moves a class to another owner, with its mark.
void Levels::move(std::uint32_t flow_class, std::uint32_t to) {
  Route& route = routes_[flow_class];
  const std::uint32_t from = route.owner;
  const std::uint32_t old_owner = links_[from].resource, new_owner = links_[to].resource;
  touch(old_owner);
  touch(new_owner);
  const Uint128 shift = progress_[new_owner].service - progress_[old_owner].service;
  const Uint128 mark = marks_[links_[from].slot] + shift;
  route.entered += shift;
  Resource &before = resources_[old_owner], &after = resources_[new_owner];
  const auto old_level = static_cast<std::int64_t>(posted(before));
  const auto new_level = static_cast<std::int64_t>(posted(after));
  const std::uint64_t old_load = links_[from].weight * route.flows;
  const std::uint64_t new_load = links_[to].weight * route.flows;
  before.load -= old_load;
  before.left -= Int128{new_level} * static_cast<std::int64_t>(old_load);
  if (after.level != unlimited) before.frozen_bound = std::max(before.frozen_bound, after.level);
  after.load += new_load;
  after.left += Int128{old_level} * static_cast<std::int64_t>(new_load);
  disown(from);
  own(to, mark);
  route.owner = to;
  if (route.end - route.first > 2) load_elsewhere(route, from, new_level - old_level, after.level);
  wait(old_owner);
  wait(new_owner);
}

/// Takes the frozen classes over whose owners are above `level`.
bool Levels::take_higher(std::uint32_t index, std::uint64_t level) {
  Resource& resource = resources_[index];
  bool taken = false;
  std::uint64_t bound = 0;
  for (std::uint32_t slot = resource.first + resource.owned; slot < resource.first + resource.entries;
       ++slot) {
    const Entry& entry = entries_[slot];
    const std::uint32_t flow_class = links_[entry.usage].flow_class;
    const std::uint32_t owner =
        entry.other != several ? entry.other : links_[routes_[flow_class].owner].resource;
    const std::uint64_t other = resources_[owner].level;
    if (other <= level) {
      bound = std::max(bound, other);
      continue;
    }
    move(flow_class, entry.usage);  // swaps a frozen one that has been seen into this slot
    taken = true;
  }
  resource.frozen_bound = bound;
  return taken;
}

/// Gives the owned classes away that have a resource below `level`.
bool Levels::give_lower(std::uint32_t index, std::uint64_t level) {
  const Resource& resource = resources_[index];
  bool given = false;
  for (std::uint32_t i = resource.owned; i-- > 0;) {
    const Entry entry = entries_[resource.first + i];
    if (entry.other != several && resources_[entry.other].level >= level) continue;
    const std::uint32_t flow_class = links_[entry.usage].flow_class;
    const std::uint32_t to = lowest(routes_[flow_class]);
    if (resources_[links_[to].resource].level >= level || to == entry.usage) continue;
    move(flow_class, to);
    given = true;
  }
  return given;
}

/// Splits the classes again at a level that fell: Newton's method from below.
std::uint64_t Levels::exchange(std::uint32_t index, std::uint64_t level) {
  Resource& resource = resources_[index];
  resource.waiting = true;  // it is at work: moves need not put it in the order
  while (level < resource.frozen_bound || resource.left < 0) {
    if (!take_higher(index, level)) break;
    level = candidate(index);
    if (give_lower(index, level)) level = candidate(index);
  }
  resource.waiting = false;
  return level;
}

/// Takes what is above a level that is settled.
void Levels::exchange_above(std::uint32_t index, std::uint64_t level) {
  resources_[index].waiting = true;
  take_higher(index, level);
  resources_[index].waiting = false;
}

/// The level that fits where classes frozen here are as low or nearly so: the lowest v with
///     sum over frozen classes of  load x (a < v ? a : v + 1)  +  owned load x (v + 1)  >  capacity,
/// a being their levels. It differs from `level` by less than a unit per class, and makes rates depend on
/// who is active only: without it the owner of a tied class would leave its remainder to the others.
std::uint64_t Levels::tied(std::uint32_t index, std::uint64_t level) {
  Resource& resource = resources_[index];
  const std::uint64_t frozen = progress_[index].whole_load - resource.load;
  const auto left = static_cast<Uint128>(resource.left);
  if (Uint128{resource.load} * (Uint128{resource.frozen_bound} + 1) + frozen <= left) return level;
  // Those count for which  owned load x (a + 1) + frozen load > left.
  const Uint128 from = left < frozen ? 0 : (left - frozen) / resource.load;
  std::uint64_t bound = 0;
  near_.clear();
  for (std::uint32_t slot = resource.first + resource.owned; slot < resource.first + resource.entries;
       ++slot) {
    const Entry& entry = entries_[slot];
    const std::uint32_t owner =
        entry.other != several ? entry.other : links_[routes_[links_[entry.usage].flow_class].owner].resource;
    const std::uint64_t other = resources_[owner].level;
    if (other != unlimited) bound = std::max(bound, other);
    if (other > level || other < from) continue;
    const RouteLink& link = links_[entry.usage];
    near_.emplace_back(other, link.weight * routes_[link.flow_class].flows);
  }
  resource.frozen_bound = bound;
  if (near_.empty()) return level;
  std::sort(near_.begin(), near_.end());
  Uint128 above = 0;  // load x level, of those above
  for (const auto& [other, load] : near_) above += Uint128{load} * other;
  std::uint64_t load_above = resource.load;
  for (const auto& [other, load] : near_) load_above += load;
  for (std::size_t i = 0; i < near_.size();) {
    const std::uint64_t v = near_[i].first;
    // With `left` and the level of the near ones taken out: all of them from here on at v + 1.
    if (Uint128{load_above} * (Uint128{v} + 1) > left + above) return v;
    for (; i < near_.size() && near_[i].first == v; ++i) {
      above -= Uint128{near_[i].second} * v;
      load_above -= near_[i].second;
    }
  }
  return level;
}

/// Tells the other resources of owned classes that these run at another level now.
void Levels::post(std::uint32_t index, std::uint64_t level, std::int64_t change) {
  Resource* const resources = resources_.data();
  std::uint32_t* const marked = marked_.data();
  std::size_t count = 0;
  bool lower = false;
  // Written without branches on what the other resource looks like: those are unpredictable.
  const auto tell = [=](std::uint32_t other, std::uint64_t load, std::size_t& end, bool& below) {
    Resource& told = resources[other];
    const Int128 left = told.left - Int128{change} * static_cast<std::int64_t>(load);
    told.left = left;
    told.frozen_bound = std::max(told.frozen_bound, level);
    below |= told.level < level;
    const bool limits = (told.level != unlimited) | (left < 0);
    const bool mark = limits & !told.waiting;
    told.waiting |= mark;
    marked[end] = other;
    end += mark ? 1 : 0;
  };
  const Entry* entry = entries_.data() + resources[index].first;
  for (const Entry* const end = entry + resources[index].owned; entry != end; ++entry) {
    if (entry->other != several) {
      tell(entry->other, entry->load, count, lower);
      continue;
    }
    const Route& route = routes_[links_[entry->usage].flow_class];
    for (std::uint32_t u = route.first; u < route.end; ++u) {
      if (u != entry->usage) tell(links_[u].resource, links_[u].weight * route.flows, count, lower);
    }
  }
  for (std::size_t m = 0; m < count; ++m) order_.add(marked[m], resources[marked[m]].level);
  if (lower) give_lower(index, level);
}

void Levels::commit(std::uint32_t index) {
  Resource& resource = resources_[index];
  const std::uint64_t old = resource.level;
  std::uint64_t level = candidate(index);
  if (level == old && resource.left >= 0 && resource.frozen_bound < old) return;
  if (resource.left < 0 || (level < old && level < resource.frozen_bound)) level = exchange(index, level);
  if (resource.owned > 0 && resource.entries > resource.owned) {
    const std::uint64_t fair = tied(index, level);
    if (fair < level && fair < resource.frozen_bound) exchange_above(index, fair);
    level = fair;
  }
  if (level == old) return;
  touch(index);
  const std::uint64_t was = posted(resource);
  resource.level = level;
  if (resource.owned == 0) return;
  post(index, level, static_cast<std::int64_t>(level) - static_cast<std::int64_t>(was));
}

void Levels::repair() {
  const std::uint64_t resources = resources_.size() + 4;
  const std::uint64_t strict_from = commits_ + patience_ * resources;
  const std::uint64_t end = strict_from + (1000 + 4 * resources) * resources;  // near-ties take resources^2
  while (!order_.empty()) {
    if (commits_ == strict_from) {  // levels of one bucket may go round for ever
      order_.strict(true);
      ++strict_repairs_;
    }
    const std::uint32_t index = order_.pop();
    resources_[index].waiting = false;
    commit(index);
    ++commits_;
    ISTHMUS_ASSERT(commits_ < end, "levels do not settle");
  }
  order_.strict(false);
  for (const std::uint32_t index : touched_) find_key(index);
  touched_.clear();
}

}  // namespace isthmus::sim

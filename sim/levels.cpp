#include "sim/levels.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "model/error.hpp"

namespace isthmus::sim {

std::uint32_t Levels::add_resource(Uint128 capacity) {
  resources_.emplace_back();
  resources_.back().left = static_cast<Int128>(capacity);
  progress_.emplace_back();
  capacities_.push_back(capacity);
  return static_cast<std::uint32_t>(resources_.size() - 1);
}

std::uint32_t Levels::add_class(std::span<const Load> loads, std::uint64_t cap) {
  const auto index = static_cast<std::uint32_t>(routes_.size());
  routes_.emplace_back();
  routes_.back().cap = cap;
  routes_.back().first = static_cast<std::uint32_t>(links_.size());
  for (const Load& load : loads) links_.push_back({load.weight, load.resource, index, 0});
  if (cap != unlimited) links_.push_back({0, several, index, 0});
  routes_.back().end = static_cast<std::uint32_t>(links_.size());
  return index;
}

void Levels::prepare() {
  // A cap is a resource of its own that never changes its level: it is kept out of the order of repairs.
  const auto constant = [this](std::uint64_t level) {
    const std::uint32_t resource = add_resource(0);
    resources_[resource].level = level;
    resources_[resource].waiting = true;
    return resource;
  };
  for (const Route& route : routes_) {
    if (route.cap != unlimited) links_[route.end - 1].resource = constant(route.cap);
  }
  const std::uint32_t nowhere = constant(unlimited);  // the other resource of a class with one
  for (const RouteLink& link : links_) ++resources_[link.resource].entries;
  std::uint32_t next = 0;
  for (Resource& resource : resources_) {
    resource.first = next;
    next += resource.entries;
    resource.entries = 0;  // of classes without flows
  }
  entries_.resize(next);
  marks_.resize(next);
  for (const Route& route : routes_) {
    for (std::uint32_t u = route.first; u < route.end; ++u) {
      links_[u].other = several;
      if (route.end - route.first == 1) links_[u].other = nowhere;
      if (route.end - route.first == 2) links_[u].other = links_[route.first + route.end - 1 - u].resource;
    }
  }
  marked_.resize(resources_.size() + 1);
  order_.resize(resources_.size());
  keys_.resize(resources_.size());
  prepared_ = true;
}

/// Marks stay where they are.
void Levels::swap_entries(std::uint32_t a, std::uint32_t b) {
  if (a == b) return;
  std::swap(entries_[a], entries_[b]);
  links_[entries_[a].usage].slot = a;
  links_[entries_[b].usage].slot = b;
}

/// From the frozen part to the owned one.
void Levels::own(std::uint32_t usage, Uint128 mark) {
  const RouteLink& link = links_[usage];
  Resource& resource = resources_[link.resource];
  swap_entries(link.slot, resource.first + resource.owned);
  ++resource.owned;
  marks_[link.slot] = mark;
  Progress& progress = progress_[link.resource];
  if (resource.owned == 1 || (progress.first_known && mark < progress.first_mark)) {
    progress.first_mark = mark;
    progress.first_known = true;
  }
}

void Levels::disown(std::uint32_t usage) {
  const RouteLink& link = links_[usage];
  Resource& resource = resources_[link.resource];
  Progress& progress = progress_[link.resource];
  if (marks_[link.slot] == progress.first_mark) progress.first_known = false;
  const std::uint32_t last = resource.first + --resource.owned;
  marks_[link.slot] = marks_[last];
  swap_entries(link.slot, last);
}

std::uint32_t Levels::lowest(const Route& route) const {
  std::uint32_t best = route.first;
  for (std::uint32_t u = route.first + 1; u < route.end; ++u) {
    if (resources_[links_[u].resource].level < resources_[links_[best].resource].level) best = u;
  }
  return best;
}

std::uint64_t Levels::load_on_other(const Route& route, std::uint32_t usage) const {
  return route.end - route.first == 2 ? links_[route.first + route.end - 1 - usage].weight * route.flows : 0;
}

/// As a frozen one.
void Levels::append(const Route& route, std::uint32_t usage) {
  RouteLink& link = links_[usage];
  Resource& resource = resources_[link.resource];
  link.slot = resource.first + resource.entries++;
  entries_[link.slot] = {link.other, usage, load_on_other(route, usage)};
}

/// Takes a frozen one out.
void Levels::remove(std::uint32_t usage) {
  const RouteLink& link = links_[usage];
  Resource& resource = resources_[link.resource];
  const Entry& last = entries_[resource.first + --resource.entries];
  entries_[link.slot] = last;
  links_[last.usage].slot = link.slot;
}

/// What the resources of a route other than the owner's carry at the owner's level: more by `change`.
void Levels::load_elsewhere(const Route& route, std::uint32_t except, std::int64_t change,
                            std::uint64_t level) {
  for (std::uint32_t u = route.first; u < route.end; ++u) {
    if (u == route.owner || u == except) continue;
    Resource& resource = resources_[links_[u].resource];
    resource.left -= Int128{change} * static_cast<std::int64_t>(links_[u].weight * route.flows);
    if (level != unlimited) resource.frozen_bound = std::max(resource.frozen_bound, level);
    if (resource.level != unlimited || resource.left < 0) wait(links_[u].resource);
  }
}

void Levels::enter(std::uint32_t flow_class, Uint128 mark) {
  Route& route = routes_[flow_class];
  route.flows = 1;
  route.owner = lowest(route);
  for (std::uint32_t u = route.first; u < route.end; ++u) {
    append(route, u);
    progress_[links_[u].resource].whole_load += links_[u].weight;
  }
  const std::uint32_t owner = links_[route.owner].resource;
  touch(owner);
  route.entered = progress_[owner].service;
  own(route.owner, route.entered + mark);
  resources_[owner].load += links_[route.owner].weight;
  wait(owner);
  const std::uint64_t level = posted(resources_[owner]);
  load_elsewhere(route, route.owner, static_cast<std::int64_t>(level), resources_[owner].level);
}

void Levels::recount(std::uint32_t flow_class, std::uint32_t flows) {
  Route& route = routes_[flow_class];
  if (flows == route.flows) return;
  const std::uint32_t owner = links_[route.owner].resource;
  const auto level = static_cast<std::int64_t>(posted(resources_[owner]));
  load_elsewhere(route, route.owner, -level, unlimited);
  for (std::uint32_t u = route.first; u < route.end; ++u) {
    progress_[links_[u].resource].whole_load += links_[u].weight * (std::uint64_t{flows} - route.flows);
  }
  resources_[owner].load += links_[route.owner].weight * (std::uint64_t{flows} - route.flows);
  route.flows = flows;
  for (std::uint32_t u = route.first; u < route.end; ++u) {
    entries_[links_[u].slot].load = load_on_other(route, u);
  }
  load_elsewhere(route, route.owner, level, unlimited);
  wait(owner);
}

void Levels::remark(std::uint32_t flow_class, Uint128 mark) {
  const Route& route = routes_[flow_class];
  const RouteLink& link = links_[route.owner];
  touch(link.resource);
  Progress& progress = progress_[link.resource];
  Uint128& known = marks_[link.slot];
  if (known == progress.first_mark) progress.first_known = false;
  known = route.entered + mark;
  if (progress.first_known && known < progress.first_mark) progress.first_mark = known;
}

void Levels::leave(std::uint32_t flow_class) {
  Route& route = routes_[flow_class];
  const std::uint32_t owner = links_[route.owner].resource;
  touch(owner);
  load_elsewhere(route, route.owner, -static_cast<std::int64_t>(posted(resources_[owner])), unlimited);
  resources_[owner].load -= links_[route.owner].weight * route.flows;
  disown(route.owner);
  wait(owner);
  for (std::uint32_t u = route.first; u < route.end; ++u) {
    remove(u);
    progress_[links_[u].resource].whole_load -= links_[u].weight * route.flows;
  }
  route.flows = 0;
}

void Levels::set_capacity(std::uint32_t resource, Uint128 capacity) {
  Resource& changed = resources_[resource];
  changed.left += static_cast<Int128>(capacity) - static_cast<Int128>(capacities_[resource]);
  capacities_[resource] = capacity;
  if (prepared_) wait(resource);
}

Uint128 Levels::service(std::uint32_t flow_class) {
  const Route& route = routes_[flow_class];
  const std::uint32_t owner = links_[route.owner].resource;
  touch(owner);
  return progress_[owner].service - route.entered;
}

std::uint64_t Levels::rate(std::uint32_t flow_class) const {
  const Route& route = routes_[flow_class];
  return route.flows == 0 ? 0 : posted(resources_[links_[route.owner].resource]);
}

void Levels::advance(Instant now, std::vector<std::uint32_t>& due) {
  now_ = now;
  keys_.up_to(now.value, [&](std::uint32_t index) {
    touch(index);
    const Resource& resource = resources_[index];
    const Uint128 service = progress_[index].service;
    for (std::uint32_t slot = resource.first; slot < resource.first + resource.owned; ++slot) {
      if (marks_[slot] <= service) due.push_back(links_[entries_[slot].usage].flow_class);
    }
  });
}

void Levels::find_key(std::uint32_t index) {
  Resource& resource = resources_[index];
  resource.touched = false;
  if (resource.owned == 0 || resource.level == 0) return keys_.set(index, Earliest::never);
  Progress& progress = progress_[index];
  if (!progress.first_known) {
    const auto begin = marks_.begin() + resource.first;
    progress.first_mark = *std::min_element(begin, begin + resource.owned);
    progress.first_known = true;
  }
  const Uint128 missing = progress.first_mark - progress.service;
  if (missing > endless / 2) return keys_.set(index, Earliest::never);
  const Uint128 wait = (missing + resource.level - 1) / resource.level;
  ISTHMUS_ASSERT(wait < (Uint128{1} << 62U), "a flow would take more than 53 days");
  keys_.set(index, now_.value + static_cast<std::int64_t>(wait));
}

}  // namespace isthmus::sim

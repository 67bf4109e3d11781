#pragma once
// Policies build a pattern once per distinct situation and bind it to many tensors. A situation is a small
// tuple of numbers that the policy chooses (geometry, distance of the bases, rotation, ...): equal key, equal
// pattern.

#include <functional>
#include <map>
#include <vector>

#include "planner/plan.hpp"

namespace isthmus {

class PatternCache {
 public:
  using Key = std::vector<std::int64_t>;
  explicit PatternCache(Plan& plan) : plan_(plan) {}

  PatternId get(const Key& key, const std::function<Pattern()>& build) {
    const auto known = ids_.find(key);
    if (known != ids_.end()) return known->second;
    const PatternId id{static_cast<std::uint32_t>(plan_.patterns.size())};
    plan_.patterns.push_back(build());
    ids_.emplace(key, id);
    return id;
  }

 private:
  Plan& plan_;
  std::map<Key, PatternId> ids_;
};

}  // namespace isthmus

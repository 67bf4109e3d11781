#include "model/m2n_limits.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

/// A fault at the key of a scenario.
struct KeyedFault {
  std::string key, found, allowed, change;
};

class Judge {
 public:
  Judge(const Scenario& scenario, const Refit& refit) : scenario_(scenario), refit_(refit) {}

  std::vector<InputFault> run() {
    for (std::size_t i = 0; i < refit_.tensors.size(); ++i) {
      if (refit_.tensors[i].tensor.role == Role::bulk) judge(i);
    }
    std::vector<InputFault> faults;
    for (const Group& group : groups_) {
      const std::string others =
          group.tensors == 1 ? "" : fmt::format(" (and {} more tensors)", group.tensors - 1);
      faults.push_back(
          {scenario_.at(group.fault.key),
           fmt::format("tensor {}: {}{}", printable(group.first_tensor), group.fault.found, others),
           group.fault.allowed, group.fault.change});
    }
    return faults;
  }

 private:
  struct Group {
    KeyedFault fault;
    std::string first_tensor;
    std::size_t tensors = 0;
  };

  std::string key(std::size_t tensor, bool source) const {
    if (scenario_.model) {
      const std::string side = source ? "train" : "generate";
      return side +
             (refit_.tensors[tensor].tensor.expert && (source || scenario_.generate->ep > 1) ? ".ep" : ".tp");
    }
    return tensor_key(scenario_, refit_.tensors[tensor].declared, source ? "source" : "target");
  }

  void judge(std::size_t tensor) {
    const RefitEntry& entry = refit_.tensors[tensor];
    // Equal geometry, bases and keys give equal faults: judged once for all such tensors.
    const auto same = std::tuple(entry.geometry, entry.source_base, entry.target_base, entry.tensor.expert);
    const auto [known, is_new] = judged_.try_emplace(same);
    if (is_new) known->second = m2n_faults(refit_, entry);
    for (const M2nFault& fault : known->second)
      add({key(tensor, fault.source), fault.found, fault.allowed, fault.change}, entry.tensor.name);
  }

  void add(const KeyedFault& fault, const std::string& tensor) {
    const auto group = std::find_if(groups_.begin(), groups_.end(), [&](const Group& other) {
      return other.fault.key == fault.key && other.fault.allowed == fault.allowed;
    });
    if (group == groups_.end()) {
      groups_.push_back({fault, tensor, 1});
    } else {
      ++group->tensors;
    }
  }

  const Scenario& scenario_;
  const Refit& refit_;
  std::map<std::tuple<std::uint32_t, Rank, Rank, bool>, std::vector<M2nFault>> judged_;
  std::vector<Group> groups_;
};

}  // namespace

std::vector<InputFault> m2n_faults(const Scenario& scenario, const Refit& refit) {
  return Judge(scenario, refit).run();
}

}  // namespace isthmus

#include "report/operation_tensors.hpp"

#include <algorithm>

namespace isthmus::report {

std::vector<std::vector<TensorId>> tensors_of(const Plan& plan, const Operations& operations) {
  std::vector<std::vector<TensorId>> tensors(operations.list.size());
  std::size_t step = 0;
  for (const Instance& instance : plan.instances) {
    const std::size_t count = plan.pattern(instance).steps.size();
    for (std::size_t s = 0; s < count; ++s, ++step) {
      std::vector<TensorId>& of = tensors[operations.of_step[step]];
      if (of.empty() || of.back() != instance.tensor) of.push_back(instance.tensor);
    }
  }
  return tensors;
}

std::string_view carrier_of(const Refit& refit, const Operations& operations, std::uint32_t operation) {
  const Operation& what = operations.list[operation];
  if (is_local(what.kind)) return "memory";
  const auto domain = [&](Rank rank) { return refit.fabric.domain_of(refit.gpu(rank)); };
  const DomainId from = domain(what.source);
  bool leaves = domain(what.target) != from;
  if (operations.collective(what)) {
    const std::vector<Rank>& members = operations.members[what.members];
    leaves = std::any_of(members.begin(), members.end(), [&](Rank rank) { return domain(rank) != from; });
  }
  return leaves ? "network wire" : "NVLink wire";
}

}  // namespace isthmus::report

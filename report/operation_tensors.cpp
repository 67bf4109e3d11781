#include "report/operation_tensors.hpp"

#include "report/timeline_view.hpp"

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
  return leaves_domain(refit, operations, what) ? "network wire" : "NVLink wire";
}

}  // namespace isthmus::report

#pragma once
// What stands behind the operations of a plan, for those who talk about them: which tensors each moves,
// and what carries it. Operations join steps of several tensors where their lane coalesces; most move one.
// Invariant: the list of each operation is not empty, and in the order of the plan's instances.

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/refit.hpp"
#include "planner/operations.hpp"
#include "planner/plan.hpp"

namespace isthmus::report {

std::vector<std::vector<TensorId>> tensors_of(const Plan& plan, const Operations& operations);

/// "network wire" where a rank is in another NVLink domain than the source, "NVLink wire" within one, and
/// "memory".
std::string_view carrier_of(const Refit& refit, const Operations& operations, std::uint32_t operation);

}  // namespace isthmus::report

#include "model/input_fault.hpp"

#include <fmt/format.h>

namespace isthmus {

InputFault as_fault(const InputError& error, std::string change) {
  return {error.where(), error.found(), error.allowed(), std::move(change)};
}

namespace {

InputError as_error(const InputFault& fault) {
  if (fault.allowed.empty()) return {fault.where, fault.found};
  return {fault.where, fault.found, fault.allowed};
}

}  // namespace

void raise_first(const std::vector<InputFault>& faults) {
  if (!faults.empty()) throw as_error(faults.front());
}

void raise_all(const std::vector<InputFault>& faults) {
  if (faults.empty()) return;
  std::vector<InputError> errors;
  for (const InputFault& fault : faults) errors.push_back(as_error(fault));
  throw InputError(errors);
}

std::string nearest_divisors(std::int64_t value, std::int64_t number) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t small = 1; small <= number / small; ++small) {
    if (number % small != 0) continue;
    for (const std::int64_t divisor : {small, number / small}) {
      if (divisor < value && divisor > below) below = divisor;
      if (divisor > value && (above == 0 || divisor < above)) above = divisor;
    }
  }
  if (below == 0 || above == 0) return fmt::format("{}", below + above);
  return fmt::format("{} or {}", below, above);
}

std::string nearest_multiples(std::int64_t value, std::int64_t step) {
  const std::int64_t below = value / step * step;
  if (below == 0) return fmt::format("{}", step);
  return fmt::format("{} or {}", below, below + step);
}

}  // namespace isthmus

#pragma once
// A fault in someone's input as a value: what stands where, what is allowed there, and the smallest change
// that would satisfy the rule. Rules that span several keys give lists of these, so that a validator shows
// every one of them; whoever cannot go on raises the first as InputError. A rule is thus written once.
// Invariant: `change` speaks of new values, never of the rule; it is empty only where no value would do.

#include <cstdint>
#include <string>
#include <vector>

#include "model/error.hpp"

namespace isthmus {

struct InputFault {
  Location where;  // where.key names the setting at fault
  std::string found, allowed, change;
  friend bool operator==(const InputFault& a, const InputFault& b) {
    return a.where.key == b.where.key && a.found == b.found && a.allowed == b.allowed && a.change == b.change;
  }
};

/// What a reader raised, as a value.
InputFault as_fault(const InputError& error, std::string change = "");
/// Raises the first fault as InputError, if there is one.
void raise_first(const std::vector<InputFault>& faults);
/// Raises them all as one InputError of one line each, if there are any.
void raise_all(const std::vector<InputFault>& faults);

/// The divisors of `number` next to `value`, below and above: "16 or 32".
std::string nearest_divisors(std::int64_t value, std::int64_t number);
/// The positive multiples of `step` next to `value`: "240 or 256".
std::string nearest_multiples(std::int64_t value, std::int64_t step);

}  // namespace isthmus

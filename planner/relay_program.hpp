#pragma once
// The fastest that any plan with relays can be, as a linear program over fractions of classes: usage u(a, l)
// of link l by class a (holders H, receivers R, w bytes), in units of w;
//     min T   with   sum over a of w * u(a, l) <= T * capacity(l)   for every link,
//                    sum of u(a, l) over links into S >= 1          for every a and every set S of vertices
//                                                                   with a receiver and no holder.
// The sets are found as they are violated (a minimum cut per class and receiver), so every round's T is a
// bound already. Vertices are the GPUs that take part and the places where links of routes meet, which lets
// routes mix: the optimum may be lower than over whole routes, never higher. Its dual gives the certificate:
// the price of a link is that of its row, a set's price belongs to one receiver in it.
// Solved by Clp in floating point: a hint, which planner/certificate.hpp judges.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "planner/certificate.hpp"

namespace isthmus {

/// Above these the program is not tried: about a second of one core.
inline constexpr std::size_t max_program_gpus = 80, max_program_variables = 6000;
/// Larger ones are merged by symmetry (planner/relay_symmetry.hpp) first. Not above so many GPUs, and so many
/// colours that are computed.
inline constexpr std::size_t max_plain_variables = 1000, max_merged_gpus = 512,
                             max_colour_work = 1'000'000'000;

enum class Merging : std::uint8_t { never, where_large, always };

/// A certificate from the program's dual, its time not yet set; nullopt where the refit is too large, has
/// nothing to move, or the solver fails. `near` is a bound that is known already: it scales the program. If
/// the program was merged and gives no more than that, the certificate has no prices.
std::optional<BoundCertificate> relay_certificate(const Refit& refit, bool detours, Duration near,
                                                  Merging merging = Merging::where_large);

/// Price 1 on every link of a cut, its time not yet set.
BoundCertificate cut_certificate(const Refit& refit, bool detours, const std::vector<LinkId>& links);

}  // namespace isthmus

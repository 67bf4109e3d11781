#pragma once
// The lower bound with its proof: the cuts of planner/bound.hpp, made tighter by the linear program of
// planner/relay_program.hpp where the refit is small enough for it, as certificates that
// planner/certificate.hpp has verified. Invariant: neither number is below that of the cuts, and where a
// certificate is verified, its number is what the certificate proves. Takes longer than lower_bound: up to
// some seconds where the program is solved, else what verification takes (512 GPUs: a fifth of a second).

#include <string>

#include "planner/bound.hpp"
#include "planner/certificate.hpp"

namespace isthmus {

struct CertifiedBound {
  LowerBound bound;
  BoundCertificate certificate, any_route;  // of bound.time and of bound.any_route
  std::string refusal;                      // why one of them was not verified; empty when both were
  bool program_solved = false;              // the linear program was small enough, for both
  bool program_tighter = false;             // and gives bound.time, instead of a cut
  bool verified() const { return refusal.empty(); }
};

CertifiedBound certified_bound(const Refit& refit);

}  // namespace isthmus

#include "planner/certified_bound.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "planner/relay_program.hpp"

namespace isthmus {
namespace {

/// One of the two numbers, with what proves it.
struct ProvenNumber {
  Duration time;
  BoundCertificate certificate;
  std::string refusal;
  bool solved = false, tighter = false;
};

ProvenNumber proven_number(const Refit& refit, bool detours, Duration cut, const std::vector<LinkId>& links) {
  ProvenNumber result{cut, cut_certificate(refit, detours, links), {}};
  result.certificate.time = cut;
  const CertificateVerdict of_cut = verify_certificate(refit, result.certificate);
  result.refusal = of_cut.refusal;
  if (of_cut.holds()) result.time = result.certificate.time = of_cut.time;
  std::optional<BoundCertificate> program = relay_certificate(refit, detours, cut);
  result.solved = program.has_value() || cut.value == 0;
  if (!program) return result;
  const CertificateVerdict of_program = verify_certificate(refit, *program);
  if (!of_program.holds() || of_program.time <= result.time) return result;
  program->time = of_program.time;
  return {of_program.time, std::move(*program), {}, true, true};
}

/// The dearest links by what they add to the priced capacity.
std::string price_text(const Refit& refit, const BoundCertificate& certificate) {
  const LinkPrice* dearest = nullptr;
  Int128 most = 0;
  for (const LinkPrice& each : certificate.prices) {
    const Int128 weight = Int128{refit.fabric.links()[each.link.index()].nominal.value} * each.price;
    if (weight <= most) continue;
    most = weight;
    dearest = &each;
  }
  return fmt::format("linear program: {} links together, {} the first of them", certificate.prices.size(),
                     dearest == nullptr ? "none" : refit.fabric.links()[dearest->link.index()].name);
}

}  // namespace

CertifiedBound certified_bound(const Refit& refit) {
  CertifiedBound result{lower_bound(refit), {}, {}, {}};
  LowerBound& bound = result.bound;
  ProvenNumber time = proven_number(refit, false, bound.time, bound.links);
  ProvenNumber any_route = proven_number(refit, true, bound.any_route, bound.any_route_links);
  if (any_route.time > time.time) {  // what holds for every plan holds for those without detours
    BoundCertificate other = any_route.certificate;
    other.model.detours = false;
    const CertificateVerdict verdict = verify_certificate(refit, other);
    other.time = verdict.time;
    if (verdict.holds()) time = {verdict.time, std::move(other), {}, time.solved, any_route.tighter};
  }
  if (time.tighter) bound.binding = price_text(refit, time.certificate);
  bound.time = time.time;
  bound.any_route = any_route.time;
  result.certificate = std::move(time.certificate);
  result.any_route = std::move(any_route.certificate);
  result.refusal = time.refusal.empty() ? any_route.refusal : time.refusal;
  result.program_solved = time.solved && any_route.solved;
  result.program_tighter = time.tighter;
  return result;
}

}  // namespace isthmus

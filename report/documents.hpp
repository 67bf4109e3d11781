#pragma once
// What the smaller commands print, as text for people or as JSON (docs/json.md): bound, verify.
// Each document ends with a newline; the JSON carries every number of the text.
// Sizes are bytes, times seconds.

#include <string>
#include <vector>

#include "model/refit.hpp"
#include "planner/certified_bound.hpp"
#include "planner/check.hpp"
#include "report/source_variant.hpp"

namespace isthmus::report {

std::string bound_document(const Refit& refit, const CertifiedBound& certified, bool json);
/// Both certificates as JSON (docs/bound.md).
std::string certificate_document(const Refit& refit, const CertifiedBound& bound);

struct Verdict {
  std::string policy;
  std::string refused;  // the reason; empty when there is a proof
  Proof proof;
};
struct Verdicts {
  std::vector<Verdict> list;
  /// True when each policy that made a plan made one that is proven.
  bool all_proven() const;
};

/// Plans with each named policy (all names must be known) and checks the plans.
/// `variant`: what `balanced-quantized` plans where the refit itself is not quantised at its source.
Verdicts verify(const Refit& refit, const std::vector<std::string>& policies,
                const SourceVariant* variant = nullptr);
std::string verdict_document(const Refit& refit, const Verdicts& verdicts, bool json);

}  // namespace isthmus::report

#include "report/source_variant.hpp"

#include "model/error.hpp"

namespace isthmus::report {

bool lists_quantised(const Scenario& scenario) {
  return scenario.generate && scenario.generate->quantize_mxfp8;
}

SourceVariant source_variant(Scenario scenario) {
  scenario.refit.quantise_at = QuantiseAt::source;
  SourceVariant variant;
  try {
    variant.refit = resolve(scenario);
    variant.bound = lower_bound(*variant.refit);
  } catch (const InputError& error) {
    variant.refused = error.message();
  }
  return variant;
}

}  // namespace isthmus::report

// Plan files; what was accepted is written and read again to the same bytes, then judged, summed up and
// compared with itself. A model's configuration is never read: models come with their tensors here.

#include <fmt/format.h>

#include "planner/check.hpp"
#include "planner/plan_difference.hpp"
#include "planner/plan_file.hpp"
#include "planner/plan_identity.hpp"
#include "tests/fuzz/target.hpp"

namespace {

// Instances let a short text ask for many steps; above these only the reader is of interest.
constexpr std::size_t most_steps = 20'000, most_ranks = 20'000, most_positions = 20'000;

bool is_small(const isthmus::PlanFile& file) {
  std::size_t positions = 0;
  for (const isthmus::Geometry& geometry : file.refit.geometries)
    positions += geometry.source.mesh.size() + geometry.target.mesh.size();
  return file.plan.step_count() <= most_steps && file.refit.ranks() <= most_ranks &&
         positions <= most_positions;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace isthmus;
  const std::string_view input = fuzz::text_of(data, size);
  is_plan_text(input);
  // Other files than the plan: a fabric to import, the configuration of a model without tensors. Escapes
  // could hide these words.
  if (input.find('\\') != std::string_view::npos) return 0;
  if (input.find("import") != std::string_view::npos) return 0;
  if (input.find("model") != std::string_view::npos && input.find("\"tensors\"") == std::string_view::npos)
    return 0;
  fuzz::only_input_errors([&] {
    const PlanFile file = plan_from_json(input, "plan.json");
    const std::string text = to_json(file.scenario, file.refit, file.plan);
    const PlanFile again = plan_from_json(text, "plan.json");
    ISTHMUS_ASSERT(to_json(again.scenario, again.refit, again.plan) == text, "{}", text);
    if (!is_small(file)) return;
    const Proof proof = check(file.refit, file.plan), second = check(again.refit, again.plan);
    ISTHMUS_ASSERT(proof.violation_count == second.violation_count, "{}", text);
    for (const Violation& violation : proof.violations)
      ISTHMUS_ASSERT(!violation.message.empty(), "{}", text);
    ISTHMUS_ASSERT(identity_faults(file.refit, again.refit).empty(), "{}", text);
    ISTHMUS_ASSERT(plan_difference(file, again).equal(), "{}", text);
    ISTHMUS_ASSERT(plan_totals(file.refit, file.plan).all.steps == file.plan.step_count(), "{}", text);
  });
  return 0;
}

#pragma once
// A plan as a file (docs/plan-format.md, docs/plan.schema.json): JSON of numbers, texts and lists, which
// carries what it was made for. That is the scenario, line by line; for a whole model also every tensor with
// its layouts, so that a plan is judged without the model's configuration.
// Invariant: plan_from_json(to_json(s, r, p)) gives the plan p, up to fields that a step's kind does not use
// and to how lists are shared; writing that again gives the same bytes. Reading uses no GPU and no other file
// than those that the scenario names (a fabric to import; the configuration of a model without `tensors`).
// What is no such text is an InputError with file, line and key, raised before anything larger than the text
// is allocated. Whether the plan is right is for check() to say.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "model/refit.hpp"
#include "model/scenario.hpp"
#include "planner/plan.hpp"

namespace isthmus {

inline constexpr std::string_view plan_format = "isthmus-plan";
inline constexpr int plan_format_version = 1;

/// Beside those of JSON texts (model/json_tree.hpp) and scenarios.
struct PlanFileLimits {
  static constexpr std::size_t tensors = 100'000, geometries = 100'000;
  static constexpr std::size_t lanes = 65'536, buffers = 65'536;
  static constexpr std::size_t splits = 4'096, callers = std::size_t{1} << 22;  // callers of all splits
  static constexpr std::size_t patterns = std::size_t{1} << 20, instances = std::size_t{1} << 20;
  static constexpr std::size_t steps = std::size_t{1} << 24;         // of one pattern
  static constexpr std::size_t member_lists = std::size_t{1} << 20;  // of one pattern
  static constexpr std::uint64_t expanded = std::uint64_t{1} << 28;  // ranks of all steps of all instances
  static constexpr std::int64_t ranks = std::int64_t{1} << 20;       // local and global
  static constexpr std::int64_t size = std::int64_t{1} << 60;        // bytes, element indices
  static constexpr std::int64_t mesh_positions = std::int64_t{1} << 22;  // of all geometries
};

struct PlanFile {
  Scenario scenario;  // what it was made for; paths are relative to the plan file
  Refit refit;
  Plan plan;
};

/// Requires indices that exist (check() finds nothing malformed) and tensor names that differ.
std::string to_json(const Scenario& scenario, const Refit& refit, const Plan& plan);

PlanFile plan_from_json(std::string_view text, const std::filesystem::path& file);
PlanFile read_plan(const std::filesystem::path& file);

/// Whether a text is meant as a plan: JSON that names the format, or has patterns and instances.
bool is_plan_text(std::string_view text);

/// The scenario with the paths of the files that it names as seen from another folder.
Scenario seen_from(const Scenario& scenario, const std::filesystem::path& folder);

}  // namespace isthmus

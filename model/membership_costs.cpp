#include "model/membership_costs.hpp"

#include <fmt/format.h>

#include "model/calibration_file.hpp"
#include "model/text.hpp"
#include "model/yaml.hpp"

namespace isthmus {

const std::vector<MembershipField>& membership_fields() {
  using M = MembershipCosts;
  static const std::vector<MembershipField> fields{
      {"communicator_shrink_time", &M::communicator_shrink_time},
      {"communicator_grow_time", &M::communicator_grow_time},
      {"communicator_destroy_time", &M::communicator_destroy_time},
      {"communicator_create_time", &M::communicator_create_time},
      {"first_refit_after_shrink", &M::first_refit_after_shrink},
      {"first_refit_after_grow", &M::first_refit_after_grow},
      {"first_refit_after_create", &M::first_refit_after_create},
      {"spare_takeover_time", &M::spare_takeover_time},
  };
  return fields;
}

MembershipCosts read_membership_costs(std::string_view name, const std::filesystem::path& scenario_directory,
                                      const Location& where) {
  if (name == built_in_calibration) return {};
  const auto file = find_calibration(name, scenario_directory);
  if (!file) throw InputError(where, fmt::format("'{}'", printable(name)), "a calibration that is there");
  const YamlDocument document(read_text_file(*file), file->string());
  const auto entry = document.root().find(membership_key);
  if (!entry) {
    throw InputError(where, fmt::format("'{}', which has no {}", printable(name), membership_key),
                     "a calibration with that mapping, such as h100-ib400");
  }
  std::vector<std::string_view> keys;
  for (const MembershipField& field : membership_fields()) keys.push_back(field.key);
  entry->allow_only(keys);
  MembershipCosts costs;
  for (const MembershipField& field : membership_fields())
    costs.*field.member = read_constant(entry->at(field.key), "s");
  return costs;
}

}  // namespace isthmus

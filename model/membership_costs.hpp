#pragma once
// What changing the membership of a refit costs beside moving bytes: the mapping `membership` of a
// calibration file, in the form of its other constants (docs/calibration.md), all or none. Seconds.
// Published are shrinking, growing and the first refit afterwards (NeMo RL pull request 3334); set-up after
// destroying, and how soon a spare replica takes over, are judgement. docs/membership.md adds them up.
// Invariant: low <= value <= high. `wire-only` has zero for all of them, also where it is not a file.

#include <filesystem>
#include <string_view>
#include <vector>

#include "model/calibration.hpp"

namespace isthmus {

struct MembershipCosts {
  // NCCL's communicators: without some ranks; with more; given up; made anew.
  Constant communicator_shrink_time, communicator_grow_time;
  Constant communicator_destroy_time, communicator_create_time;
  // The first refit takes so much longer than those that follow.
  Constant first_refit_after_shrink, first_refit_after_grow, first_refit_after_create;
  // Until requests of a lost replica go to a spare one.
  Constant spare_takeover_time;

  friend bool operator==(const MembershipCosts&, const MembershipCosts&) = default;
};

struct MembershipField {
  std::string_view key;
  Constant MembershipCosts::*member;
};
const std::vector<MembershipField>& membership_fields();

/// Of the calibration that read_calibration finds by this name. Raises InputError (at `where`) for one
/// without the mapping.
MembershipCosts read_membership_costs(std::string_view name, const std::filesystem::path& scenario_directory,
                                      const Location& where = {{}, 0, "calibration"});

}  // namespace isthmus

#pragma once
// What others report for the refit of a scenario, row by row: who, what, in how many seconds, and how the
// project treats it. A row without seconds is a blind prediction: nobody has published it.
// Invariant: 0 < seconds_low <= seconds_high, or both 0 for a blind row; a blind row is never used for a fit.
// `counted` says whether the row is evidence for or against the model (docs/scoreboard.md has the rule); what
// is not counted says why in `remark`.

#include <string>
#include <string_view>
#include <vector>

namespace isthmus {

/// The policy of a row that no policy here can stand for.
inline constexpr std::string_view no_policy = "none";

struct Published {
  std::string id;
  std::string policy;
  double seconds_low = 0, seconds_high = 0;
  std::string source;
  std::vector<std::string> alternatives{};  // policies that the source leaves open beside `policy`
  bool counted = true;
  bool used_for_fit = false;  // a constant of the calibration was inferred from this row
  std::string remark{};       // what the source leaves open, and what was assumed
  std::string diagnosis{};    // where prediction and report differ much: what is missing, with the arithmetic

  bool blind() const { return seconds_high == 0; }
  friend bool operator==(const Published&, const Published&) = default;
};

}  // namespace isthmus

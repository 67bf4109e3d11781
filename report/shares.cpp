#include "report/shares.hpp"

#include <algorithm>
#include <array>

namespace isthmus::report {
namespace {

constexpr std::array removal_order{Provenance::fitted, Provenance::judgement, Provenance::nccl_source,
                                   Provenance::metal};

/// The calibration with all constants of these kinds as under wire-only.
Calibration without(const Calibration& calibration, const std::vector<Provenance>& kinds) {
  const Calibration wire = wire_only();
  Calibration result = calibration;
  for (const ConstantField& field : calibration_fields()) {
    const Provenance kind = (calibration.*field.member).provenance;
    if (std::count(kinds.begin(), kinds.end(), kind) > 0) result.*field.member = wire.*field.member;
  }
  return result;
}

}  // namespace

std::vector<Calibration> share_calibrations(const Calibration& calibration) {
  std::vector<Calibration> stages;
  std::vector<Provenance> removed;
  for (const Provenance kind : removal_order) {
    removed.push_back(kind);
    stages.push_back(without(calibration, removed));
  }
  return stages;
}

Shares shares_of(double seconds, const std::vector<double>& left) {
  Shares shares;
  if (seconds <= 0 || left.size() < removal_order.size()) return shares;
  shares.fitted = (seconds - left[0]) / seconds;
  shares.judgement = (left[0] - left[1]) / seconds;
  shares.source = (left[1] - left[2]) / seconds;
  shares.metal = (left[2] - left[3]) / seconds;
  shares.datasheet = left[3] / seconds;
  return shares;
}

}  // namespace isthmus::report

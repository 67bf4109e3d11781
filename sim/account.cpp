#include "sim/account.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace isthmus::sim {
namespace {

/// Splits the critical path by what ran in each interval.
void attribute(const Operations& operations, Prediction& prediction) {
  for (const std::uint32_t i : prediction.timeline.critical_path()) {
    const Operation& operation = operations.list[i];
    const Span& span = prediction.timeline.spans[i];
    const Duration interval = span.end - span.ready;
    if (operation.kind == StepKind::load || operation.bytes.value == 0) {
      prediction.other += interval;
      continue;
    }
    const Int128 part = Int128{interval.value} * operation.bulk_bytes.value / operation.bytes.value;
    const Duration bulk{static_cast<std::int64_t>(part)};
    prediction.bulk += bulk;
    prediction.misc += interval - bulk;
  }
}

void count_bytes(const Refit& refit, Prediction& prediction) {
  std::set<LinkId> nics;  // GPUs may share one
  for (std::uint32_t g = 0; g < refit.fabric.gpu_count(); ++g) {
    const GpuId gpu{g};
    const auto nic = refit.fabric.nic_out(gpu);
    if (nic && nics.insert(*nic).second) {
      prediction.network_bytes += prediction.timeline.link_bytes[nic->index()];
    }
    if (const auto link = refit.fabric.nvlink_out(gpu)) {
      prediction.nvlink_bytes += prediction.timeline.link_bytes[link->index()];
    }
  }
}

void name_binding(const Refit& refit, const Calibration& calibration, const std::vector<Work>& work,
                  Prediction& prediction) {
  if (prediction.time.value == 0) return;
  const std::vector<Link>& links = refit.fabric.links();
  Duration most;
  for (std::size_t l = 0; l < links.size(); ++l) {
    const Duration busy = prediction.timeline.link_bytes[l] / calibration.achieved(links[l]);
    if (busy <= most) continue;
    most = busy;
    prediction.binding_resource = links[l].name;
  }
  for (const Work& item : work) {
    if (item.busy <= most) continue;
    most = item.busy;
    prediction.binding_resource = item.resource;
  }
  const double share = seconds(most) / seconds(prediction.time);
  if (share < 0.01) {
    prediction.binding_resource = "latency (no resource is busy for 1 % of the time)";
  } else {
    prediction.binding_resource += fmt::format(" ({:.0f} % busy)", 100 * share);
  }
}

}  // namespace

void account(const Refit& refit, const Operations& operations, const Calibration& calibration,
             const std::vector<Work>& work, Prediction& prediction) {
  prediction.time = prediction.timeline.end - Instant{};
  attribute(operations, prediction);
  count_bytes(refit, prediction);
  name_binding(refit, calibration, work, prediction);
}

}  // namespace isthmus::sim

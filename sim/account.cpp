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

struct Change {
  Instant when;
  Bytes bytes;  // negative: freed
};

/// A region staged by an operation stays until the last operation that reads it there has ended.
class Staging {
 public:
  Staging(const Refit& refit, const Operations& operations, const Timeline& timeline)
      : refit_(refit),
        operations_(operations),
        timeline_(timeline),
        changes_(refit.fabric.gpu_count()),
        release_(refit.ranks()),
        readers_(operations.list.size()) {
    for (std::uint32_t i = 0; i < operations.list.size(); ++i) {
      if (!operations.list[i].staged_source) continue;
      for (const std::uint32_t before : operations.dependencies(operations.list[i]))
        readers_[before].push_back(i);
    }
  }

  Bytes peak() {
    for (std::uint32_t i = 0; i < operations_.list.size(); ++i) {
      if (operations_.list[i].staged_target) stage(i);
    }
    Bytes most;
    for (std::vector<Change>& list : changes_) {
      std::sort(list.begin(), list.end(), [](const Change& a, const Change& b) {
        return a.when != b.when ? a.when < b.when : a.bytes < b.bytes;
      });
      Bytes now;
      for (const Change& change : list) {
        now += change.bytes;
        most = std::max(most, now);
      }
    }
    return most;
  }

 private:
  void stage(std::uint32_t i) {
    const Operation& operation = operations_.list[i];
    const Span& span = timeline_.spans[i];
    const std::vector<Rank> pair{operation.target};
    const std::vector<Rank>& ranks =
        operations_.collective(operation) ? operations_.members[operation.members] : pair;
    for (const Rank rank : ranks) release_[rank.index()] = span.end;
    for (const std::uint32_t reader : readers_[i]) keep_until(reader);
    for (const Rank rank : ranks) {
      std::vector<Change>& changes = changes_[refit_.gpu(rank).index()];
      changes.push_back({span.ready, operation.bytes});
      changes.push_back({release_[rank.index()], Bytes{} - operation.bytes});
    }
  }

  void keep_until(std::uint32_t reader) {
    const Operation& operation = operations_.list[reader];
    const Instant end = timeline_.spans[reader].end;
    const auto extend = [this, end](Rank rank) {
      release_[rank.index()] = std::max(release_[rank.index()], end);
    };
    if (operation.kind == StepKind::all_gather) {
      for (const Rank rank : operations_.members[operation.members]) extend(rank);
    } else {
      extend(operation.source);
    }
  }

  const Refit& refit_;
  const Operations& operations_;
  const Timeline& timeline_;
  std::vector<std::vector<Change>> changes_;         // by GPU
  std::vector<Instant> release_;                     // by rank, of the operation at hand
  std::vector<std::vector<std::uint32_t>> readers_;  // by operation: those that read what it staged
};

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
  prediction.peak_staging = Staging(refit, operations, prediction.timeline).peak();
  name_binding(refit, calibration, work, prediction);
}

}  // namespace isthmus::sim

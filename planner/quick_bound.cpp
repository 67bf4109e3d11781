#include "planner/quick_bound.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "model/grid.hpp"

namespace isthmus {
namespace {

void add(ByteNeed& sum, const RefitTensor& tensor, Bytes bytes) {
  sum.all += bytes;
  if (tensor.role == Role::bulk) sum.bulk += bytes;
}

Duration rounded_down(Bytes bytes, Bandwidth rate) {
  if (bytes.value <= 0 || rate.value <= 0) return {};
  return {static_cast<std::int64_t>(Int128{bytes.value} * picoseconds_per_second / rate.value)};
}

/// The least that a host thread takes for so many times a constant.
Duration times(const Constant& constant, std::int64_t count) {
  return {std::llround(constant.value * 1e12) * count};
}

/// Once each, for the domains that hold positions of one layout.
void add_needs(const Layout& layout, const RefitTensor& tensor, std::int64_t count, const Fabric& fabric,
               const GpuId* gpu_of_target, TargetNeeds& needs) {
  std::vector<std::pair<std::size_t, Region>> held;
  for (std::size_t i = 0; i < layout.mesh.size(); ++i) {
    const Region region = layout.region(i);
    const GpuId gpu = gpu_of_target[layout.mesh.ranks[i].index()];
    if (!region.empty()) held.emplace_back(fabric.domain_of(gpu).index(), region);
  }
  std::sort(held.begin(), held.end());
  held.erase(std::unique(held.begin(), held.end()), held.end());
  for (const auto& [domain, region] : held) {
    add(needs.of_domain[domain], tensor, layout.bytes(region) * count);
  }
}

/// Packed broadcasts from one root: it exports part by part, all bytes share the cap of its collectives, and
/// the first generation rank loads part by part.
Duration packets(std::int64_t parts, Bytes bytes, bool one_stage, const Calibration& calibration,
                 bool collectives_cross) {
  Duration floor = times(calibration.export_time_per_tensor, parts);
  if (one_stage) floor = std::max(floor, times(calibration.load_time_per_tensor, parts));
  const double rate = calibration.collective_bandwidth.value;
  if (!collectives_cross || !std::isfinite(rate)) return floor;
  return std::max(floor, rounded_down(bytes, Bandwidth{std::llround(rate)}));
}

}  // namespace

TargetNeeds target_needs(const Scenario& scenario, const ClassedTensors& tensors, const StageCounts& counts,
                         const Fabric& fabric, const std::vector<GpuId>& gpu_of_rank) {
  TargetNeeds needs{std::vector<ByteNeed>(fabric.domain_count()), std::vector<char>(fabric.domain_count())};
  const GpuId* const gpu_of_target = gpu_of_rank.data() + scenario.train->gpus;
  for (int rank = 0; rank < scenario.generate->gpus; ++rank) {
    needs.present[fabric.domain_of(gpu_of_target[rank]).index()] = 1;
  }
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    for (std::size_t c = 0; c < tensors.classes.size(); ++c) {
      const RefitTensor& tensor = tensors.classes[c].tensor;
      if (counts[stage][c] == 0 || tensor.copy) continue;
      add_needs(generate_layout(scenario, tensor, static_cast<int>(stage)), tensor, counts[stage][c], fabric,
                gpu_of_target, needs);
    }
  }
  return needs;
}

std::vector<SourceStage> source_stages(const Scenario& scenario, const ClassedTensors& tensors,
                                       const StageCounts& counts, const Fabric& fabric,
                                       const std::vector<GpuId>& gpu_of_rank) {
  const std::size_t ranks = to_size(scenario.train->gpus / scenario.train->pp);
  std::vector<SourceStage> stages(counts.size());
  for (std::size_t stage = 0; stage < counts.size(); ++stage) {
    for (std::size_t c = 0; c < tensors.classes.size(); ++c) {
      const RefitTensor& tensor = tensors.classes[c].tensor;
      if (tensor.copy) continue;
      std::int64_t elements = 1;
      for (const std::int64_t extent : tensor.shape) elements *= extent;
      add(stages[stage].bytes, tensor, element_size(tensor.dtype) * elements * counts[stage][c]);
    }
    std::set<std::uint32_t> domains;
    for (std::size_t r = stage * ranks; r < (stage + 1) * ranks; ++r) {
      domains.insert(static_cast<std::uint32_t>(fabric.domain_of(gpu_of_rank[r]).index()));
    }
    stages[stage].domains.assign(domains.begin(), domains.end());
  }
  return stages;
}

DomainRates domain_rates(const Fabric& fabric, const Calibration& calibration) {
  DomainRates rates{std::vector<Bandwidth>(fabric.domain_count()),
                    std::vector<Bandwidth>(fabric.domain_count())};
  std::vector<char> counted(fabric.links().size());
  for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
    const std::size_t domain = fabric.domain_of(GpuId{g}).index();
    for (const bool out : {false, true}) {
      for (const LinkId link : fabric.exit_links(GpuId{g}, out)) {
        if (std::exchange(counted[link.index()], 1) != 0) continue;  // GPUs may share a NIC
        (out ? rates.out : rates.in)[domain] += calibration.achieved(fabric.links()[link.index()]);
      }
    }
  }
  return rates;
}

CutTimes cut_times(const std::vector<SourceStage>& sources, const TargetNeeds& targets,
                   const DomainRates& rates) {
  std::vector<ByteNeed> missing = targets.of_domain;
  CutTimes times;
  for (const SourceStage& stage : sources) {
    Bandwidth out;
    bool apart = true;
    for (const std::uint32_t domain : stage.domains) {
      missing[domain].all -= stage.bytes.all;
      missing[domain].bulk -= stage.bytes.bulk;
      out += rates.out[domain];
      apart = apart && targets.present[domain] == 0;
    }
    if (!apart) continue;
    times.all = std::max(times.all, rounded_down(stage.bytes.all, out));
    times.bulk = std::max(times.bulk, rounded_down(stage.bytes.bulk, out));
  }
  for (std::size_t domain = 0; domain < missing.size(); ++domain) {
    times.all = std::max(times.all, rounded_down(missing[domain].all, rates.in[domain]));
    times.bulk = std::max(times.bulk, rounded_down(missing[domain].bulk, rates.in[domain]));
  }
  return times;
}

SoftwareCounts software_counts(const ClassedTensors& tensors, int generate_stages) {
  SoftwareCounts counts;
  counts.one_stage = generate_stages == 1;
  for (const RefitTensor& tensor : tensors.tensors) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : tensor.shape) elements *= extent;
    const Bytes bytes = element_size(tensor.dtype) * elements;
    ++counts.tensors;
    counts.parts += tensor.parts;
    counts.bytes += bytes;
    if (tensor.role == Role::bulk) {
      ++counts.bulk_tensors;
    } else {
      counts.misc_parts += tensor.parts;
      counts.misc_bytes += bytes;
    }
  }
  return counts;
}

PolicySettings settings_of(std::string_view policy) {
  if (policy.starts_with("balanced") || policy == "gather-broadcast") return {false, false};
  if (policy == "p2p") return {false, true};
  return {};
}

Duration floor_of(std::string_view policy, const CutTimes& cuts, const SoftwareCounts& counts,
                  const Calibration& calibration, bool collectives_cross) {
  const auto packed = [&](std::int64_t parts, Bytes bytes) {
    return packets(parts, bytes, counts.one_stage, calibration, collectives_cross);
  };
  if (policy == "gather-broadcast") return std::max(cuts.all, packed(counts.parts, counts.bytes));
  const bool called = counts.one_stage;  // the first generation rank receives a part of every tensor
  if (policy == "p2p") {
    return called ? std::max(cuts.all, times(calibration.python_call_time, counts.tensors)) : cuts.all;
  }
  const bool python = policy == "golden" || policy == "striped";
  if (!python && !policy.starts_with("m2n-")) return cuts.all;
  // Packets begin when the last bulk tensor has arrived, of which every rank of a single stage has a part.
  const Duration misc = packed(counts.misc_parts, counts.misc_bytes);
  Duration bulk = cuts.bulk;
  if (python && called) bulk = std::max(bulk, times(calibration.python_call_time, counts.bulk_tensors));
  const bool in_turn = counts.one_stage && counts.bulk_tensors > 0 && counts.misc_parts > 0;
  return std::max({cuts.all, bulk, misc, in_turn ? bulk + misc : Duration{}});
}

}  // namespace isthmus

#include "planner/bound.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "planner/shards.hpp"

namespace isthmus {
namespace {

/// Tensors with equal geometry and bases count as one with a multiplicity.
struct Bundle {
  const Geometry* geometry;
  Rank source_base, target_base;
  int stage;
  std::int64_t count = 0;
};

std::vector<Bundle> bundles_of(const Refit& refit) {
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, int>, std::size_t> index;
  std::vector<Bundle> bundles;
  for (const RefitEntry& entry : refit.tensors) {
    if (entry.tensor.copy) continue;  // its elements may be taken from those that arrived before
    const auto key =
        std::make_tuple(entry.geometry, entry.source_base.value, entry.target_base.value, entry.stage);
    const auto [known, added] = index.emplace(key, bundles.size());
    if (added) {
      bundles.push_back(
          {&refit.geometries[entry.geometry], entry.source_base, entry.target_base, entry.stage, 0});
    }
    ++bundles[known->second].count;
  }
  return bundles;
}

/// Marks small integers without clearing between uses.
class Marks {
 public:
  explicit Marks(std::size_t size) : stamp_(size, 0) {}
  void next() { ++now_; }
  bool set(std::size_t i) {
    const bool fresh = stamp_[i] != now_;
    stamp_[i] = now_;
    return fresh;
  }
  bool has(std::size_t i) const { return stamp_[i] == now_; }

 private:
  std::vector<std::uint32_t> stamp_;
  std::uint32_t now_ = 1;
};

/// Bytes that must cross into or out of each set of the family.
struct Crossings {
  std::vector<Bytes> gpu_in, gpu_in_nvlink, gpu_out;  // gpu_in_nvlink: of gpu_in, held only in the domain
  std::vector<Bytes> domain_in, domain_out;
  std::vector<Bytes> stage_out;  // out of all domains that hold a part of the stage
  Bytes source_out;              // out of all domains that hold anything
  std::vector<std::vector<char>> stage_domains;
  std::vector<char> source_domains;
};

class Counter {
 public:
  explicit Counter(const Refit& refit)
      : refit_(refit),
        gpus_(refit.fabric.gpu_count()),
        domains_(refit.fabric.domain_count()),
        held_gpu_(gpus_),
        held_domain_(domains_),
        seen_gpu_(gpus_),
        seen_domain_(domains_) {
    for (auto* list : {&sum_.gpu_in, &sum_.gpu_in_nvlink, &sum_.gpu_out}) list->resize(gpus_);
    for (auto* list : {&sum_.domain_in, &sum_.domain_out}) list->resize(domains_);
    sum_.stage_out.resize(to_size(refit.stages));
    sum_.stage_domains.assign(to_size(refit.stages), std::vector<char>(domains_));
    sum_.source_domains.resize(domains_);
  }

  Crossings run() {
    const std::vector<Bundle> bundles = bundles_of(refit_);
    for (const Bundle& bundle : bundles) mark_source_domains(bundle);
    for (const Bundle& bundle : bundles) {
      const Cells cells = cells_of(*bundle.geometry);
      for (const Cell& cell : cells.list) count(bundle, cells, cell);
    }
    return std::move(sum_);
  }

 private:
  std::size_t gpu(Rank base, std::uint32_t local) const {
    return refit_.gpu_of_rank[base.value + local].index();
  }
  std::size_t domain(std::size_t gpu) const {
    return refit_.fabric.domain_of(GpuId{static_cast<std::uint32_t>(gpu)}).index();
  }

  void mark_source_domains(const Bundle& bundle) {
    for (const Rank rank : bundle.geometry->source.mesh.ranks) {
      const std::size_t home = domain(gpu(bundle.source_base, rank.value));
      sum_.stage_domains[to_size(bundle.stage)][home] = 1;
      sum_.source_domains[home] = 1;
    }
  }

  void count(const Bundle& bundle, const Cells& cells, const Cell& cell) {
    const Bytes bytes = bundle.geometry->source.bytes(cell.region) * bundle.count;
    held_gpu_.next(), held_domain_.next(), seen_gpu_.next(), seen_domain_.next();
    std::size_t holder_gpus = 0, holder_domains = 0, last_gpu = 0, last_domain = 0;
    for (const std::uint32_t local : cells.sources[cell.source].holders) {
      last_gpu = gpu(bundle.source_base, local);
      last_domain = domain(last_gpu);
      if (held_gpu_.set(last_gpu)) ++holder_gpus;
      if (held_domain_.set(last_domain)) ++holder_domains;
    }
    bool leaves_gpus = false, leaves_domains = false, leaves_stage = false, leaves_sources = false;
    for (const std::uint32_t local : cells.targets[cell.target].holders) {
      const std::size_t at = gpu(bundle.target_base, local), home = domain(at);
      if (held_gpu_.has(at) || !seen_gpu_.set(at)) continue;
      leaves_gpus = true;
      sum_.gpu_in[at] += bytes;
      if (held_domain_.has(home) && holder_domains == 1) sum_.gpu_in_nvlink[at] += bytes;
      if (held_domain_.has(home) || !seen_domain_.set(home)) continue;
      leaves_domains = true;
      sum_.domain_in[home] += bytes;
      leaves_stage = leaves_stage || sum_.stage_domains[to_size(bundle.stage)][home] == 0;
      leaves_sources = leaves_sources || sum_.source_domains[home] == 0;
    }
    if (holder_gpus == 1 && leaves_gpus) sum_.gpu_out[last_gpu] += bytes;
    if (holder_domains == 1 && leaves_domains) sum_.domain_out[last_domain] += bytes;
    if (leaves_stage) sum_.stage_out[to_size(bundle.stage)] += bytes;
    if (leaves_sources) sum_.source_out += bytes;
  }

  const Refit& refit_;
  std::size_t gpus_, domains_;
  Crossings sum_;
  Marks held_gpu_, held_domain_, seen_gpu_, seen_domain_;
};

/// Port rates and cuts of the fabric.
class Ports {
 public:
  explicit Ports(const Refit& refit)
      : refit_(refit), usable_(refit.fabric.gpu_count(), 1), counted_(refit.fabric.links().size(), 0) {
    for (const bool out : {false, true}) {
      for (std::uint32_t gpu = 0; gpu < usable_.size(); ++gpu) {
        exits_[out].push_back(refit.fabric.exit_links(GpuId{gpu}, out));
      }
    }
    // GPUs outside both sides do not take part, unless NCCL itself leaves through their NICs.
    if (refit.settings.relay == Relay::members && !refit.fabric.topology().routing.pxn) {
      std::fill(usable_.begin(), usable_.end(), 0);
      for (const RefitEntry& entry : refit.tensors) {
        const Geometry& geometry = refit.geometries[entry.geometry];
        for (const Rank rank : geometry.source.mesh.ranks) mark(entry.source_base, rank);
        for (const Rank rank : geometry.target.mesh.ranks) mark(entry.target_base, rank);
      }
    }
  }

  /// What leaves a GPU's domain there: its NIC, or its wires to a host that other domains share.
  Bandwidth exit(std::size_t gpu, bool out) const {
    Bandwidth sum;
    for (const LinkId link : exits_[out][gpu]) sum += rate(link);
    return sum;
  }
  Bandwidth nvlink(std::size_t gpu, bool out) const {
    const GpuId id{static_cast<std::uint32_t>(gpu)};
    const auto link = out ? refit_.fabric.nvlink_out(id) : refit_.fabric.nvlink_in(id);
    return link ? rate(*link) : Bandwidth{0};
  }
  /// Exits of the chosen domains towards the others: what either side of the cut can pass. GPUs may share a
  /// NIC, which counts once.
  Bandwidth cut(const std::vector<char>& inside, bool out) {
    Bandwidth from, to;
    ++cut_;
    for (std::size_t gpu = 0; gpu < usable_.size(); ++gpu) {
      if (usable_[gpu] == 0) continue;
      const std::size_t home = refit_.fabric.domain_of(GpuId{static_cast<std::uint32_t>(gpu)}).index();
      const bool sends = (inside[home] != 0) == out;
      for (const LinkId link : exits_[sends][gpu]) {
        if (std::exchange(counted_[link.index()], cut_) != cut_) (sends ? from : to) += rate(link);
      }
    }
    return std::min(from, to);
  }

 private:
  void mark(Rank base, Rank local) { usable_[refit_.gpu_of_rank[base.value + local.value].index()] = 1; }
  Bandwidth rate(LinkId link) const { return refit_.fabric.links()[link.index()].nominal; }

  const Refit& refit_;
  std::vector<char> usable_;
  std::array<std::vector<std::vector<LinkId>>, 2> exits_;  // into, out of; per GPU
  std::vector<std::uint32_t> counted_;                     // per link: the cut that counted it last
  std::uint32_t cut_ = 0;
};

void consider(LowerBound& best, Bytes bytes, Bandwidth capacity, bool nvlink_only, std::string_view what) {
  if (bytes.value <= 0 || capacity.value <= 0) return;
  // Rounded down: a bound may be too low by a picosecond, never too high.
  const Duration time{
      static_cast<std::int64_t>(Int128{bytes.value} * picoseconds_per_second / capacity.value)};
  if (!nvlink_only) best.any_route = std::max(best.any_route, time);
  if (time <= best.time) return;
  best.time = time;
  best.cut_bytes = bytes;
  best.cut_capacity = capacity;
  const double amount = static_cast<double>(bytes.value);
  const std::string size = amount >= 1e7   ? fmt::format("{:.2f} GB", amount * 1e-9)
                           : amount >= 1e4 ? fmt::format("{:.2f} MB", amount * 1e-6)
                                           : fmt::format("{} B", bytes.value);
  best.binding =
      fmt::format("{}: {} through {:.6g} GB/s", what, size, static_cast<double>(capacity.value) * 1e-9);
}

void consider_gpus(LowerBound& best, const Crossings& sum, const Ports& ports) {
  for (std::size_t g = 0; g < sum.gpu_in.size(); ++g) {
    consider(best, sum.gpu_in[g], ports.exit(g, false) + ports.nvlink(g, false), false,
             fmt::format("into GPU {}", g));
    consider(best, sum.gpu_in_nvlink[g], ports.nvlink(g, false), true,
             fmt::format("into GPU {} over NVLink", g));
    consider(best, sum.gpu_out[g], ports.exit(g, true) + ports.nvlink(g, true), false,
             fmt::format("out of GPU {}", g));
  }
}

}  // namespace

LowerBound lower_bound(const Refit& refit) {
  const Crossings sum = Counter(refit).run();
  Ports ports(refit);
  LowerBound best;
  std::vector<char> inside(refit.fabric.domain_count());
  for (std::size_t d = 0; d < inside.size(); ++d) {
    if (sum.domain_in[d].value == 0 && sum.domain_out[d].value == 0) continue;
    inside[d] = 1;
    consider(best, sum.domain_in[d], ports.cut(inside, false), false,
             fmt::format("into NVLink domain {}", d));
    consider(best, sum.domain_out[d], ports.cut(inside, true), false,
             fmt::format("out of NVLink domain {}", d));
    inside[d] = 0;
  }
  for (std::size_t stage = 0; stage < sum.stage_out.size(); ++stage) {
    consider(best, sum.stage_out[stage], ports.cut(sum.stage_domains[stage], true), false,
             fmt::format("out of the domains of stage {}", stage));
  }
  consider(best, sum.source_out, ports.cut(sum.source_domains, true), false, "out of all source domains");
  consider_gpus(best, sum, ports);
  return best;
}

}  // namespace isthmus

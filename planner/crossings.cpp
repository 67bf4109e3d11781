#include "planner/crossings.hpp"

#include <algorithm>
#include <utility>

namespace isthmus {
namespace {

/// Marks small integers without clearing between uses.
class Marks {
 public:
  explicit Marks(std::size_t size) : stamp_(size, 0) {}
  void next() { ++now_; }
  bool set(std::size_t i) { return std::exchange(stamp_[i], now_) != now_; }
  bool has(std::size_t i) const { return stamp_[i] == now_; }

 private:
  std::vector<std::uint32_t> stamp_;
  std::uint32_t now_ = 1;
};

class Counter {
 public:
  Counter(const Refit& refit, const ByteClasses& classes)
      : classes_(classes), held_(refit.fabric.domain_count()), seen_(refit.fabric.domain_count()) {
    const std::size_t gpus = refit.fabric.gpu_count(), domains = refit.fabric.domain_count();
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu)
      domain_.push_back(refit.fabric.domain_of(GpuId{gpu}).index());
    for (auto* list :
         {&sum_.gpu_in, &sum_.gpu_out, &sum_.gpu_in_nvlink, &sum_.gpu_out_nvlink, &sum_.gpu_holds}) {
      list->resize(gpus);
    }
    for (auto* list : {&sum_.domain_in, &sum_.domain_out}) list->resize(domains);
    sum_.stage_out.resize(to_size(refit.stages));
    sum_.stage_domains.assign(to_size(refit.stages), std::vector<char>(domains));
    sum_.stage_gpus.resize(to_size(refit.stages));
    sum_.source_domains.resize(domains);
    find_sources(refit);
  }

  Crossings run() {
    for (const ByteClass& each : classes_.list) count(each);
    return std::move(sum_);
  }

 private:
  /// All GPUs of the source meshes, so that a stage's domains do not depend on who has empty shards.
  void find_sources(const Refit& refit) {
    for (const RefitEntry& entry : refit.tensors) {
      if (entry.tensor.copy) continue;
      std::vector<std::uint32_t>& gpus = sum_.stage_gpus[to_size(entry.stage)];
      for (const Rank rank : refit.geometries[entry.geometry].source.mesh.ranks) {
        gpus.push_back(refit.gpu_of_rank[entry.source_base.value + rank.value].value);
      }
      if (gpus.size() > 2 * domain_.size()) tidy(gpus);
    }
    for (std::size_t stage = 0; stage < sum_.stage_gpus.size(); ++stage) {
      tidy(sum_.stage_gpus[stage]);
      for (const std::uint32_t gpu : sum_.stage_gpus[stage]) {
        sum_.stage_domains[stage][domain_[gpu]] = 1;
        sum_.source_domains[domain_[gpu]] = 1;
      }
    }
  }
  static void tidy(std::vector<std::uint32_t>& gpus) {
    std::sort(gpus.begin(), gpus.end());
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
  }

  void count(const ByteClass& each) {
    held_.next(), seen_.next();
    const auto holders = classes_.sets[each.holders];
    std::size_t holder_domains = 0;
    for (const std::uint32_t gpu : holders) {
      holder_domains += held_.set(domain_[gpu]) ? 1U : 0U;
      sum_.gpu_holds[gpu] += each.bytes;
    }
    bool inside = false, leaves_domains = false, leaves_stage = false, leaves_sources = false;
    for (const std::uint32_t gpu : classes_.sets[each.receivers]) {
      const std::size_t home = domain_[gpu];
      sum_.gpu_in[gpu] += each.bytes;
      if (held_.has(home) && holder_domains == 1) {
        sum_.gpu_in_nvlink[gpu] += each.bytes;
        inside = true;
      }
      if (held_.has(home) || !seen_.set(home)) continue;
      leaves_domains = true;
      sum_.domain_in[home] += each.bytes;
      leaves_stage = leaves_stage || sum_.stage_domains[to_size(each.stage)][home] == 0;
      leaves_sources = leaves_sources || sum_.source_domains[home] == 0;
    }
    if (holders.size() == 1) {
      sum_.gpu_out[holders[0]] += each.bytes;
      if (inside) sum_.gpu_out_nvlink[holders[0]] += each.bytes;
    }
    if (holder_domains == 1 && leaves_domains) sum_.domain_out[domain_[holders[0]]] += each.bytes;
    if (leaves_stage) sum_.stage_out[to_size(each.stage)] += each.bytes;
    if (leaves_sources) sum_.source_out += each.bytes;
  }

  const ByteClasses& classes_;
  std::vector<std::size_t> domain_;  // per GPU
  Crossings sum_;
  Marks held_, seen_;  // domains
};

}  // namespace

Crossings count_crossings(const Refit& refit, const ByteClasses& classes) {
  return Counter(refit, classes).run();
}

Bytes bytes_into(const ByteClasses& classes, const std::vector<char>& inside) {
  const auto any_inside = [&inside](std::span<const std::uint32_t> gpus) {
    return std::any_of(gpus.begin(), gpus.end(), [&](std::uint32_t gpu) { return inside[gpu] != 0; });
  };
  Bytes sum;
  for (const ByteClass& each : classes.list) {
    if (!any_inside(classes.sets[each.holders]) && any_inside(classes.sets[each.receivers]))
      sum += each.bytes;
  }
  return sum;
}

}  // namespace isthmus

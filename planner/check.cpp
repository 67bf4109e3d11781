#include "planner/check.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/error.hpp"
#include "planner/check_buffers.hpp"
#include "planner/check_order.hpp"
#include "planner/check_pattern.hpp"

namespace isthmus {
namespace {

constexpr std::size_t not_carried = ~std::size_t{0};

class Checker {
 public:
  Checker(const Refit& refit, const Plan& plan, const Limits& limits)
      : refit_(refit), plan_(plan), limits_(limits) {}

  Proof run() {
    for (const Geometry& geometry : refit_.geometries) shards_.push_back(shards_of(geometry));
    for (const Pattern& pattern : plan_.patterns) extents_.push_back(extent_of(pattern));
    for (const RefitEntry& entry : refit_.tensors)
      proof_.target_bytes += shards_[entry.geometry].target_bytes;
    carried_by_.assign(refit_.tensors.size(), not_carried);
    malformed_ = !check_lanes(refit_, plan_, limits_, proof_);
    for (std::size_t i = 0; i < plan_.instances.size(); ++i) check_instance(i);
    check_tensors();
    check_scales(refit_, limits_, proof_);
    if (!malformed_) check_group_sizes(refit_, plan_, limits_, proof_);
    if (!malformed_) check_wait_cycles(refit_, plan_, limits_, proof_);
    if (!malformed_) check_buffers(refit_, plan_, limits_, proof_);
    if (!malformed_) check_puts(refit_, plan_, limits_, proof_);
    if (!malformed_) check_communicators(refit_, plan_, limits_, proof_);
    return std::move(proof_);
  }

 private:
  /// Pattern, geometry, bases, and what the tensor asks for.
  using ProofKey = std::tuple<std::uint32_t, std::uint32_t, RelativeBases, TensorDemands>;

  const std::string& name(TensorId tensor) const { return refit_.tensors[tensor.index()].tensor.name; }
  void add_malformed(TensorId tensor, std::string message) {
    malformed_ = true;
    report(proof_, limits_, [&] { return Violation{Fault::malformed, tensor, {}, {}, std::move(message)}; });
  }

  void check_instance(std::size_t index);
  std::string instance_fault(const Instance& instance) const;
  std::string rank_fault(const Instance& instance) const;
  void carry(std::size_t index);
  void check_pattern(const Instance& instance);
  Violation violation(const PlanFinding& finding, TensorId tensor, const Binding& binding) const;
  void check_tensors();

  const Refit& refit_;
  const Plan& plan_;
  const Limits& limits_;
  Proof proof_;
  bool malformed_ = false;
  std::vector<GeometryShards> shards_;   // by geometry
  std::vector<PatternExtent> extents_;   // by pattern
  std::vector<std::size_t> carried_by_;  // by tensor: the first instance that carries it
  std::map<ProofKey, PatternProof> proofs_;
};

void Checker::check_instance(std::size_t index) {
  const Instance& instance = plan_.instances[index];
  if (std::string fault = instance_fault(instance); !fault.empty()) {
    const bool known = instance.tensor.index() < refit_.tensors.size();
    const std::string subject = known ? fmt::format("tensor {}: ", name(instance.tensor)) : "";
    add_malformed(instance.tensor, fmt::format("{}instance {} {}", subject, index, fault));
    if (known) carry(index);
    return;
  }
  carry(index);
  if (instance.version != plan_.version) {
    report(proof_, limits_, [&] {
      return Violation{Fault::wrong_version,
                       instance.tensor,
                       {},
                       {},
                       fmt::format("tensor {}: instance {} moves version {}; the plan is for version {}",
                                   name(instance.tensor), index, instance.version, plan_.version)};
    });
  }
  check_pattern(instance);
}

std::string Checker::instance_fault(const Instance& instance) const {
  if (instance.tensor.index() >= refit_.tensors.size()) {
    return fmt::format("names tensor {}; there are {}", instance.tensor.value, refit_.tensors.size());
  }
  if (instance.pattern.index() >= plan_.patterns.size()) {
    return fmt::format("names pattern {}; there are {}", instance.pattern.value, plan_.patterns.size());
  }
  const PatternExtent& extent = extents_[instance.pattern.index()];
  if (instance.lane.index() + extent.lanes > plan_.lanes.size()) {
    return fmt::format("uses lanes up to {}; there are {}", instance.lane.index() + extent.lanes - 1,
                       plan_.lanes.size());
  }
  const std::size_t steps = plan_.pattern(instance).steps.size();
  const bool scheduled = instance.schedule != Instance::no_schedule;
  if (scheduled && instance.schedule + steps > plan_.schedule.size()) {
    return fmt::format("has {} steps from entry {} of the schedule on; it has {} entries", steps,
                       instance.schedule, plan_.schedule.size());
  }
  if (!scheduled && instance.group + extent.groups > (std::uint64_t{1} << 32U)) {
    return fmt::format("counts groups up to {}; 32 bits are allowed", instance.group + extent.groups - 1);
  }
  if (instance.buffer != Instance::own_memory && instance.buffer >= plan_.buffers.size()) {
    return fmt::format("stages in buffer {}; there are {}", instance.buffer, plan_.buffers.size());
  }
  if (instance.offset.value < 0)
    return fmt::format("stages at byte {}; 0 is the first", instance.offset.value);
  return rank_fault(instance);
}

std::string Checker::rank_fault(const Instance& instance) const {
  const PatternExtent& extent = extents_[instance.pattern.index()];
  const std::uint64_t source_end =
      extent.source_ranks == 0 ? 0 : instance.source_base.value + extent.source_ranks;
  const std::uint64_t target_end =
      extent.target_ranks == 0 ? 0 : instance.target_base.value + extent.target_ranks;
  if (std::max(source_end, target_end) <= refit_.ranks()) return {};
  return fmt::format("names rank {}; there are {}", std::max(source_end, target_end) - 1, refit_.ranks());
}

void Checker::carry(std::size_t index) {
  const TensorId tensor = plan_.instances[index].tensor;
  std::size_t& first = carried_by_[tensor.index()];
  if (first == not_carried) {
    first = index;
    return;
  }
  report(proof_, limits_, [&] {
    return Violation{Fault::tensor_repeated,
                     tensor,
                     {},
                     {},
                     fmt::format("tensor {}: carried by instances {} and {}; exactly one is allowed",
                                 name(tensor), first, index)};
  });
}

void Checker::check_pattern(const Instance& instance) {
  const RefitEntry& entry = refit_.tensors[instance.tensor.index()];
  const GeometryShards& shards = shards_[entry.geometry];
  const Pattern& pattern = plan_.pattern(instance);
  const Binding binding = bind(instance, extents_[instance.pattern.index()], entry, shards);
  const TensorDemands demands{entry.tensor.install, entry.tensor.quantised};
  const auto added = proofs_.try_emplace({instance.pattern.value, entry.geometry, binding.bases, demands});
  PatternProof& known = added.first->second;
  if (added.second) {
    known =
        prove_pattern(pattern, refit_.geometries[entry.geometry], shards, binding.bases, demands, limits_);
    if (known.count == 0) ++proof_.patterns_proven;
  }
  proof_.steps_checked += pattern.steps.size();
  proof_.full_tensor_materialised |= known.full_tensor_staged;
  malformed_ |= known.malformed;
  for (const PlanFinding& finding : known.findings) {
    report(proof_, limits_, [&] { return violation(finding, instance.tensor, binding); });
  }
  proof_.violation_count += known.count - known.findings.size();
}

Violation Checker::violation(const PlanFinding& finding, TensorId tensor, const Binding& binding) const {
  std::string message = fmt::format("tensor {}", name(tensor));
  if (!finding.element.empty()) message += fmt::format(", element ({})", fmt::join(finding.element, ","));
  if (finding.rank != PlanFinding::no_rank)
    message += fmt::format(" on rank {}", binding.global(finding.rank));
  message += ": " + finding.detail;
  return {finding.fault, tensor, finding.element, finding.steps, std::move(message)};
}

void Checker::check_tensors() {
  std::size_t carried = 0;
  Bytes bytes;
  for (std::size_t i = 0; i < carried_by_.size(); ++i) {
    if (carried_by_[i] == not_carried) continue;
    ++carried;
    bytes += shards_[refit_.tensors[i].geometry].target_bytes;
  }
  for (std::uint32_t i = 0; i < carried_by_.size(); ++i) {
    if (carried_by_[i] != not_carried) continue;
    report(proof_, limits_, [&] {
      return Violation{
          Fault::tensor_missing,
          {i},
          {},
          {},
          fmt::format("plan covers {} of {} target tensors, {} of {} bytes; no instance carries tensor {}",
                      carried, carried_by_.size(), bytes.value, proof_.target_bytes.value, name({i}))};
    });
  }
}

}  // namespace

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::malformed: return "malformed";
    case Fault::tensor_missing: return "tensor_missing";
    case Fault::tensor_repeated: return "tensor_repeated";
    case Fault::never_written: return "never_written";
    case Fault::written_twice: return "written_twice";
    case Fault::outside_target: return "outside_target";
    case Fault::not_held: return "not_held";
    case Fault::wait_cycle: return "wait_cycle";
    case Fault::group_too_large: return "group_too_large";
    case Fault::too_many_bytes: return "too_many_bytes";
    case Fault::not_aligned: return "not_aligned";
    case Fault::buffer_too_small: return "buffer_too_small";
    case Fault::overwritten: return "overwritten";
    case Fault::out_of_reach: return "out_of_reach";
    case Fault::wrong_version: return "wrong_version";
    case Fault::other_refit: return "other_refit";
    case Fault::not_installed: return "not_installed";
    case Fault::too_many_puts: return "too_many_puts";
    case Fault::never_made: return "never_made";
    case Fault::not_connected: return "not_connected";
    case Fault::wrong_dtype: return "wrong_dtype";
    case Fault::group_cut: return "group_cut";
  }
  return "";
}

Proof check(const Refit& refit, const Plan& plan, const Limits& limits) {
  return Checker(refit, plan, limits).run();
}

}  // namespace isthmus

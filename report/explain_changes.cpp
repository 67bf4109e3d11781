// The single changes that `isthmus explain` tries.

#include <algorithm>

#include <fmt/format.h>

#include "model/host_order.hpp"
#include "model/placement.hpp"
#include "model/quantity.hpp"
#include "model/scenario_fabric.hpp"
#include "planner/policy.hpp"
#include "report/explain.hpp"
#include "report/source_variant.hpp"

namespace isthmus::report {
namespace {

class Changes {
 public:
  Changes(const Scenario& scenario, const Fabric& fabric, const std::string& policy)
      : scenario_(scenario), fabric_(fabric), policy_(policy) {}

  std::vector<ChangeRow> run() {
    settings();
    fabric();
    if (scenario_.model) placements();
    for (const Policy& other : policies()) {
      if (other.name == policy_) continue;
      add(ChangeKind::policy, fmt::format("policy {}", other.name), {});
      list_.back().policy = other.name;
    }
    return std::move(list_);
  }

 private:
  void add(ChangeKind kind, std::string what, std::vector<Override> settings) {
    list_.push_back({std::move(what), std::move(settings), policy_, "", 0, kind});
  }

  void settings() {
    const RefitSpec& refit = scenario_.refit;
    const auto setting = [&](const char* what, std::string key, std::string value) {
      add(ChangeKind::setting, what, {{std::move(key), std::move(value)}});
    };
    setting("one more stream", "refit.streams", fmt::format("{}", refit.streams + 1));
    if (scenario_.train && scenario_.train->pp > refit.streams + 1)
      setting("a stream for every stage", "refit.streams", fmt::format("{}", scenario_.train->pp));
    setting("one more packet in flight", "refit.buffers", fmt::format("{}", refit.buffers + 1));
    if (lists_quantised(scenario_) && refit.quantise_at == QuantiseAt::target) {
      setting("quantised at the source", "refit.quantize_at", "source");
      list_.back().policy = balanced_quantized;
    }
    if (scenario_.model && refit.bulk.kind != BulkRule::Kind::all)
      setting("all tensors by reshard", "refit.bulk", "all");
  }

  void fabric() {
    const FabricSpec& spec = scenario_.fabric;
    const std::optional<LinkId> nic = fabric_.nic_out(GpuId{0}), nvlink = fabric_.nvlink_out(GpuId{0});
    if (nic) {
      add(ChangeKind::fabric, "a second NIC for every GPU (twice the rate)",
          fabric_change("nic_bandwidth", &FabricSpec::nic_bandwidth, *nic));
      FabricEdit edit;
      edit.gpus = {0};
      FabricSpec changed = spec;
      changed.edits.push_back(edit);
      add(ChangeKind::fault, "rail 0 down (its GPUs use their neighbours' NICs)",
          spec.edits.empty() ? std::vector<Override>{{"fabric.edits", "[{remove: nic, gpus: 0}]"}}
                             : std::vector<Override>{{"fabric", fabric_yaml(changed)}});
    }
    if (nvlink) {
      add(ChangeKind::fabric, "NVLink twice as fast",
          fabric_change("nvlink_bandwidth", &FabricSpec::nvlink_bandwidth, *nvlink));
    }
    if (!spec.routing.pxn && spec.parts.empty())
      add(ChangeKind::fabric, "PXN: leave on the destination's rail", {{"fabric.pxn", "true"}});
    if (spec.gpus_per_rack && spec.parts.empty())
      add(ChangeKind::placement, "all 72 GPUs of each rack in use", {{"fabric.gpus_per_rack", "72"}});
  }

  /// Twice a link's nominal rate; of joined parts in each of them.
  std::vector<Override> fabric_change(std::string_view key, std::optional<Bandwidth> FabricSpec::*member,
                                      LinkId link) const {
    const Bandwidth twice{2 * fabric_.links()[link.index()].nominal.value};
    if (scenario_.fabric.parts.empty()) return {{fmt::format("fabric.{}", key), to_string(twice)}};
    FabricSpec changed = scenario_.fabric;
    for (FabricSpec& part : changed.parts) {
      if (part.*member) part.*member = Bandwidth{2 * (part.*member)->value};
    }
    return {{"fabric", fabric_yaml(changed)}};
  }

  void placements() {
    std::vector<std::vector<GpuId>> known{rank_places(scenario_, fabric_)};
    for (const PlacementKind kind : {PlacementKind::contiguous, PlacementKind::interleaved,
                                     PlacementKind::co_racked, PlacementKind::rail_aligned}) {
      Scenario moved = scenario_;
      const HostOrder order = host_order(kind, fabric_, scenario_.train->gpus, scenario_.generate->gpus);
      moved.train_ranks = order.train;
      moved.generate_ranks = order.generate;
      if (kind == PlacementKind::contiguous) contiguous(moved);
      if (!placement_faults(moved, fabric_).empty()) continue;
      std::vector<GpuId> places = rank_places(moved, fabric_);
      if (std::find(known.begin(), known.end(), places) != known.end()) continue;
      known.push_back(std::move(places));
      add(ChangeKind::placement, fmt::format("hosts {}", to_string(kind)),
          {{"ranks", fmt::format("{{train: {}, generate: {}}}", side_text(*moved.train_ranks),
                                 side_text(*moved.generate_ranks))}});
    }
  }

  /// Said host by host, so that it can replace what the scenario says.
  void contiguous(Scenario& moved) const {
    const HostOrder order =
        host_order(PlacementKind::rail_aligned, fabric_, scenario_.train->gpus, scenario_.generate->gpus);
    moved.train_ranks = SideRanks{order.train->hosts, false};
    moved.generate_ranks = SideRanks{order.generate->hosts, false};
  }

  static std::string side_text(const SideRanks& side) {
    return fmt::format("{{hosts: [{}]{}}}", fmt::join(side.hosts, ", "), side.by_rail ? ", fill: rails" : "");
  }

  const Scenario& scenario_;
  const Fabric& fabric_;
  const std::string& policy_;
  std::vector<ChangeRow> list_;
};

}  // namespace

std::vector<ChangeRow> single_changes(const Scenario& scenario, const Fabric& fabric,
                                      const std::string& policy) {
  return Changes(scenario, fabric, policy).run();
}

std::vector<ChangeRow> layout_changes(const Scenario& scenario, const std::string& policy) {
  std::vector<ChangeRow> changes;
  if (!scenario.generate) return changes;
  const GenerateSpec& generate = *scenario.generate;
  const auto add = [&](int tp) {
    const int engines = generate.gpus / (tp * generate.pp);
    changes.push_back({fmt::format("generation TP{}, DP{}", tp, engines),
                       {{"generate.tp", fmt::format("{}", tp)}, {"generate.dp", fmt::format("{}", engines)}},
                       policy,
                       "",
                       0,
                       ChangeKind::layout});
  };
  if (generate.tp % 2 == 0) add(generate.tp / 2);
  if (generate.gpus % (2 * generate.tp * generate.pp) == 0) add(2 * generate.tp);
  return changes;
}

}  // namespace isthmus::report

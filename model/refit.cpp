#include "model/refit.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"
#include "model/grid.hpp"
#include "model/placement.hpp"
#include "model/scenario_model.hpp"
#include "model/stages.hpp"
#include "model/traffic_rules.hpp"

namespace isthmus {
namespace {

/// The index of an equal geometry, added if there is none yet.
std::uint32_t intern(std::vector<Geometry>& geometries, Geometry geometry) {
  const auto known = std::find(geometries.begin(), geometries.end(), geometry);
  if (known != geometries.end()) return static_cast<std::uint32_t>(known - geometries.begin());
  geometries.push_back(std::move(geometry));
  return static_cast<std::uint32_t>(geometries.size() - 1);
}

/// Finds the geometry of each tensor of a scenario; tensors that agree in what layouts depend on share it.
class Geometries {
 public:
  Geometries(const Scenario& scenario, std::vector<Geometry>& list) : scenario_(scenario), list_(list) {}

  std::uint32_t of(const RefitTensor& tensor, int generate_stage) {
    const auto key = std::tuple(tensor.shape, tensor.dtype, tensor.tensor_parallel, tensor.expert,
                                tensor.key_value_heads, tensor.copy_of, generate_stage);
    const auto known = known_.find(key);
    if (known != known_.end()) return known->second;
    Geometry geometry{train_layout(scenario_, tensor), generate_layout(scenario_, tensor, generate_stage)};
    return known_.emplace(key, intern(list_, std::move(geometry))).first->second;
  }

 private:
  using Key =
      std::tuple<std::vector<std::int64_t>, Dtype, TensorParallel, bool, std::int64_t, std::int64_t, int>;

  const Scenario& scenario_;
  std::vector<Geometry>& list_;
  std::map<Key, std::uint32_t> known_;
};

void add_tensors(const Scenario& scenario, const Inventory& inventory, Refit& refit) {
  const TrainSpec& train = *scenario.train;
  const StageMap stages = train_stage_map(scenario, inventory.layers);
  const StageMap generate_stages = generate_stage_map(scenario, inventory.layers);
  Geometries geometries(scenario, refit.geometries);
  const auto per_stage = static_cast<std::uint32_t>(train.gpus / train.pp);
  for (RefitTensor& tensor : list_tensors(scenario, inventory)) {
    RefitEntry entry;
    entry.stage = stages.stage_of(tensor);
    entry.source_base = {static_cast<std::uint32_t>(entry.stage) * per_stage};
    entry.target_base = {static_cast<std::uint32_t>(train.gpus)};
    entry.geometry = geometries.of(
        tensor, tensor.tied_head ? generate_stages.stages - 1 : generate_stages.stage_of(tensor));
    entry.tensor = std::move(tensor);
    refit.tensors.push_back(std::move(entry));
  }
}

Refit resolve_model(const Scenario& scenario, Fabric fabric) {
  Refit refit{scenario.name, std::move(fabric), {}, 0, 0, 1, {}, {}, scenario.refit, {}};
  const Inventory inventory = cut_inventory(scenario, read_full_inventory(scenario));
  raise_first(grid_faults(scenario, inventory));
  refit.train_ranks = to_size(scenario.train->gpus);
  refit.generate_ranks = to_size(scenario.generate->gpus);
  refit.stages = scenario.train->pp;
  refit.totals = totals(inventory);
  const ModelSpec& model = *scenario.model;
  refit.wire = precision_totals(in_precision(inventory, wire_precision(scenario)), {model.mtp, model.vision});
  refit.gpu_of_rank = rank_places(scenario, refit.fabric);
  add_relay_ranks(refit);
  add_tensors(scenario, inventory, refit);
  return refit;
}

/// Moves a mesh down so that its lowest rank is 0; returns that rank.
Rank make_local(Mesh& mesh) {
  const Rank base = *std::min_element(mesh.ranks.begin(), mesh.ranks.end());
  for (Rank& rank : mesh.ranks) rank.value -= base.value;
  return base;
}

/// One past the highest rank that a bare tensor names.
std::uint32_t named_ranks(const Scenario& scenario) {
  std::uint32_t ranks = 0;
  for (const TensorSpec& spec : scenario.tensors) {
    const auto count = [&ranks](const Layout& layout) {
      for (const Rank rank : layout.mesh.ranks) ranks = std::max(ranks, rank.value + 1);
    };
    count(spec.source);
    count(spec.target);
    for (const Layout& layout : spec.claims.other_sources) count(layout);
  }
  return ranks;
}

Refit resolve_tensors(const Scenario& scenario, Fabric fabric) {
  Refit refit{scenario.name, std::move(fabric), {}, 0, 0, 1, {}, {}, scenario.refit, {}};
  raise_first(tensor_faults(scenario));
  for (PlainTensor& plain : plain_tensors(scenario)) {
    Geometry geometry{std::move(plain.source), std::move(plain.target)};
    RefitEntry entry;
    entry.source_base = make_local(geometry.source.mesh);
    entry.target_base = make_local(geometry.target.mesh);
    entry.declared = plain.declared;
    entry.tensor.name = std::move(plain.name);
    entry.tensor.shape = geometry.source.shape;
    entry.tensor.dtype = geometry.source.dtype;
    entry.tensor.role = Role::bulk;
    entry.tensor.copy = plain.copy;
    const TensorSpec& spec = scenario.tensors[plain.declared];
    entry.tensor.install = spec.claims.install;
    refit.views.push_back({spec.source_view, spec.target_view});
    entry.geometry = intern(refit.geometries, std::move(geometry));
    refit.tensors.push_back(std::move(entry));
  }
  const bool viewed = std::any_of(refit.views.begin(), refit.views.end(),
                                  [](const TensorViews& views) { return views.source || views.target; });
  if (!viewed) refit.views.clear();
  raise_first(rank_faults(scenario, refit.fabric));
  const std::uint32_t ranks = named_ranks(scenario);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) refit.gpu_of_rank.push_back({rank});
  add_relay_ranks(refit);
  return refit;
}

/// Refuses what would take more than ten days through one NIC: times are 64-bit picoseconds.
void require_reasonable_size(const Scenario& scenario, const Refit& refit) {
  constexpr std::int64_t most_seconds = 1'000'000;
  Int128 bytes = 0;
  for (const RefitEntry& entry : refit.tensors)
    bytes += refit.geometries[entry.geometry].source.bytes().value;
  Bandwidth slowest = refit.fabric.links().front().nominal;
  for (const Link& link : refit.fabric.links()) slowest = std::min(slowest, link.nominal);
  if (bytes <= Int128{slowest.value} * most_seconds) return;
  throw InputError(scenario.at("fabric"),
                   fmt::format("{:.3g} bytes to move over links of {:.3g} bytes per second",
                               static_cast<double>(bytes), static_cast<double>(slowest.value)),
                   fmt::format("what one link moves in {} seconds", most_seconds));
}

/// Whether a way leads from one to the other, perhaps with a hop over NVLink at either end.
bool joined(const Fabric& fabric, GpuId source, GpuId target) {
  if (fabric.reachable(source, target)) return true;
  for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
    const DomainId domain = fabric.domain_of({g});
    if (domain != fabric.domain_of(source) && domain != fabric.domain_of(target)) continue;
    if (fabric.reachable(source, {g}) && fabric.reachable({g}, target)) return true;
  }
  return false;
}

/// Edits, files and rails may leave GPUs that no way joins: that is said before anything is planned.
void require_ways(const Scenario& scenario, const Refit& refit) {
  const FabricSpec& spec = scenario.fabric;
  if (spec.edits.empty() && spec.import_file.empty() && spec.network != NetworkKind::rails) return;
  std::set<GpuId> sources, targets;
  for (const RefitEntry& entry : refit.tensors) {
    const Geometry& geometry = refit.geometries[entry.geometry];
    for (const Rank rank : geometry.source.mesh.ranks) {
      sources.insert(refit.gpu({entry.source_base.value + rank.value}));
    }
    for (const Rank rank : geometry.target.mesh.ranks) {
      targets.insert(refit.gpu({entry.target_base.value + rank.value}));
    }
  }
  for (const GpuId source : sources) {
    for (const GpuId target : targets) {
      if (joined(refit.fabric, source, target)) continue;
      try {
        refit.fabric.route(source, target);
      } catch (const InputError& error) {
        throw InputError(scenario.at("fabric"), error.found(), error.allowed());
      }
    }
  }
}

}  // namespace

Bytes Refit::payload() const {
  Bytes sum;
  for (const RefitEntry& entry : tensors) {
    if (!entry.tensor.copy) sum += geometries[entry.geometry].source.bytes();
  }
  return sum;
}

bool Refit::sources_quantise() const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const RefitEntry& entry) { return entry.tensor.quantised != QuantisedPart::none; });
}

Bytes Refit::largest_live_share() const {
  std::vector<std::vector<Bytes>> shares(geometries.size());  // per mesh position of the target
  for (std::size_t i = 0; i < geometries.size(); ++i) {
    for (const Region& region : geometries[i].target.regions())
      shares[i].push_back(geometries[i].target.bytes(region));
  }
  std::vector<Bytes> of_rank(ranks());
  for (const RefitEntry& entry : tensors) {
    const std::vector<Rank>& mesh = geometries[entry.geometry].target.mesh.ranks;
    for (std::size_t i = 0; i < mesh.size(); ++i) {
      of_rank[entry.target_base.index() + mesh[i].index()] +=
          live_bytes(entry.tensor, shares[entry.geometry][i]);
    }
  }
  return of_rank.empty() ? Bytes{} : *std::max_element(of_rank.begin(), of_rank.end());
}

std::vector<InputFault> rank_faults(const Scenario& scenario, const Fabric& fabric) {
  const std::uint32_t ranks = named_ranks(scenario);
  if (ranks <= fabric.gpu_count()) return {};
  const std::size_t per_host = std::max<std::size_t>(1, fabric.gpus_on(HostId{0}));
  const std::size_t hosts = (ranks + per_host - 1) / per_host;
  return {{scenario.at("fabric.hosts"), fmt::format("{} GPUs", fabric.gpu_count()),
           fmt::format("at least {} GPUs (ranks 0 to {} are named)", ranks, ranks - 1),
           fmt::format("{}", hosts)}};
}

void add_relay_ranks(Refit& refit) {
  if (refit.settings.relay == Relay::members) return;
  const Fabric& fabric = refit.fabric;
  std::vector<char> has_rank(fabric.gpu_count()), has_member(fabric.domain_count());
  for (const GpuId gpu : refit.gpu_of_rank) {
    has_rank[gpu.index()] = 1;
    has_member[fabric.domain_of(gpu).index()] = 1;
  }
  for (std::uint32_t g = 0; g < has_rank.size(); ++g) {
    if (has_rank[g] != 0 || has_member[fabric.domain_of({g}).index()] == 0) continue;
    refit.gpu_of_rank.push_back({g});
    ++refit.relay_ranks;
  }
}

Fabric scenario_fabric(const Scenario& scenario) {
  try {
    return Fabric(scenario.fabric, scenario.file.parent_path());
  } catch (const InputError& error) {
    if (!error.where().file.empty()) throw;  // in a topology file
    // The fabric knows the key; the scenario knows where it stands.
    if (error.allowed().empty()) throw InputError(scenario.at(error.where().key), error.found());
    throw InputError(scenario.at(error.where().key), error.found(), error.allowed());
  }
}

Refit resolve(const Scenario& scenario) {
  require_refit(scenario);
  Fabric fabric = scenario_fabric(scenario);
  Refit refit = scenario.model ? resolve_model(scenario, std::move(fabric))
                               : resolve_tensors(scenario, std::move(fabric));
  raise_first(disturbance_faults(scenario, refit.fabric));
  refit.disturbances = scenario.disturbances;
  require_reasonable_size(scenario, refit);
  require_ways(scenario, refit);
  return refit;
}

}  // namespace isthmus

#include "model/refit.hpp"

#include <algorithm>
#include <regex>

#include <fmt/format.h>

#include "model/grid.hpp"

namespace isthmus {
namespace {

/// Fewer decoder layers than the configuration has.
void keep_layers(Inventory& inventory, int layers) {
  for (TensorPattern& pattern : inventory.patterns) {
    if (pattern.home != Home::layer) continue;
    std::erase_if(pattern.layers, [layers](int layer) { return layer >= layers; });
  }
  std::erase_if(inventory.patterns, [](const TensorPattern& pattern) {
    return pattern.home == Home::layer && pattern.layers.empty();
  });
  inventory.layers = layers;
}

Inventory read_inventory(const Scenario& scenario) {
  const ModelSpec& model = *scenario.model;
  const std::filesystem::path config = scenario.file.parent_path() / model.config;
  if (!std::filesystem::exists(config)) {
    throw InputError(scenario.at("model.config"), fmt::format("'{}'", model.config),
                     "an existing config.json, relative to the scenario");
  }
  if (model.dtype != Dtype::bf16) {
    throw InputError(scenario.at("model.dtype"), to_string(model.dtype), "bf16");
  }
  Inventory inventory = read_model_config(config);
  if (model.layers) {
    if (*model.layers < 1 || *model.layers > inventory.layers) {
      throw InputError(scenario.at("model.layers"), fmt::format("{}", *model.layers),
                       fmt::format("1 to {} (the configuration's layers)", inventory.layers));
    }
    keep_layers(inventory, *model.layers);
  }
  return inventory;
}

std::vector<RefitTensor> list_tensors(const Scenario& scenario, const Inventory& inventory) {
  const BulkRule& rule = scenario.refit.bulk;
  std::vector<RefitTensor> tensors = refit_tensors(
      inventory, {scenario.model->mtp, scenario.model->vision}, [&rule](const TensorPattern& pattern) {
        return rule.kind == BulkRule::Kind::all || pattern.role == Role::bulk;
      });
  std::vector<std::regex> expressions;
  if (rule.kind == BulkRule::Kind::match) {
    for (const std::string& pattern : rule.patterns) expressions.emplace_back(pattern);
  }
  for (RefitTensor& tensor : tensors) {
    tensor.dtype = scenario.model->dtype;
    if (rule.kind != BulkRule::Kind::match) continue;
    const bool bulk = std::any_of(
        expressions.begin(), expressions.end(),
        [&tensor](const std::regex& expression) { return std::regex_search(tensor.name, expression); });
    tensor.role = bulk ? Role::bulk : Role::misc;
  }
  return tensors;
}

/// Ranks fill the listed hosts one after the other.
void place_side(const Scenario& scenario, const Fabric& fabric, std::string_view side, int gpus,
                const std::vector<int>& hosts, std::vector<GpuId>& gpu_of_rank) {
  const std::string key = fmt::format("ranks.{}.hosts", side);
  const auto per_host = static_cast<int>(fabric.gpus_per_host());
  const auto needed = to_size((gpus + per_host - 1) / per_host);
  if (hosts.size() != needed) {
    throw InputError(scenario.at(key), fmt::format("{} hosts", hosts.size()),
                     fmt::format("{} hosts ({} GPUs, {} per host)", needed, gpus, per_host));
  }
  for (const int host : hosts) {
    if (host < 0 || to_size(host) >= fabric.host_count()) {
      throw InputError(
          scenario.at(key), fmt::format("host {}", host),
          fmt::format("0 to {} (fabric.hosts is {})", fabric.host_count() - 1, fabric.host_count()));
    }
  }
  for (int rank = 0; rank < gpus; ++rank) {
    const HostId host{static_cast<std::uint32_t>(hosts[to_size(rank / per_host)])};
    gpu_of_rank.push_back(fabric.gpu_at(host, to_size(rank % per_host)));
  }
}

std::vector<int> consecutive_hosts(const Scenario& scenario, const Fabric& fabric, int first, int gpus) {
  const auto per_host = static_cast<int>(fabric.gpus_per_host());
  const int count = (gpus + per_host - 1) / per_host;
  if (to_size(first + count) > fabric.host_count()) {
    throw InputError(scenario.at("fabric.hosts"), fmt::format("{}", fabric.host_count()),
                     fmt::format("at least {} hosts of {} GPUs for {} training and {} generation GPUs",
                                 first + count, per_host, scenario.train->gpus, scenario.generate->gpus));
  }
  std::vector<int> hosts;
  for (int host = first; host < first + count; ++host) hosts.push_back(host);
  return hosts;
}

void place_ranks(const Scenario& scenario, Refit& refit) {
  const int train = scenario.train->gpus, generate = scenario.generate->gpus;
  const std::vector<int> train_hosts = scenario.train_ranks
                                           ? scenario.train_ranks->hosts
                                           : consecutive_hosts(scenario, refit.fabric, 0, train);
  place_side(scenario, refit.fabric, "train", train, train_hosts, refit.gpu_of_rank);
  const int next = train_hosts.empty() ? 0 : 1 + *std::max_element(train_hosts.begin(), train_hosts.end());
  const std::vector<int> generate_hosts = scenario.generate_ranks
                                              ? scenario.generate_ranks->hosts
                                              : consecutive_hosts(scenario, refit.fabric, next, generate);
  place_side(scenario, refit.fabric, "generate", generate, generate_hosts, refit.gpu_of_rank);
}

/// The index of an equal geometry, added if there is none yet.
std::uint32_t intern(std::vector<Geometry>& geometries, Geometry geometry) {
  const auto known = std::find(geometries.begin(), geometries.end(), geometry);
  if (known != geometries.end()) return static_cast<std::uint32_t>(known - geometries.begin());
  geometries.push_back(std::move(geometry));
  return static_cast<std::uint32_t>(geometries.size() - 1);
}

void add_tensors(const Scenario& scenario, const Inventory& inventory, Refit& refit) {
  const TrainSpec& train = *scenario.train;
  const StageMap stages = stage_map(scenario, inventory.layers);
  const auto per_stage = static_cast<std::uint32_t>(train.gpus / train.pp);
  for (RefitTensor& tensor : list_tensors(scenario, inventory)) {
    RefitEntry entry;
    entry.stage = stages.stage_of(tensor);
    entry.source_base = {static_cast<std::uint32_t>(entry.stage) * per_stage};
    entry.target_base = {static_cast<std::uint32_t>(train.gpus)};
    entry.geometry =
        intern(refit.geometries, {train_layout(scenario, tensor), generate_layout(scenario, tensor)});
    entry.tensor = std::move(tensor);
    refit.tensors.push_back(std::move(entry));
  }
}

Refit resolve_model(const Scenario& scenario, Fabric fabric) {
  Refit refit{scenario.name, std::move(fabric), {}, 0, 0, 1, {}, {}, scenario.refit, {}};
  const Inventory inventory = read_inventory(scenario);
  require_valid_grids(scenario, inventory);
  refit.train_ranks = to_size(scenario.train->gpus);
  refit.generate_ranks = to_size(scenario.generate->gpus);
  refit.stages = scenario.train->pp;
  refit.totals = totals(inventory);
  place_ranks(scenario, refit);
  add_tensors(scenario, inventory, refit);
  return refit;
}

/// Moves a mesh down so that its lowest rank is 0; returns that rank.
Rank make_local(Mesh& mesh) {
  const Rank base = *std::min_element(mesh.ranks.begin(), mesh.ranks.end());
  for (Rank& rank : mesh.ranks) rank.value -= base.value;
  return base;
}

Refit resolve_tensors(const Scenario& scenario, Fabric fabric) {
  Refit refit{scenario.name, std::move(fabric), {}, 0, 0, 1, {}, {}, scenario.refit, {}};
  std::uint32_t ranks = 0;
  for (const TensorSpec& spec : scenario.tensors) {
    for (const Layout* layout : {&spec.source, &spec.target}) {
      for (const Rank rank : layout->mesh.ranks) ranks = std::max(ranks, rank.value + 1);
    }
    Geometry geometry{spec.source, spec.target};
    RefitEntry entry;
    entry.source_base = make_local(geometry.source.mesh);
    entry.target_base = make_local(geometry.target.mesh);
    entry.geometry = intern(refit.geometries, std::move(geometry));
    entry.tensor.name = spec.name;
    entry.tensor.shape = spec.source.shape;
    entry.tensor.dtype = spec.source.dtype;
    entry.tensor.role = Role::bulk;
    refit.tensors.push_back(std::move(entry));
  }
  if (ranks > refit.fabric.gpu_count()) {
    throw InputError(scenario.at("fabric.hosts"), fmt::format("{} GPUs", refit.fabric.gpu_count()),
                     fmt::format("at least {} GPUs (ranks 0 to {} are named)", ranks, ranks - 1));
  }
  for (std::uint32_t rank = 0; rank < ranks; ++rank) refit.gpu_of_rank.push_back({rank});
  return refit;
}

}  // namespace

Bytes Refit::payload() const {
  Bytes sum;
  for (const RefitEntry& entry : tensors) sum += geometries[entry.geometry].source.bytes();
  return sum;
}

Refit resolve(const Scenario& scenario) {
  Fabric fabric = [&scenario] {
    try {
      return Fabric(scenario.fabric);
    } catch (const InputError& error) {  // the fabric knows the key; the scenario knows where it stands
      throw InputError(scenario.at(error.where().key), error.message());
    }
  }();
  return scenario.model ? resolve_model(scenario, std::move(fabric))
                        : resolve_tensors(scenario, std::move(fabric));
}

}  // namespace isthmus

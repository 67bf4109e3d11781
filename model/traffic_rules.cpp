#include "model/traffic_rules.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "model/refit.hpp"
#include "model/traffic_channels.hpp"

namespace isthmus {
namespace {

constexpr std::size_t max_streams = 262'144;

std::size_t stream_count(const TrafficSpec& spec) {
  const std::size_t gpus = spec.gpus.size();
  return spec.pattern == TrafficPattern::all_to_all ? gpus * (gpus - 1) : gpus + spec.flows.size();
}

/// Refuses what would take a link more than a day: times are 64-bit picoseconds.
std::optional<InputFault> size_fault(const Scenario& scenario, const Fabric& fabric,
                                     const std::vector<TrafficStream>& streams) {
  constexpr double most_seconds = 86'400;
  double time = 0;
  for (const TrafficStream& stream : streams) {
    for (const LinkId link : stream.links) {
      const double rate = static_cast<double>(fabric.links()[link.index()].nominal.value);
      time += static_cast<double>(stream.bytes.value) / rate;
    }
  }
  if (time <= most_seconds) return std::nullopt;
  return InputFault{scenario.at("traffic.bytes"), fmt::format("{:.3g} s of traffic, link after link", time),
                    fmt::format("at most {} s", most_seconds), "fewer bytes"};
}

/// The first fault that building the fabric or its streams raises, if any.
std::optional<InputFault> build_fault(const Scenario& scenario) {
  try {
    const Fabric fabric = scenario_fabric(scenario);
    for (const GpuId gpu : traffic_gpus(*scenario.traffic)) {
      if (gpu.value < fabric.gpu_count()) continue;
      return InputFault{scenario.at("traffic"), fmt::format("GPU {}", gpu.value),
                        fmt::format("GPUs of the fabric: 0 to {}", fabric.gpu_count() - 1),
                        "GPUs in that range, or more hosts"};
    }
    return size_fault(scenario, fabric, traffic_streams(fabric, *scenario.traffic));
  } catch (const InputError& error) {
    InputFault fault = as_fault(error, error.allowed());
    if (fault.where.file.empty()) fault.where = scenario.at(fault.where.key);
    return fault;
  }
  return std::nullopt;
}

void judge_settings(const Scenario& scenario, std::vector<InputFault>& faults) {
  for (InputFault fault : nccl_setting_faults(nccl_settings_of(*scenario.traffic))) {
    fault.where = scenario.at("traffic.nccl." + fault.where.key);
    faults.push_back(std::move(fault));
  }
}

/// Removes what `none` stands for.
void remove_key(const std::string& key, const Location& where, Scenario& scenario) {
  if (key == "fabric.edits") {
    scenario.fabric.edits.clear();
  } else if (key == "traffic.channels") {
    scenario.traffic->channels.reset();
    scenario.traffic->nccl_channels = false;
    scenario.traffic->nccl.clear();
  } else if (key == "traffic.nccl") {
    scenario.traffic->nccl.clear();
  } else {
    throw InputError(where, fmt::format("none for {}", key),
                     "none for fabric.edits, traffic.channels and traffic.nccl");
  }
}

}  // namespace

std::vector<GpuId> traffic_gpus(const TrafficSpec& spec) {
  std::vector<GpuId> gpus;
  std::set<int> seen;
  const auto add = [&](int gpu) {
    if (seen.insert(gpu).second) gpus.push_back({static_cast<std::uint32_t>(gpu)});
  };
  for (const int gpu : spec.gpus) add(gpu);
  for (const TrafficFlow& flow : spec.flows) {
    add(flow.from);
    add(flow.to);
  }
  for (const std::vector<int>& ring : spec.rings) {
    for (const int gpu : ring) add(gpu);
  }
  return gpus;
}

std::vector<InputFault> traffic_faults(const Scenario& scenario) {
  std::vector<InputFault> faults;
  judge_settings(scenario, faults);
  if (stream_count(*scenario.traffic) > max_streams) {
    faults.push_back({scenario.at("traffic"), fmt::format("{} flows", stream_count(*scenario.traffic)),
                      fmt::format("at most {}", max_streams), "fewer GPUs"});
    return faults;
  }
  if (std::optional<InputFault> fault = build_fault(scenario)) faults.push_back(std::move(*fault));
  try {
    const std::optional<Scenario> twin = healthy_twin(scenario);
    if (twin && faults.empty()) {
      if (std::optional<InputFault> fault = build_fault(*twin)) {
        fault->where = scenario.at("traffic.baseline");
        faults.push_back(std::move(*fault));
      }
    } else if (!twin && (!scenario.traffic->published.empty() || scenario.traffic->expected)) {
      faults.push_back({scenario.at("traffic"), "ratios to compare with, but nothing that is edited",
                        "fabric.edits, or a baseline that differs", ""});
    }
  } catch (const InputError& error) {
    faults.push_back(as_fault(error));
  }
  return faults;
}

std::optional<Scenario> healthy_twin(const Scenario& scenario) {
  std::vector<std::pair<std::string, std::string>> changes = scenario.traffic->baseline;
  if (changes.empty() && scenario.fabric.edits.empty()) return std::nullopt;
  if (changes.empty()) changes.emplace_back("fabric.edits", "none");
  const Location where = scenario.at("traffic.baseline");
  Scenario twin = scenario;
  twin.traffic->baseline.clear();
  twin.traffic->published.clear();
  twin.traffic->expected.reset();
  std::vector<Override> overrides;
  for (const auto& [key, value] : changes) {
    if (value == "none") {
      remove_key(key, where, twin);
    } else {
      overrides.emplace_back(key, value);
    }
  }
  try {
    twin = parse_scenario(to_yaml(twin), scenario.file, overrides);
    raise_first([&] {
      std::vector<InputFault> faults;
      judge_settings(twin, faults);
      return faults;
    }());
  } catch (const InputError& error) {  // lines of the text made here mean nothing to the user
    throw InputError(where, fmt::format("{}: {}", error.where().key, error.message()));
  }
  return twin;
}

void require_refit(const Scenario& scenario) {
  if (!scenario.traffic) return;
  throw InputError(scenario.at("traffic"), "plain traffic, which has no plan and no bound",
                   "a refit or tensors; traffic goes to isthmus simulate");
}

}  // namespace isthmus

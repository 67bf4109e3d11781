#include "report/sweep_candidates.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "model/fabric.hpp"
#include "model/placement.hpp"
#include "model/tensor_classes.hpp"
#include "planner/quick_bound.hpp"
#include "report/sweep_sides.hpp"

namespace isthmus::report {
namespace {

class Fingerprint {  // FNV-1a
 public:
  void add(std::string_view text) {
    for (const char c : text) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 1099511628211U;
  }
  std::string text() const { return fmt::format("{:016x}", hash_); }

 private:
  std::uint64_t hash_ = 14695981039346656037U;
};

void set_ranks(const HostOrder& order, Scenario& scenario) {
  scenario.train_ranks = order.train;
  scenario.generate_ranks = order.generate;
}

/// Both sides on their hosts.
struct Placed {
  std::uint32_t order = 0;  // of SweepCandidates::orders
  std::vector<GpuId> gpus;
  SideFault fault;
};

class Enumeration {
 public:
  Enumeration(const SweepSpace& space, const std::vector<std::string>& policies,
              const ExcludedLayout& excluded)
      : space_(space), excluded_(excluded), fabric_(sweep_fabric(space)) {
    result_.policies = policies;
    for (const std::string& name : space.calibrations) {
      result_.calibrations.push_back(
          read_calibration(name, space.file.parent_path(), space.at("calibrations")));
      rates_.push_back(domain_rates(fabric_, result_.calibrations.back()));
    }
  }

  SweepCandidates run() {
    result_.trains = train_specs(space_);
    result_.generates = generate_specs(space_);
    identity_.add("isthmus sweep 1");
    for (std::uint32_t m = 0; m < space_.models.size(); ++m) add_model(m);
    add_identity();
    result_.fingerprint = identity_.text();
    return std::move(result_);
  }

 private:
  void add_model(std::uint32_t model) {
    sides_.emplace(space_, model);
    needs_.clear();
    stages_.clear();
    for (const RefitTensor& tensor : sides_->tensors(0, 1).tensors)
      identity_.add(fmt::format(" {}[{}]", tensor.name, fmt::join(tensor.shape, ",")));
    std::vector<TrainSide> trains;
    std::vector<Side> generates;
    for (const TrainSpec& spec : result_.trains) trains.push_back(judge_train(spec));
    for (const GenerateSpec& spec : result_.generates) {
      Side& side = generates.emplace_back();
      side.fault = sides_->generate_fault(spec, side.memory);
    }
    for (std::uint32_t t = 0; t < trains.size(); ++t) {
      for (std::uint32_t g = 0; g < generates.size(); ++g) {
        for (std::uint32_t p = 0; p < space_.placements.size(); ++p) {
          SweepLayout layout{model, t, g, p, 0, {}, {}, trains[t].side.memory, generates[g].memory};
          layout.layers_first = trains[t].spec.layers_first;
          layout.layers_last = trains[t].spec.layers_last;
          add_layout(layout, trains[t].side, generates[g]);
        }
      }
    }
  }

  struct Side {
    SideFault fault;
    Bytes memory;
  };
  struct TrainSide {
    TrainSpec spec;  // with its layers
    Side side;
  };
  TrainSide judge_train(const TrainSpec& spec) {
    TrainSide made{spec, {}};
    sides_->balance_layers(made.spec);
    made.side.fault = sides_->train_fault(made.spec, made.side.memory);
    return made;
  }

  void add_layout(SweepLayout& layout, const Side& train, const Side& generate) {
    const int gpus = result_.trains[layout.train].gpus + result_.generates[layout.generate].gpus;
    SideFault fault;
    if (space_.budget && gpus > *space_.budget) {
      fault = {"budget", fmt::format("{} GPUs; allowed: {}", gpus, *space_.budget)};
    } else if (train.fault.found()) {
      fault = train.fault;
    } else if (generate.fault.found()) {
      fault = generate.fault;
    } else {
      fault = placed(layout).fault;
    }
    if (fault.found()) {
      exclude(layout, fault);
      return;
    }
    layout.order = placed(layout).order;
    result_.layouts.push_back(layout);
    add_candidates(layout);
  }

  void exclude(const SweepLayout& layout, const SideFault& fault) {
    auto& list = result_.exclusions;
    const auto known = std::find_if(list.begin(), list.end(),
                                    [&](const SweepExclusion& each) { return each.reason == fault.reason; });
    if (known != list.end()) {
      ++known->layouts;
    } else {
      list.push_back({fault.reason, fault.example, 1});
    }
    if (excluded_) excluded_(scenario_of(layout), fault.reason);
  }

  Scenario scenario_of(const SweepLayout& layout) const {
    TrainSpec train = result_.trains[layout.train];
    train.layers_first = layout.layers_first;
    train.layers_last = layout.layers_last;
    const GenerateSpec& generate = result_.generates[layout.generate];
    Scenario scenario = sweep_side_scenario(space_, layout.model, train, generate);
    const PlacementKind kind = space_.placements[layout.placement];
    set_ranks(host_order(kind, fabric_, train.gpus, generate.gpus), scenario);
    return scenario;
  }

  const Placed& placed(const SweepLayout& layout) {
    const int train = result_.trains[layout.train].gpus;
    const int generate = result_.generates[layout.generate].gpus;
    const auto [at, is_new] = placed_.try_emplace({train, generate, layout.placement});
    if (!is_new) return at->second;
    Placed& made = at->second;
    Scenario scenario = scenario_of(layout);
    made.order = static_cast<std::uint32_t>(result_.orders.size());
    result_.orders.push_back({scenario.train_ranks, scenario.generate_ranks});
    made.fault = placement_fault(scenario, fabric_);
    if (made.fault.found()) return made;
    made.gpus = rank_places(scenario, fabric_);
    for (std::uint32_t earlier = 0; earlier < layout.placement; ++earlier) {
      const auto other = placed_.find({train, generate, earlier});
      if (other == placed_.end() || other->second.gpus != made.gpus) continue;
      made.fault = {"placements", fmt::format("{} is {} here", to_string(space_.placements[layout.placement]),
                                              to_string(space_.placements[earlier]))};
      break;
    }
    return made;
  }

  void add_candidates(const SweepLayout& layout) {
    const auto number = static_cast<std::uint32_t>(result_.layouts.size() - 1);
    const Scenario scenario = scenario_of(layout);
    const std::vector<GpuId>& gpus = placed(layout).gpus;
    const bool cross = std::any_of(gpus.begin(), gpus.end(), [&](GpuId gpu) {
      return fabric_.domain_of(gpu) != fabric_.domain_of(gpus.front());
    });
    for (std::uint32_t bulk = 0; bulk < space_.bulk.size(); ++bulk) {
      const int generate_stages = scenario.generate->pp;
      const TargetNeeds& needs = needs_of(layout, bulk, scenario, gpus);
      const std::vector<SourceStage>& stages = stages_of(layout, bulk, scenario, gpus);
      const SoftwareCounts counts = software_counts(sides_->tensors(bulk, generate_stages), generate_stages);
      for (std::uint32_t c = 0; c < rates_.size(); ++c) {
        const CutTimes cuts = cut_times(stages, needs, rates_[c]);
        for (std::uint32_t p = 0; p < result_.policies.size(); ++p) {
          const Duration bound = floor_of(result_.policies[p], cuts, counts, result_.calibrations[c], cross);
          add_settings({number, p, bulk, 0, c, bound}, scenario.train->pp);
        }
      }
    }
  }

  /// One candidate per setting that changes the policy's plans.
  void add_settings(SweepCandidate candidate, int stages) {
    const PolicySettings heeds = settings_of(result_.policies[candidate.policy]);
    if (candidate.bulk > 0 && !heeds.bulk) return;
    std::vector<int> seen;
    for (std::uint32_t s = 0; s < space_.streams.size(); ++s) {
      const int in_use = heeds.streams ? std::min(space_.streams[s], stages) : 1;
      if (std::find(seen.begin(), seen.end(), in_use) != seen.end()) continue;
      seen.push_back(in_use);
      candidate.streams = s;
      result_.list.push_back(candidate);
    }
    if (result_.list.size() > std::numeric_limits<std::uint32_t>::max() / 2)
      throw InputError(space_.at("train"), "too many candidates", "a smaller space");
  }

  const TargetNeeds& needs_of(const SweepLayout& layout, std::uint32_t bulk, const Scenario& scenario,
                              const std::vector<GpuId>& gpus) {
    const Key key{layout.generate, static_cast<std::uint32_t>(scenario.train->gpus), layout.placement, bulk};
    const auto [at, is_new] = needs_.try_emplace(key);
    if (is_new) {
      const ClassedTensors& tensors = sides_->tensors(bulk, scenario.generate->pp);
      at->second = target_needs(scenario, tensors, generate_stage_counts(scenario, tensors, sides_->layers()),
                                fabric_, gpus);
    }
    return at->second;
  }

  const std::vector<SourceStage>& stages_of(const SweepLayout& layout, std::uint32_t bulk,
                                            const Scenario& scenario, const std::vector<GpuId>& gpus) {
    const Key key{layout.train, static_cast<std::uint32_t>(scenario.generate->gpus), layout.placement, bulk};
    const auto [at, is_new] = stages_.try_emplace(key);
    if (is_new) {
      const ClassedTensors& tensors = sides_->tensors(bulk, 1);
      at->second = source_stages(scenario, tensors, train_stage_counts(scenario, tensors, sides_->layers()),
                                 fabric_, gpus);
    }
    return at->second;
  }

  /// Everything that a result depends on beside the tensors.
  void add_identity() {
    for (const SweepCandidate& each : result_.list) {
      identity_.add(to_yaml(sweep_scenario(space_, result_, each)));
      identity_.add(fmt::format(" {} {}", result_.policies[each.policy], each.bound.value));
    }
    for (const Calibration& calibration : result_.calibrations) {
      for (const ConstantField& field : calibration_fields()) {
        const Constant& constant = calibration.*field.member;
        identity_.add(fmt::format(" {}={},{},{}", field.key, constant.value, constant.low, constant.high));
      }
    }
    for (const Link& link : fabric_.links()) {
      identity_.add(fmt::format(" {}={}", link.name, link.nominal.value));
    }
  }

  using Key = std::array<std::uint32_t, 4>;
  const SweepSpace& space_;
  const ExcludedLayout& excluded_;
  Fabric fabric_;
  SweepCandidates result_;
  Fingerprint identity_;
  std::vector<DomainRates> rates_;
  std::optional<SweepSides> sides_;
  std::map<std::tuple<int, int, std::uint32_t>, Placed> placed_;
  std::map<Key, TargetNeeds> needs_;
  std::map<Key, std::vector<SourceStage>> stages_;
};

}  // namespace

std::int64_t SweepCandidates::excluded() const {
  std::int64_t sum = 0;
  for (const SweepExclusion& each : exclusions) sum += each.layouts;
  return sum;
}

SweepCandidates sweep_candidates(const SweepSpace& space, const std::vector<std::string>& policies,
                                 const ExcludedLayout& excluded) {
  return Enumeration(space, policies, excluded).run();
}

Scenario sweep_scenario(const SweepSpace& space, const SweepCandidates& candidates,
                        const SweepCandidate& candidate) {
  const SweepLayout& layout = candidates.layouts[candidate.layout];
  TrainSpec train = candidates.trains[layout.train];
  train.layers_first = layout.layers_first;
  train.layers_last = layout.layers_last;
  const GenerateSpec& generate = candidates.generates[layout.generate];
  Scenario scenario = sweep_side_scenario(space, layout.model, train, generate);
  set_ranks(candidates.orders[layout.order], scenario);
  scenario.refit.bulk = space.bulk[candidate.bulk];
  scenario.refit.streams = space.streams[candidate.streams];
  scenario.calibration = space.calibrations[candidate.calibration];
  scenario.name = fmt::format("{}-{}-tp{}cp{}ep{}pp{}-to-{}-tp{}ep{}pp{}-{}", space.name, train.gpus,
                              train.tp, train.cp, train.ep, train.pp, generate.gpus, generate.tp, generate.ep,
                              generate.pp, to_string(space.placements[layout.placement]));
  return scenario;
}

}  // namespace isthmus::report

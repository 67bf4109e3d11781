#include "sim/quotient.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "model/error.hpp"

namespace isthmus::sim {
namespace {

constexpr std::uint32_t unset = 0xFFFFFFFF;

std::uint64_t scramble(std::uint64_t word) {
  word = (word ^ (word >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  word = (word ^ (word >> 27U)) * 0x94D049BB133111EBULL;
  return word ^ (word >> 31U);
}

std::uint64_t mixed(std::uint64_t colour, std::uint64_t word) {
  return scramble(colour * 0x9E3779B97F4A7C15ULL + word);
}

/// Numbers colours in the order of first appearance.
class Numbering {
 public:
  explicit Numbering(const std::vector<std::uint64_t>& colours) : numbers_(colours.size()) {
    std::size_t size = 64;
    while (size < 2 * colours.size()) size *= 2;
    std::vector<std::uint32_t> known(size, unset);
    for (std::uint32_t i = 0; i < colours.size(); ++i) {
      std::size_t at = colours[i] & (size - 1);
      while (known[at] != unset && colours[first_[known[at]]] != colours[i]) at = (at + 1) & (size - 1);
      if (known[at] == unset) {
        known[at] = static_cast<std::uint32_t>(first_.size());
        first_.push_back(i);
      }
      numbers_[i] = known[at];
    }
  }

  std::size_t count() const { return first_.size(); }
  std::vector<std::uint32_t>& numbers() { return numbers_; }
  std::vector<std::uint32_t>& first() { return first_; }

 private:
  std::vector<std::uint32_t> numbers_, first_;
};

/// Every term of the cost model with a value of its own, so that nothing that may differ looks alike.
Calibration all_terms() {
  Calibration calibration = wire_only();
  double number = 1;
  for (const ConstantField& field : calibration_fields()) {
    Constant& constant = calibration.*field.member;
    number += 1;
    constant.value = field.unit == "ratio" ? 1 - 1 / (7 * number)
                     : field.unit == "s"   ? 1e-7 * number
                                           : 1e10 * number;
  }
  return calibration;
}

/// Colours of flow classes and resources.
class NetworkColours {
 public:
  explicit NetworkColours(const Network& network) : network_(network), classes_(network.classes().size(), 1) {
    for (const std::int64_t capacity : network.capacities()) {
      resources_.push_back(mixed(1, static_cast<std::uint64_t>(capacity)));
    }
  }

  /// The operations of each class, as a sum over their colours and phases.
  std::vector<std::uint64_t> surroundings(const std::vector<Demand>& demands,
                                          const std::vector<std::uint64_t>& colours) const {
    std::vector<std::uint64_t> around(classes_.size(), 0);
    for (std::size_t i = 0; i < demands.size(); ++i) {
      std::uint64_t place = 1;
      for (const Demand::Phase& phase : demands[i].phases) {
        if (phase.flow_class != Demand::none) around[phase.flow_class] += mixed(colours[i], place);
        ++place;
      }
    }
    return around;
  }

  /// One round; how many colours there are then.
  std::size_t refine(const std::vector<std::uint64_t>& around) {
    std::vector<std::uint64_t> loads(resources_.size(), 0);
    for (std::size_t c = 0; c < classes_.size(); ++c) {
      const std::vector<Usage>& usages = network_.classes()[c];
      std::uint64_t used = 0;
      for (const Usage& usage : usages) used += mixed(resources_[usage.resource], usage.weight);
      classes_[c] = mixed(mixed(classes_[c], around[c]), used);
      for (const Usage& usage : usages) loads[usage.resource] += mixed(classes_[c], usage.weight);
    }
    for (std::size_t r = 0; r < resources_.size(); ++r) resources_[r] = mixed(resources_[r], loads[r]);
    return Numbering(classes_).count() + Numbering(resources_).count();
  }

  const std::vector<std::uint64_t>& classes() const { return classes_; }
  const std::vector<std::uint64_t>& resources() const { return resources_; }

 private:
  const Network& network_;
  std::vector<std::uint64_t> classes_, resources_;
};

std::vector<std::uint64_t> first_colours(const QueuePlan& queues, const std::vector<Demand>& demands) {
  std::vector<std::uint64_t> colours;
  colours.reserve(demands.size());
  for (std::uint32_t i = 0; i < demands.size(); ++i) {
    std::uint64_t colour = mixed(queues.group_size(i), static_cast<std::uint64_t>(demands[i].delay.value));
    for (const Demand::Phase& phase : demands[i].phases) {
      const bool used = phase.flow_class != Demand::none;
      colour = mixed(colour, used ? static_cast<std::uint64_t>(phase.amount) + 1 : 0);
    }
    colours.push_back(colour);
  }
  return colours;
}

/// One round of the operations' colours.
void refine(const Operations& operations, const QueuePlan& queues, const std::vector<Demand>& demands,
            const std::vector<std::uint64_t>& classes, std::vector<std::uint64_t>& colours) {
  std::vector<std::uint64_t> around = queues.surroundings(colours);
  for (std::size_t i = 0; i < around.size(); ++i) {
    for (const std::uint32_t before : operations.dependencies(operations.list[i])) {
      around[i] += mixed(colours[before], 1);
    }
    for (const Demand::Phase& phase : demands[i].phases) {
      around[i] = mixed(around[i], phase.flow_class == Demand::none ? 0 : classes[phase.flow_class]);
    }
  }
  for (std::size_t i = 0; i < around.size(); ++i) colours[i] = mixed(colours[i], around[i]);
}

/// Whether two operations ask for the same, of classes of equal colours.
bool alike(const Demand& a, const Demand& b, const std::vector<std::uint64_t>& classes) {
  if (a.delay != b.delay) return false;
  for (std::size_t p = 0; p < a.phases.size(); ++p) {
    const Demand::Phase &one = a.phases[p], &other = b.phases[p];
    if (one.flow_class == other.flow_class && one.amount == other.amount) continue;
    if (one.flow_class == Demand::none || other.flow_class == Demand::none) return false;
    if (one.amount != other.amount || classes[one.flow_class] != classes[other.flow_class]) return false;
  }
  return true;
}

/// The resources and classes of the parts: each resource carries what its first member does.
Fluid reduced_fluid(const Network& network, Numbering& classes, Numbering& resources) {
  std::vector<std::vector<Levels::Load>> loads(classes.count());
  std::vector<char> first(resources.numbers().size(), 0);
  for (const std::uint32_t resource : resources.first()) first[resource] = 1;
  for (std::size_t c = 0; c < network.classes().size(); ++c) {
    std::vector<Levels::Load>& part = loads[classes.numbers()[c]];
    for (const Usage& usage : network.classes()[c]) {
      if (first[usage.resource] == 0) continue;
      const std::uint32_t number = resources.numbers()[usage.resource];
      const auto known = std::find_if(part.begin(), part.end(),
                                      [&](const Levels::Load& load) { return load.resource == number; });
      if (known == part.end()) {
        part.push_back({number, usage.weight});
      } else {
        known->weight += usage.weight;
      }
    }
  }
  Fluid fluid;
  for (const std::uint32_t resource : resources.first()) fluid.add_resource(network.capacities()[resource]);
  for (const std::vector<Levels::Load>& part : loads) fluid.add_class_of_loads(part);
  return fluid;
}

/// The operations of each class, as a sum over their parts and phases.
std::vector<std::uint64_t> surroundings_of_parts(const Parts& parts, const Flows& flows) {
  std::vector<std::array<std::uint64_t, 2>> words;  // by part and phase
  for (std::uint64_t part = 0; part < parts.representative.size(); ++part) {
    words.push_back({mixed(part + 1, 1), mixed(part + 1, 2)});
  }
  std::vector<std::uint64_t> around(flows.network.classes().size(), 0);
  for (std::size_t i = 0; i < flows.demands.size(); ++i) {
    for (std::size_t p = 0; p < 2; ++p) {
      const std::uint32_t flow_class = flows.demands[i].phases[p].flow_class;
      if (flow_class != Demand::none) around[flow_class] += words[parts.part_of[i]][p];
    }
  }
  return around;
}

/// Each part's demand is that of its first operation, with as many flows as its members start in one class.
/// None where members differ.
std::optional<std::vector<Demand>> reduced_demands(const std::vector<Demand>& demands, const Parts& parts,
                                                   const std::vector<std::uint64_t>& classes) {
  std::vector<Demand> reduced;
  for (const std::uint32_t operation : parts.representative) {
    reduced.push_back(demands[operation]);
    for (Demand::Phase& phase : reduced.back().phases) phase.flows = 0;
  }
  for (std::size_t i = 0; i < demands.size(); ++i) {
    Demand& part = reduced[parts.part_of[i]];
    if (!alike(demands[i], part, classes)) return std::nullopt;
    for (std::size_t p = 0; p < part.phases.size(); ++p) {
      if (demands[i].phases[p].flow_class == part.phases[p].flow_class) ++part.phases[p].flows;
    }
  }
  return reduced;
}

}  // namespace

std::optional<Parts> find_parts(const Refit& refit, const Operations& operations, const Routes& routes,
                                const QueuePlan& queues, std::size_t least) {
  const Flows flows = build_flows(refit, operations, routes, all_terms());
  NetworkColours network(flows.network);
  std::vector<std::uint64_t> colours = first_colours(queues, flows.demands);
  std::size_t network_before = 0, parts_before = 0;
  while (true) {
    const std::size_t colours_of_network = network.refine(network.surroundings(flows.demands, colours));
    refine(operations, queues, flows.demands, network.classes(), colours);
    Numbering parts(colours);
    if (least * parts.count() > colours.size()) return std::nullopt;
    if (colours_of_network == network_before && parts.count() == parts_before) {
      QueuePlan reduced(queues, operations, parts.numbers(), parts.first());
      return Parts{std::move(parts.numbers()), std::move(parts.first()), std::move(reduced)};
    }
    network_before = colours_of_network;
    parts_before = parts.count();
  }
}

std::optional<PartFlows> part_flows(const Parts& parts, const Flows& flows) {
  NetworkColours network(flows.network);
  const std::vector<std::uint64_t> around = surroundings_of_parts(parts, flows);
  for (std::size_t before = 0, now = network.refine(around); now != before; now = network.refine(around)) {
    before = now;
  }
  auto demands = reduced_demands(flows.demands, parts, network.classes());
  if (!demands) return std::nullopt;
  Numbering classes(network.classes()), resources(network.resources());
  for (Demand& demand : *demands) {
    for (Demand::Phase& phase : demand.phases) {
      if (phase.flow_class != Demand::none) phase.flow_class = classes.numbers()[phase.flow_class];
    }
  }
  return PartFlows{reduced_fluid(flows.network, classes, resources), std::move(*demands)};
}

}  // namespace isthmus::sim

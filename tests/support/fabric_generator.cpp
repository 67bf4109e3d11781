#include "tests/support/fabric_generator.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "model/error.hpp"
#include "model/scenario_fabric.hpp"
#include "model/topology/edits.hpp"

namespace isthmus {
namespace {

namespace gen = rc::gen;
using Action = FabricEdit::Action;
using Subject = FabricEdit::Subject;

/// A whole number from `least` to `most`; shrinks towards `least`.
int pick(int least, int most) { return *gen::inRange(least, most + 1); }
bool flip() { return *gen::arbitrary<bool>(); }

template <class T>
T one_of(const std::vector<T>& values) {
  return values[static_cast<std::size_t>(pick(0, static_cast<int>(values.size()) - 1))];
}

/// `count` of the values, in random order.
std::vector<int> some_of(std::vector<int> values, int count) {
  for (int i = 0; i < count; ++i) {
    std::swap(values[static_cast<std::size_t>(i)],
              values[static_cast<std::size_t>(pick(i, static_cast<int>(values.size()) - 1))]);
  }
  values.resize(static_cast<std::size_t>(count));
  return values;
}

std::vector<int> numbers(int end) {
  std::vector<int> all(static_cast<std::size_t>(end));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::optional<Bandwidth> maybe_rate() {
  if (pick(0, 3) != 3) return std::nullopt;
  return Bandwidth{*gen::inRange<std::int64_t>(1'000'000, 2'000'000'000'000)};
}

FabricSpec part(int most_hosts) {
  FabricSpec spec;
  spec.preset = std::string(one_of(fabric_presets()).name);
  spec.hosts = pick(1, most_hosts);
  const bool rack = spec.preset.find("nvl72") != std::string::npos;
  const bool superpod = rack || spec.preset.find("superpod") != std::string::npos;
  if (rack && flip()) spec.gpus_per_rack = 4 * pick(1, 18);
  std::vector<std::optional<NetworkKind>> networks{std::nullopt, NetworkKind::one_switch, NetworkKind::rails};
  if (superpod) networks.insert(networks.begin() + 1, NetworkKind::superpod);
  spec.network = one_of(networks);
  const bool leaves = superpod && spec.network.value_or(NetworkKind::superpod) == NetworkKind::superpod;
  if (leaves && flip()) spec.oversubscription = pick(4, 16) / 4.0;
  spec.nic_bandwidth = maybe_rate();
  spec.nvlink_bandwidth = maybe_rate();
  spec.pcie_bandwidth = maybe_rate();
  return spec;
}

FabricSpec fabric_spec(int most_hosts) {
  FabricSpec spec = part(most_hosts);
  if (pick(0, 3) == 3) {
    FabricSpec whole;
    whole.preset.clear();
    for (int parts = pick(2, 3); parts > 0; --parts) whole.parts.push_back(part(most_hosts / 2 + 1));
    whole.join_bandwidth = Bandwidth{*gen::inRange<std::int64_t>(1'000'000, 2'000'000'000'000)};
    spec = whole;
  }
  spec.routing.pxn = flip();
  spec.routing.hashed = flip();
  spec.routing.seed = static_cast<std::uint64_t>(pick(0, 9));
  return spec;
}

FabricEdit host_edit(const std::vector<int>& hosts) {
  const auto [action, subject] =
      one_of(std::vector<std::pair<Action, Subject>>{{Action::remove, Subject::nic},
                                                     {Action::remove, Subject::nvlink},
                                                     {Action::degrade, Subject::nic},
                                                     {Action::degrade, Subject::nvlink},
                                                     {Action::degrade, Subject::pcie},
                                                     {Action::disable, Subject::gpudirect},
                                                     {Action::swap, Subject::nics}});
  FabricEdit edit{.action = action, .subject = subject};
  edit.hosts = some_of(hosts, pick(1, std::min<int>(2, static_cast<int>(hosts.size()))));
  if (action == Action::swap) {
    edit.gpus = some_of(numbers(4), 2);
  } else {
    edit.gpus = some_of(numbers(4), pick(0, 3));
  }
  if (action == Action::degrade) edit.factor = pick(1, 99) / 100.0;
  if (action == Action::remove && subject == Subject::nvlink && flip()) edit.wires = pick(1, 20);
  return edit;
}

int switches_of(const Topology& topology, VertexKind tier) {
  int count = 0;
  for (const NetworkSwitch& one : topology.network.switches) count += one.tier == tier ? 1 : 0;
  return count;
}

FabricEdit network_edit(const Topology& topology) {
  const auto [action, subject] =
      one_of(std::vector<std::pair<Action, Subject>>{{Action::remove, Subject::uplink},
                                                     {Action::degrade, Subject::uplink},
                                                     {Action::remove, Subject::leaf},
                                                     {Action::remove, Subject::spine},
                                                     {Action::disable, Subject::pxn},
                                                     {Action::disable, Subject::mnnvl},
                                                     {Action::cut, Subject::domain},
                                                     {Action::remove, Subject::nvswitch},
                                                     {Action::degrade, Subject::nvswitch}});
  FabricEdit edit{.action = action, .subject = subject};
  if (action == Action::degrade) edit.factor = pick(1, 99) / 100.0;
  if (subject == Subject::domain) edit.size = one_of<int>({1, 2, 4});
  if (subject == Subject::nvswitch) edit.switches = {pick(0, 1)};
  const auto tier = subject == Subject::spine ? VertexKind::spine : VertexKind::leaf;
  if (subject == Subject::uplink || subject == Subject::leaf || subject == Subject::spine) {
    const int count = switches_of(topology, tier);
    if (count > 0) edit.switches = some_of(numbers(count), pick(1, std::min(3, count)));
  }
  if (subject == Subject::uplink && action == Action::remove && flip()) edit.wires = pick(1, 40);
  return edit;
}

FabricEdit any_edit(const Topology& topology) {
  return flip() ? host_edit(numbers(host_count(topology))) : network_edit(topology);
}

}  // namespace

rc::Gen<FabricSpec> arbitrary_part(int most_hosts) {
  return gen::exec([most_hosts] { return part(most_hosts); });
}

rc::Gen<FabricSpec> arbitrary_fabric_spec(int most_hosts) {
  return gen::exec([most_hosts] { return fabric_spec(most_hosts); });
}

rc::Gen<FabricEdit> arbitrary_host_edit(const std::vector<int>& hosts) {
  return gen::exec([hosts] { return host_edit(hosts); });
}

rc::Gen<FabricEdit> arbitrary_edit(const Topology& topology) {
  return gen::exec([topology] { return any_edit(topology); });
}

rc::Gen<Topology> arbitrary_topology(int most_hosts, int most_edits) {
  return gen::exec([most_hosts, most_edits] {
    Topology topology = build_topology(fabric_spec(most_hosts));
    for (int edits = pick(0, most_edits); edits > 0; --edits) {
      try {
        apply_edit(any_edit(topology), "edit", topology);
      } catch (const InputError&) {  // of what is no longer there
      }
    }
    return topology;
  });
}

int host_count(const Topology& topology) {
  int count = 0;
  for (const std::uint32_t type : topology.blocks) count += static_cast<int>(topology.types[type].hosts);
  return count;
}

GpuId any_gpu(const Fabric& fabric) {
  return {static_cast<std::uint32_t>(pick(0, static_cast<int>(fabric.gpu_count()) - 1))};
}

void showValue(const FabricSpec& spec, std::ostream& stream) { stream << fabric_yaml(spec); }

void showValue(const FabricEdit& edit, std::ostream& stream) {
  FabricSpec spec;
  spec.edits = {edit};
  stream << fabric_yaml(spec);
}

}  // namespace isthmus

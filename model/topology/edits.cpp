#include "model/topology/edits.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "model/error.hpp"
#include "model/topology/own_nics.hpp"

namespace isthmus {
namespace {

using Action = FabricEdit::Action;
using Subject = FabricEdit::Subject;
using HostMask = std::vector<bool>;  // per host of a block

class Editor {
 public:
  Editor(const FabricEdit& edit, const std::string& key, Topology& topology)
      : edit_(edit), key_(key), topology_(topology) {}

  void apply() {
    judge_hosts();
    switch (edit_.subject) {
      case Subject::nic: return edit_.action == Action::remove ? unplug() : each_block(&Editor::degrade_nics);
      case Subject::nvlink: return each_block(&Editor::change_nvlinks);
      case Subject::nvswitch: return each_block(&Editor::change_chips);
      case Subject::pcie: return each_block(&Editor::degrade_pcie);
      case Subject::gpudirect: return each_block(&Editor::disable_gpudirect);
      case Subject::mnnvl: return each_block(&Editor::part_hosts);
      case Subject::domain: return each_block(&Editor::cut_domain);
      case Subject::nics: return each_block(&Editor::swap_nics);
      case Subject::uplink: return change_uplinks();
      case Subject::leaf: return remove_switches(VertexKind::leaf);
      case Subject::spine: return remove_switches(VertexKind::spine);
      case Subject::pxn: topology_.routing.pxn = false;
    }
  }

 private:
  [[noreturn]] void refuse(std::string_view part, const std::string& found,
                           const std::string& allowed) const {
    throw InputError(Location{{}, 0, fmt::format("{}.{}", key_, part)}, found, allowed);
  }

  void judge_hosts() const {
    std::size_t hosts = 0;
    for (const std::uint32_t type : topology_.blocks) hosts += topology_.types[type].hosts;
    for (const int host : edit_.hosts) {
      if (host < 0 || to_size(host) >= hosts) {
        refuse("hosts", fmt::format("{}", host), fmt::format("0 to {}", hosts - 1));
      }
    }
  }

  static bool among(const std::vector<int>& wanted, std::uint32_t number) {
    return wanted.empty() ||
           std::find(wanted.begin(), wanted.end(), static_cast<int>(number)) != wanted.end();
  }

  /// Calls `edit_block` once per kind of block and set of its hosts that the edit names.
  void each_block(void (Editor::*edit_block)(Block&, const HostMask&)) {
    const std::set<int> wanted(edit_.hosts.begin(), edit_.hosts.end());
    std::map<std::pair<std::uint32_t, HostMask>, std::uint32_t> changed;
    Topology result = topology_;
    int host = 0;
    for (std::uint32_t& type : result.blocks) {
      HostMask mask(topology_.types[type].hosts);
      for (std::size_t h = 0; h < mask.size(); ++h) mask[h] = wanted.empty() || wanted.contains(host++);
      if (std::find(mask.begin(), mask.end(), true) == mask.end()) continue;
      const auto [known, is_new] = changed.try_emplace({type, mask}, 0);
      if (is_new) {
        Block block = topology_.types[type];
        (this->*edit_block)(block, mask);
        const auto alike = std::find(result.types.begin(), result.types.end(), block);
        known->second = static_cast<std::uint32_t>(alike - result.types.begin());
        if (alike == result.types.end()) result.types.push_back(std::move(block));
      }
      type = known->second;
    }
    drop_unused_types(result);
    topology_ = std::move(result);
  }

  static void drop_unused_types(Topology& topology) {
    std::map<std::uint32_t, std::uint32_t> number;
    std::vector<Block> used;
    for (std::uint32_t& type : topology.blocks) {
      const auto [known, is_new] = number.try_emplace(type, static_cast<std::uint32_t>(used.size()));
      if (is_new) used.push_back(std::move(topology.types[type]));
      type = known->second;
    }
    topology.types = std::move(used);
  }

  static bool on(const Block& block, std::uint32_t vertex, const HostMask& hosts) {
    const std::optional<std::uint32_t> host = block.vertices[vertex].host;
    return !host || hosts[*host];
  }

  /// The GPUs that the edit names; refuses numbers that no host has.
  std::vector<std::uint32_t> gpus_of(const Block& block, const HostMask& hosts) const {
    std::vector<std::uint32_t> found;
    std::set<int> missing(edit_.gpus.begin(), edit_.gpus.end());
    for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
      const BlockVertex& vertex = block.vertices[block.gpus[gpu].vertex];
      if (!on(block, block.gpus[gpu].vertex, hosts) || !among(edit_.gpus, vertex.index)) continue;
      missing.erase(static_cast<int>(vertex.index));
      found.push_back(gpu);
    }
    if (!missing.empty()) refuse("gpus", fmt::format("{}", *missing.begin()), "a GPU of each host named");
    return found;
  }

  /// An unknown rate (0) stays unknown at a share of it.
  std::int64_t scaled(std::int64_t rate) const {
    const double kept = static_cast<double>(rate) * edit_.factor.value_or(1);
    return std::max(std::min<std::int64_t>(1, rate), static_cast<std::int64_t>(kept));
  }
  Bandwidth degraded(Bandwidth rate) const {
    if (!edit_.bandwidth) return {scaled(rate.value)};
    if (rate.value > 0 && *edit_.bandwidth > rate) {
      refuse("bandwidth", fmt::format("{} bytes per second", edit_.bandwidth->value),
             fmt::format("1 MB/s to the present {} bytes per second", rate.value));
    }
    return *edit_.bandwidth;
  }

  /// Every rail that the edit names must be on some host that it names.
  void judge_rails(const std::set<int>& missing, bool any) const {
    if (!missing.empty()) refuse("gpus", fmt::format("{}", *missing.begin()), "rails of the hosts named");
    if (!any) refuse("hosts", "no NIC", "hosts with NICs");
  }

  void degrade_nics(Block& block, const HostMask& hosts) {
    bool any = false;
    std::set<int> missing(edit_.gpus.begin(), edit_.gpus.end());
    for (BlockNic& nic : block.nics) {
      if (!on(block, nic.vertex, hosts) || !among(edit_.gpus, nic.rail)) continue;
      nic.rate = degraded(nic.rate);
      nic.evidence = Evidence::user;
      missing.erase(static_cast<int>(nic.rail));
      any = true;
    }
    judge_rails(missing, any);
  }

  void degrade_pcie(Block& block, const HostMask& hosts) {
    std::set<std::uint32_t> vertices;
    for (const std::uint32_t gpu : gpus_of(block, hosts)) vertices.insert(block.gpus[gpu].vertex);
    for (BlockWire& wire : block.wires) {
      if (wire.kind != WireKind::pcie && wire.kind != WireKind::c2c) continue;
      if (!vertices.contains(wire.from) && !vertices.contains(wire.to)) continue;
      wire.rate = degraded(wire.rate);
      wire.evidence = Evidence::user;
    }
  }

  /// Takes `lost` wires (all when empty) off a bundle, or lowers its rate; returns the wires taken.
  std::uint32_t change(BlockWire& wire, std::optional<std::uint32_t> lost) const {
    if (edit_.action == Action::degrade) {
      wire.rate = degraded(wire.rate);
      wire.evidence = Evidence::user;
      return 0;
    }
    if (wire.wires == 0) return 0;
    const std::uint32_t taken = std::min(wire.wires, lost.value_or(wire.wires));
    const std::uint32_t kept = wire.wires - taken;
    wire.rate = {static_cast<std::int64_t>(Int128{wire.rate.value} * kept / wire.wires)};
    wire.wires = kept;
    return taken;
  }

  static void drop_empty(Block& block) {
    std::erase_if(block.wires, [](const BlockWire& wire) { return wire.wires == 0; });
  }

  static bool is_chip(const Block& block, std::uint32_t vertex) {
    return block.vertices[vertex].kind == VertexKind::nvswitch;
  }

  void judge_chips(const Block& block) const {
    for (const int chip : edit_.switches) {
      const bool there = std::any_of(block.vertices.begin(), block.vertices.end(), [&](const auto& vertex) {
        return vertex.kind == VertexKind::nvswitch && static_cast<int>(vertex.index) == chip;
      });
      if (!there) refuse("switches", fmt::format("{}", chip), "NVSwitch chips of the hosts named");
    }
  }

  void change_nvlinks(Block& block, const HostMask& hosts) {
    judge_chips(block);
    std::map<const BlockWire*, std::uint32_t> seen;  // wires taken; two GPUs see the bundle between them
    for (const std::uint32_t gpu : gpus_of(block, hosts)) {
      const std::uint32_t vertex = block.gpus[gpu].vertex;
      for (const bool out : {true, false}) {
        std::optional<std::uint32_t> left;
        if (edit_.wires) left = static_cast<std::uint32_t>(*edit_.wires);
        for (BlockWire& wire : block.wires) {
          if (wire.kind != WireKind::nvlink || (out ? wire.from : wire.to) != vertex) continue;
          const std::uint32_t other = out ? wire.to : wire.from;
          if (!edit_.switches.empty() &&
              (!is_chip(block, other) || !among(edit_.switches, block.vertices[other].index))) {
            continue;
          }
          const auto [known, is_new] = seen.try_emplace(&wire, 0);
          if (is_new) known->second = change(wire, left);
          if (left) *left -= std::min(*left, known->second);
        }
        if (edit_.action == Action::remove && left && *left > 0) {
          refuse("wires", fmt::format("{}", *edit_.wires), "at most the wires that are there");
        }
      }
    }
    drop_empty(block);
  }

  void change_chips(Block& block, const HostMask& hosts) {
    judge_chips(block);
    for (BlockWire& wire : block.wires) {
      if (wire.kind != WireKind::nvlink) continue;
      for (const std::uint32_t end : {wire.from, wire.to}) {
        if (is_chip(block, end) && on(block, end, hosts) &&
            among(edit_.switches, block.vertices[end].index)) {
          change(wire, {});
          break;
        }
      }
    }
    drop_empty(block);
  }

  void disable_gpudirect(Block& block, const HostMask& hosts) {
    for (const std::uint32_t gpu : gpus_of(block, hosts)) block.gpus[gpu].gpudirect = false;
  }

  /// Numbers the partitions anew: GPUs stay together when they were together and have equal `group`s.
  static void part(Block& block, const std::function<std::uint32_t(std::uint32_t gpu)>& group) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> number;
    for (std::uint32_t gpu = 0; gpu < block.gpus.size(); ++gpu) {
      std::uint32_t& partition = block.gpus[gpu].partition;
      partition = number.try_emplace({partition, group(gpu)}, static_cast<std::uint32_t>(number.size()))
                      .first->second;
    }
  }

  /// Hosts named lose NVLink to all others of their block.
  void part_hosts(Block& block, const HostMask& hosts) {
    part(block, [&](std::uint32_t gpu) {
      const std::optional<std::uint32_t> host = block.vertices[block.gpus[gpu].vertex].host;
      return host && hosts[*host] ? *host + 1 : 0;
    });
  }

  /// GPUs of hosts that are not named stay together.
  void cut_domain(Block& block, const HostMask& hosts) {
    const auto size = static_cast<std::uint32_t>(*edit_.size);
    part(block,
         [&](std::uint32_t gpu) { return on(block, block.gpus[gpu].vertex, hosts) ? gpu / size + 1 : 0; });
  }

  void swap_nics(Block& block, const HostMask& hosts) {
    const std::vector<std::optional<std::uint32_t>> own = own_nics(block);
    std::map<std::uint32_t, std::vector<std::uint32_t>> pairs;  // by host
    for (const std::uint32_t gpu : gpus_of(block, hosts)) {
      pairs[block.vertices[block.gpus[gpu].vertex].host.value_or(0)].push_back(gpu);
    }
    for (const auto& [host, pair] : pairs) {
      if (pair.size() != 2 || !own[pair[0]] || !own[pair[1]]) refuse("gpus", "no pair", "two GPUs with NICs");
      block.gpus[pair[0]].nic = own[pair[1]];
      block.gpus[pair[1]].nic = own[pair[0]];
    }
  }

  void unplug() {
    const std::set<int> wanted(edit_.hosts.begin(), edit_.hosts.end());
    std::size_t nic = 0;
    int first_host = 0;
    bool any = false;
    std::set<int> missing(edit_.gpus.begin(), edit_.gpus.end());
    std::vector<std::uint32_t> plugs = topology_.switch_of_nic;
    for (const std::uint32_t type : topology_.blocks) {
      const Block& block = topology_.types[type];
      for (const BlockNic& each : block.nics) {
        const int host = first_host + static_cast<int>(block.vertices[each.vertex].host.value_or(0));
        if ((wanted.empty() || wanted.contains(host)) && among(edit_.gpus, each.rail)) {
          plugs[nic] = no_switch;
          missing.erase(static_cast<int>(each.rail));
          any = true;
        }
        ++nic;
      }
      first_host += static_cast<int>(block.hosts);
    }
    judge_rails(missing, any);
    topology_.switch_of_nic = std::move(plugs);
  }

  /// Switches of a tier by their number in it, as indices into the network.
  std::set<std::uint32_t> named(VertexKind tier) const {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < topology_.network.switches.size(); ++i) {
      if (topology_.network.switches[i].tier == tier) all.push_back(i);
    }
    std::set<std::uint32_t> found;
    for (const int number : edit_.switches) {
      if (number < 0 || to_size(number) >= all.size()) {
        refuse("switches", fmt::format("{}", number),
               all.empty() ? fmt::format("no such switch: the fabric has no {}", to_string(tier))
                           : fmt::format("0 to {}", all.size() - 1));
      }
      found.insert(all[to_size(number)]);
    }
    return found;
  }

  void change_uplinks() {
    std::vector<NetworkCable> cables = topology_.network.cables;
    for (const std::uint32_t leaf : named(VertexKind::leaf)) {
      std::optional<std::uint32_t> left;
      if (edit_.wires) left = static_cast<std::uint32_t>(*edit_.wires);
      bool any = false;
      for (NetworkCable& cable : cables) {
        if (cable.low != leaf) continue;
        any = true;
        if (edit_.action == Action::degrade) {
          cable.wire = degraded(cable.wire);
          cable.evidence = Evidence::user;
          continue;
        }
        const std::uint32_t taken = std::min(cable.wires, left.value_or(cable.wires));
        cable.wires -= taken;
        if (left) *left -= taken;
      }
      if (!any) refuse("switches", topology_.network.switches[leaf].name, "leaves with up-links");
      if (left && *left > 0) refuse("wires", fmt::format("{}", *edit_.wires), "at most the leaf's up-links");
    }
    std::erase_if(cables, [](const NetworkCable& cable) { return cable.wires == 0; });
    topology_.network.cables = std::move(cables);
  }

  void remove_switches(VertexKind tier) {
    const std::set<std::uint32_t> gone = named(tier);
    std::erase_if(topology_.network.cables, [&](const NetworkCable& cable) {
      return gone.contains(cable.low) || gone.contains(cable.high);
    });
    for (std::uint32_t& at_switch : topology_.switch_of_nic) {
      if (gone.contains(at_switch)) at_switch = no_switch;
    }
  }

  const FabricEdit& edit_;
  const std::string& key_;
  Topology& topology_;
};

void judge_form(const FabricEdit& edit, const std::string& key) {
  const auto refuse = [&](std::string_view part, std::string_view found, std::string_view allowed) {
    throw InputError(Location{{}, 0, fmt::format("{}.{}", key, part)}, found, allowed);
  };
  const auto is = [&](std::initializer_list<Subject> subjects) {
    return std::find(subjects.begin(), subjects.end(), edit.subject) != subjects.end();
  };
  const bool degrades = edit.action == Action::degrade;
  if (degrades && !edit.factor && !edit.bandwidth) refuse("factor", "nothing", "a factor or a bandwidth");
  if (!degrades && edit.factor) refuse("factor", "a factor", "none: it goes with degrade");
  if (!degrades && edit.bandwidth) refuse("bandwidth", "a bandwidth", "none: it goes with degrade");
  if (edit.factor && edit.bandwidth) refuse("bandwidth", "factor and bandwidth", "one of them");
  if (edit.factor && !(*edit.factor > 0 && *edit.factor < 1)) {
    refuse("factor", fmt::format("{}", *edit.factor), "above 0 and below 1");
  }
  if (edit.bandwidth && edit.bandwidth->value < 1'000'000) {
    refuse("bandwidth", fmt::format("{} bytes per second", edit.bandwidth->value), "1 MB/s or more");
  }
  if (edit.bandwidth && !is({Subject::nic, Subject::pcie, Subject::uplink})) {
    refuse("bandwidth", "a bandwidth", "a factor for NVLinks");
  }
  if (is({Subject::uplink, Subject::leaf, Subject::spine, Subject::nvswitch}) && edit.switches.empty()) {
    refuse("switches", "nothing", "the numbers of the switches");
  }
  if (edit.wires && (*edit.wires < 1 || !is({Subject::nvlink, Subject::uplink}) || degrades)) {
    refuse("wires", fmt::format("{}", *edit.wires), "1 or more, where nvlink or uplink is removed");
  }
  if (is({Subject::domain}) != edit.size.has_value() || (edit.size && *edit.size < 1)) {
    refuse("size", edit.size ? fmt::format("{}", *edit.size) : "nothing", "1 or more, where a domain is cut");
  }
  if (is({Subject::nics}) && edit.gpus.size() != 2) {
    refuse("gpus", fmt::format("{} GPUs", edit.gpus.size()), "the two GPUs that swap their NICs");
  }
  if (is({Subject::pxn, Subject::uplink, Subject::leaf, Subject::spine}) && !edit.hosts.empty()) {
    refuse("hosts", "hosts", "no hosts: this edit is of the whole fabric");
  }
  if (!edit.gpus.empty() &&
      !is({Subject::nic, Subject::nvlink, Subject::pcie, Subject::gpudirect, Subject::nics})) {
    refuse("gpus", "GPUs", "none: this edit is not of single GPUs or their NICs");
  }
  if (!edit.switches.empty() &&
      !is({Subject::nvlink, Subject::nvswitch, Subject::uplink, Subject::leaf, Subject::spine})) {
    refuse("switches", "switches", "none: this edit is not of switches");
  }
}

}  // namespace

void apply_edit(const FabricEdit& edit, const std::string& key, Topology& topology) {
  judge_form(edit, key);
  Editor(edit, key, topology).apply();
}

}  // namespace isthmus

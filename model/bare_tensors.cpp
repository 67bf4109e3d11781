#include "model/bare_tensors.hpp"

#include <map>
#include <string_view>

#include <fmt/format.h>

namespace isthmus {
namespace {

/// One mesh over all holders, who have equal meshes and placements.
Layout united(const TensorSpec& spec) {
  Layout layout = spec.source;
  if (spec.claims.other_sources.empty()) return layout;
  layout.mesh.shape.insert(layout.mesh.shape.begin(),
                           static_cast<std::int64_t>(1 + spec.claims.other_sources.size()));
  layout.placements.insert(layout.placements.begin(), Placement{});
  for (const Layout& other : spec.claims.other_sources) {
    layout.mesh.ranks.insert(layout.mesh.ranks.end(), other.mesh.ranks.begin(), other.mesh.ranks.end());
  }
  return layout;
}

Frame frame_of(const Layout& layout) {
  return layout.frame.value_or(Frame{layout.shape, std::vector<std::int64_t>(layout.shape.size(), 0)});
}

/// The experts of a run, as a part of the declared tensor.
PlainTensor part_of(const PlainTensor& whole_tensor, const SlotRun& run, std::int64_t slots) {
  PlainTensor part = whole_tensor;
  part.copy = whole_tensor.copy || run.copy;
  part.source.frame = frame_of(whole_tensor.source);
  part.source.frame->origin[0] += run.expert;
  part.target.frame = frame_of(whole_tensor.target);
  part.target.frame->extent[0] = slots;
  part.target.frame->origin[0] = run.slot;
  part.source.shape[0] = part.target.shape[0] = run.count;
  const std::string place = run.count == 1 ? fmt::format("slot {}", run.slot)
                                           : fmt::format("slots {}-{}", run.slot, run.slot + run.count - 1);
  const std::string experts = run.count == 1
                                  ? fmt::format("expert {}", run.expert)
                                  : fmt::format("experts {}-{}", run.expert, run.expert + run.count - 1);
  part.name += fmt::format(" ({}, {}{})", place, run.copy ? "copy of " : "", experts);
  return part;
}

void add_slots(const PlainTensor& tensor, const std::vector<std::int64_t>& slots,
               std::vector<PlainTensor>& plain) {
  const std::int64_t experts = tensor.target.shape[0];
  for (const SlotRun& run : slot_runs(slots, experts)) {
    plain.push_back(part_of(tensor, run, static_cast<std::int64_t>(slots.size())));
    if (run.count == experts) {  // nothing is left out: source and name stay as declared
      plain.back().source = tensor.source;
      if (!run.copy) plain.back().name = tensor.name;
      if (to_size(experts) == slots.size()) plain.back().target = tensor.target;
    }
  }
}

}  // namespace

Layout held_layout(const Layout& layout) {
  Layout held = layout;
  held.shape = frame_of(layout).extent;
  held.frame.reset();
  return held;
}

std::vector<SlotRun> slot_runs(const std::vector<std::int64_t>& slots, std::int64_t experts) {
  std::vector<SlotRun> runs;
  std::vector<char> seen(to_size(experts));
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    char& known = seen[to_size(slots[slot])];
    const bool copy = known != 0;
    known = 1;
    if (!runs.empty() && runs.back().copy == copy && runs.back().expert + runs.back().count == slots[slot]) {
      ++runs.back().count;
    } else {
      runs.push_back({static_cast<std::int64_t>(slot), slots[slot], 1, copy});
    }
  }
  return runs;
}

std::string tensor_key(const Scenario& scenario, std::size_t item, std::string_view key) {
  const bool single = scenario.tensors.size() == 1 && !scenario.locations.contains("tensors");
  return single ? std::string(key) : fmt::format("tensors.{}.{}", item, key);
}

std::vector<PlainTensor> plain_tensors(const Scenario& scenario) {
  std::map<std::string_view, const TensorSpec*> by_name;
  for (const TensorSpec& spec : scenario.tensors) by_name.emplace(spec.name, &spec);
  std::vector<PlainTensor> plain;
  plain.reserve(scenario.tensors.size());
  for (std::size_t i = 0; i < scenario.tensors.size(); ++i) {
    const TensorSpec& spec = scenario.tensors[i];
    const bool tied = !spec.claims.tied_to.empty();
    PlainTensor tensor{spec.name, united(tied ? *by_name.at(spec.claims.tied_to) : spec), spec.target, i,
                       tied};
    if (spec.claims.slots.empty()) {
      plain.push_back(std::move(tensor));
    } else {
      add_slots(tensor, spec.claims.slots, plain);
    }
  }
  return plain;
}

}  // namespace isthmus

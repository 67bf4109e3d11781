#include "tests/support/twin_run.hpp"

namespace isthmus::test {

std::string TwinRun::find_impossible() const {
  for (const Lane& lane : plan_.lanes) {
    if (lane.window == 0) return "a lane with window 0";
    if (lane.split != Split::none && lane.split >= plan_.splits.size()) return "no such split";
  }
  for (const StagingBuffer& buffer : plan_.buffers) {
    if (buffer.size.value < 0) return "a buffer of negative size";
  }
  for (const Instance& instance : plan_.instances) {
    if (instance.tensor.value >= twin_.tensors_.size()) return "no such tensor";
    if (instance.pattern.value >= plan_.patterns.size()) return "no such pattern";
    if (instance.buffer != Instance::own_memory && instance.buffer >= plan_.buffers.size())
      return "no such buffer";
    if (instance.offset.value < 0) return "staging before its buffer";
    const std::size_t steps = plan_.patterns[instance.pattern.value].steps.size();
    if (instance.schedule != Instance::no_schedule && instance.schedule + steps > plan_.schedule.size()) {
      return "schedule too short";
    }
    for (std::size_t i = 0; i < steps; ++i) {
      std::string found = find_impossible_step(instance, i);
      if (!found.empty()) return found;
    }
  }
  return {};
}

std::string TwinRun::find_impossible_step(const Instance& instance, std::size_t index) const {
  const Pattern& pattern = plan_.patterns[instance.pattern.value];
  const Step& step = pattern.steps[index];
  if (instance.lane.value + step.lane >= plan_.lanes.size()) return "no such lane";
  if (step.to == Buffer::source) return "a write to a source buffer";
  const bool out = step.kind == StepKind::load || step.kind == StepKind::unpack;
  const bool processes =
      step.kind == StepKind::load && step.from == Buffer::target && step.to == Buffer::target;
  if (out && !processes && (step.from != Buffer::staging || step.to != Buffer::target))
    return "odd load or unpack";
  if (step.kind == StepKind::pack && (step.from == Buffer::staging || step.to != Buffer::staging))
    return "odd pack";
  if (step.kind == StepKind::quantize && (step.from != Buffer::source || step.to != Buffer::staging))
    return "odd quantize";
  if (step.after_end > pattern.after.size() || step.after_begin > step.after_end)
    return "no such dependency list";
  for (std::size_t a = step.after_begin; a < step.after_end; ++a) {
    if (pattern.after[a] >= index) return "a dependency on a later step";
  }
  const std::vector<std::int64_t>& shape = twin_.refit_.tensors[instance.tensor.value].tensor.shape;
  if (step.region.dimensions != shape.size()) return "a region of other dimensions";
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (step.region.begin[d] < 0 || step.region.end[d] > shape[d]) return "a region outside the tensor";
    if (step.region.begin[d] >= step.region.end[d]) return "an empty region";
  }
  const bool collective = step.kind == StepKind::broadcast || step.kind == StepKind::all_gather;
  if (collective && step.members >= pattern.members.size()) return "no such member list";
  return impossible_ranks(instance, step) ? "ranks that cannot take part" : "";
}

bool TwinRun::impossible_ranks(const Instance& instance, const Step& step) const {
  const Operation operation =
      operation_of(instance, to_size(&step - plan_.patterns[instance.pattern.value].steps.data()));
  std::set<std::uint32_t> distinct(operation.ranks.begin(), operation.ranks.end());
  if (distinct.empty() || *distinct.rbegin() >= twin_.refit_.ranks()) return true;
  const bool repeated = distinct.size() != operation.ranks.size();
  if (step.kind == StepKind::broadcast) return repeated || distinct.count(operation.root) == 0;
  if (step.kind == StepKind::all_gather) return repeated;
  const bool between_ranks = step.kind == StepKind::send || step.kind == StepKind::put;
  const auto domain = [this](std::uint32_t rank) {
    return twin_.refit_.fabric.domain_of(twin_.refit_.gpu_of_rank[rank]);
  };
  if (step.kind == StepKind::put && domain(operation.ranks[0]) != domain(operation.ranks[1])) return true;
  return !between_ranks && distinct.size() > 1;
}

}  // namespace isthmus::test

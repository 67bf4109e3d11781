#include "planner/plan.hpp"

namespace isthmus {

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::send: return "send";
    case StepKind::put: return "put";
    case StepKind::copy: return "copy";
    case StepKind::pack: return "pack";
    case StepKind::unpack: return "unpack";
    case StepKind::broadcast: return "broadcast";
    case StepKind::all_gather: return "all_gather";
    case StepKind::load: return "load";
    case StepKind::quantize: return "quantize";
  }
  return "";
}

std::string_view to_string(Buffer buffer) {
  switch (buffer) {
    case Buffer::source: return "source";
    case Buffer::staging: return "staging";
    case Buffer::target: return "target";
  }
  return "";
}

std::uint32_t Plan::group_of(const Instance& instance, std::size_t step) const {
  if (instance.schedule != Instance::no_schedule) return schedule[instance.schedule + step];
  return instance.group + pattern(instance).steps[step].group;
}

std::size_t Plan::step_count() const {
  std::size_t count = 0;
  for (const Instance& instance : instances) count += pattern(instance).steps.size();
  return count;
}

Bytes Plan::memory() const {
  std::size_t bytes = instances.size() * sizeof(Instance) + schedule.size() * sizeof(schedule[0]);
  for (const Split& split : splits) bytes += split.callers.size() * sizeof(Split::Caller);
  for (const Pattern& pattern : patterns) {
    bytes += pattern.steps.size() * sizeof(Step) + pattern.after.size() * sizeof(pattern.after[0]);
    for (const auto& list : pattern.members) bytes += list.size() * sizeof(LocalRank);
  }
  return {static_cast<std::int64_t>(bytes)};
}

}  // namespace isthmus

#include <algorithm>
#include <limits>
#include <utility>

#include "tests/support/mutant_tools.hpp"
#include "tests/support/staging_placer.hpp"

namespace isthmus::test {
namespace {

/// A random instance that `accept` takes; nullptr when there is none.
template <class Accept>
Instance* pick_instance(Plan& plan, Random& random, Accept accept) {
  std::vector<Instance*> candidates;
  for (Instance& instance : plan.instances) {
    if (accept(instance)) candidates.push_back(&instance);
  }
  return candidates.empty() ? nullptr : candidates[random.below(candidates.size())];
}

bool shares(const Instance& instance) { return instance.buffer != Instance::own_memory; }

/// Two instances in the same bytes, whatever the order of their groups.
bool reuse_early(Plan& plan, const Refit& refit, Random& random) {
  const auto stages = [&](const Instance& instance) { return !stays_of(plan, refit, instance).empty(); };
  Instance* a = pick_instance(plan, random, stages);
  Instance* b = pick_instance(plan, random, stages);
  if (a == nullptr || a == b) return false;
  if (a->buffer == b->buffer && a->offset == b->offset && shares(*a)) return false;
  if (!shares(*a)) {
    a->buffer = static_cast<std::uint32_t>(plan.buffers.size());
    a->offset = {0};
    plan.buffers.push_back({"new", {0}});
  }
  b->buffer = a->buffer;
  b->offset = a->offset;
  for (const Instance* instance : {a, b}) {
    Bytes& size = plan.buffers[instance->buffer].size;
    for (const auto& entry : stays_of(plan, refit, *instance))
      size = std::max(size, instance->offset + Bytes{entry.second.bytes});
  }
  return true;
}

/// All groups of one instance earlier by one or more.
bool early_instance(Plan& plan, const Refit&, Random& random) {
  Instance* instance = pick_instance(plan, random, [](const Instance&) { return true; });
  if (instance == nullptr) return false;
  unroll_schedule(plan);
  const std::size_t steps = plan.pattern(*instance).steps.size();
  if (steps == 0) return false;
  const auto begin = plan.schedule.begin() + instance->schedule;
  const auto end = begin + static_cast<std::ptrdiff_t>(steps);
  const auto by = static_cast<std::uint32_t>(1 + random.below(3));
  if (*std::min_element(begin, end) < by) return false;
  std::for_each(begin, end, [by](std::uint32_t& group) { group -= by; });
  return true;
}

bool instance_on_other_lane(Plan& plan, const Refit&, Random& random) {
  Instance* instance = pick_instance(plan, random, shares);
  if (instance == nullptr) return false;
  const auto lane = static_cast<std::uint32_t>(random.below(plan.lanes.size()));
  return std::exchange(instance->lane.value, lane) != lane;
}

bool small_buffer(Plan& plan, const Refit&, Random& random) {
  if (plan.buffers.empty()) return false;
  Bytes& size = plan.buffers[random.below(plan.buffers.size())].size;
  const bool had = size.value > 0;
  size.value -= static_cast<std::int64_t>(1 + random.below(8));
  return had;
}

/// Larger than the largest size that the tests allow, where this buffer was the largest thing.
bool large_buffer(Plan& plan, const Refit&, Random& random) {
  if (plan.buffers.empty()) return false;
  plan.buffers[random.below(plan.buffers.size())].size.value +=
      static_cast<std::int64_t>(1 + random.below(64));
  return true;
}

bool misaligned_offset(Plan& plan, const Refit&, Random& random) {
  Instance* instance = pick_instance(plan, random, shares);
  if (instance == nullptr) return false;
  ++instance->offset.value;
  return true;
}

/// By whole elements, now and then as far as numbers go.
bool moved_offset(Plan& plan, const Refit& refit, Random& random) {
  Instance* instance = pick_instance(plan, random, shares);
  if (instance == nullptr) return false;
  const std::int64_t size = element_size(refit.geometry(instance->tensor).source.dtype).value;
  const std::int64_t by = size * static_cast<std::int64_t>(1 + random.below(6));
  const bool far = random.below(8) == 0;
  if (far) instance->offset.value = (std::numeric_limits<std::int64_t>::max() / size) * size;
  if (!far) instance->offset.value += random.below(2) == 0 ? by : -by;
  return true;
}

bool wrong_buffer(Plan& plan, const Refit&, Random& random) {
  Instance* instance = pick_instance(plan, random, shares);
  if (instance == nullptr) return false;
  const auto buffer = static_cast<std::uint32_t>(random.below(plan.buffers.size() + 1));  // one past the last
  return std::exchange(instance->buffer, buffer) != buffer;
}

bool stale_version(Plan& plan, const Refit&, Random& random) {
  Instance* instance = pick_instance(plan, random, [](const Instance&) { return true; });
  if (instance == nullptr || plan.pattern(*instance).steps.empty()) return false;
  random.below(2) == 0 ? ++instance->version : --instance->version;
  return true;
}

/// A message turned into a put: right within an NVLink domain, impossible across.
bool far_put(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return s.kind == StepKind::send; });
  if (step == nullptr) return false;
  step->kind = StepKind::put;
  return true;
}

bool swapped_kind(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return is_local(s.kind); });
  if (step == nullptr) return false;
  constexpr StepKind kinds[] = {StepKind::copy, StepKind::pack, StepKind::unpack, StepKind::load,
                                StepKind::send};
  const StepKind kind = kinds[random.below(5)];
  return std::exchange(step->kind, kind) != kind;
}

bool in_place(const Step& step) {
  return step.kind == StepKind::all_gather && step.from == Buffer::target && step.to == Buffer::target;
}

/// A member's own part, which the gather no longer knows.
bool gather_without_after(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, [](const Step& s) { return in_place(s) && waits(s); });
  if (step == nullptr) return false;
  std::vector<std::uint32_t>& after = pattern_of(plan, step).after;
  std::swap(after[step->after_begin],
            after[step->after_begin + random.below(step->after_end - step->after_begin)]);
  ++step->after_begin;
  return true;
}

bool gather_elsewhere(Plan& plan, const Refit&, Random& random) {
  Step* step = pick_step(plan, random, in_place);
  if (step == nullptr) return false;
  (random.below(2) == 0 ? step->to : step->from) = Buffer::staging;
  return true;
}

/// Two steps whose boxes continue each other along one dimension.
struct Seam {
  Step *low = nullptr, *high = nullptr;
  std::size_t dimension = 0;
};

bool continues(const Region& low, const Region& high, std::size_t along) {
  for (std::size_t d = 0; d < low.dimensions; ++d) {
    const bool same = low.begin[d] == high.begin[d] && low.end[d] == high.end[d];
    if (d == along ? low.end[d] != high.begin[d] : !same) return false;
  }
  return true;
}

Seam pick_seam(Plan& plan, Random& random, bool one_route) {
  std::vector<Seam> seams;
  for (Pattern& pattern : plan.patterns) {
    for (Step& low : pattern.steps) {
      for (Step& high : pattern.steps) {
        const bool alike =
            !collective(low) && low.kind == high.kind && low.to == high.to && low.target == high.target;
        if (!alike || &low == &high || (one_route && (low.source != high.source || low.from != high.from)))
          continue;
        for (std::size_t d = 0; d < low.region.dimensions; ++d)
          if (continues(low.region, high.region, d)) seams.push_back({&low, &high, d});
      }
    }
  }
  return seams.empty() ? Seam{} : seams[random.below(seams.size())];
}

/// The boundary of two steps moved by one, on one side only: a gap or an overlap.
bool misaligned_split(Plan& plan, const Refit&, Random& random) {
  const Seam seam = pick_seam(plan, random, false);
  if (seam.low == nullptr) return false;
  const std::int64_t by = random.below(2) == 0 ? 1 : -1;
  (random.below(2) == 0 ? seam.low->region.end : seam.high->region.begin)[seam.dimension] += by;
  return true;
}

/// The same on both sides: covers all, but one source may not hold its part.
bool moved_split(Plan& plan, const Refit&, Random& random) {
  const Seam seam = pick_seam(plan, random, false);
  if (seam.low == nullptr) return false;
  const std::int64_t by = random.below(2) == 0 ? 1 : -1;
  seam.low->region.end[seam.dimension] += by;
  seam.high->region.begin[seam.dimension] += by;
  return true;
}

/// One step does what two did, in a message that may be too large.
bool joined_steps(Plan& plan, const Refit&, Random& random) {
  const Seam seam = pick_seam(plan, random, true);
  if (seam.low == nullptr) return false;
  seam.low->region.end[seam.dimension] = seam.high->region.end[seam.dimension];
  Pattern& pattern = pattern_of(plan, seam.high);
  const auto gone = static_cast<std::uint32_t>(seam.high - pattern.steps.data());
  const auto by = static_cast<std::uint32_t>(seam.low - pattern.steps.data());
  for (std::uint32_t& after : pattern.after)
    if (after == gone) after = by;
  std::vector<std::uint32_t> kept;
  for (std::uint32_t i = 0; i < pattern.steps.size(); ++i)
    if (i != gone) kept.push_back(i);
  rearrange(plan, pattern, kept);
  return true;
}

bool unequal_windows(Plan& plan, const Refit&, Random& random) {
  Lane& lane = plan.lanes[random.below(plan.lanes.size())];
  const auto window = static_cast<std::uint32_t>(1 + random.below(4));
  return std::exchange(lane.window, window) != window;
}

}  // namespace

std::vector<MutationOperator> staging_mutations() {
  return {
      {"reuse_early", reuse_early},
      {"early_instance", early_instance},
      {"instance_on_other_lane", instance_on_other_lane},
      {"small_buffer", small_buffer},
      {"large_buffer", large_buffer},
      {"misaligned_offset", misaligned_offset},
      {"moved_offset", moved_offset},
      {"wrong_buffer", wrong_buffer},
      {"stale_version", stale_version},
      {"far_put", far_put},
      {"swapped_kind", swapped_kind},
      {"gather_without_after", gather_without_after},
      {"gather_elsewhere", gather_elsewhere},
      {"misaligned_split", misaligned_split},
      {"moved_split", moved_split},
      {"joined_steps", joined_steps},
      {"unequal_windows", unequal_windows},
  };
}

}  // namespace isthmus::test

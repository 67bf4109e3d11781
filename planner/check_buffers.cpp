#include "planner/check_buffers.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t many_lanes = 0xFFFFFFFF;

/// What one instance stages on one rank of a shared buffer.
struct Use {
  std::uint32_t buffer = 0, rank = 0, instance = 0;
  std::uint32_t lane = many_lanes;  // of all its steps that touch the staging; or many_lanes
  bool written = false;
  std::uint32_t first_write = 0, last = 0;      // groups
  std::uint32_t first_step = 0, last_step = 0;  // a step in each of them
  Region box;                                   // around all that is staged
  Bytes begin, end;                             // in the buffer
};

Region around(const Region& a, const Region& b) {
  if (a.dimensions == 0) return b;
  Region box = a;
  for (std::size_t d = 0; d < box.dimensions; ++d) {
    box.begin[d] = std::min(a.begin[d], b.begin[d]);
    box.end[d] = std::max(a.end[d], b.end[d]);
  }
  return box;
}

class BufferCheck {
 public:
  BufferCheck(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof)
      : refit_(refit), plan_(plan), limits_(limits), proof_(proof), use_of_rank_(refit.ranks()) {}

  void run() {
    check_sizes();
    for (std::uint32_t i = 0; i < plan_.instances.size(); ++i)
      if (plan_.instances[i].buffer != Instance::own_memory) collect(i);
    std::sort(uses_.begin(), uses_.end(), [](const Use& a, const Use& b) {
      return std::tie(a.buffer, a.rank, a.first_write, a.instance) <
             std::tie(b.buffer, b.rank, b.first_write, b.instance);
    });
    for (std::size_t begin = 0, end = 0; begin < uses_.size(); begin = end) {
      while (end < uses_.size() && uses_[end].buffer == uses_[begin].buffer &&
             uses_[end].rank == uses_[begin].rank)
        ++end;
      check_reuse(std::span(uses_).subspan(begin, end - begin));
    }
  }

 private:
  const std::string& name(std::uint32_t instance) const {
    return refit_.tensors[plan_.instances[instance].tensor.index()].tensor.name;
  }

  void check_sizes() {
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const StagingBuffer& buffer = plan_.buffers[b];
      if (buffer.size.value >= 0 && buffer.size <= limits_.largest_size) continue;
      report(proof_, limits_, [&] {
        return Violation{Fault::too_many_bytes,
                         {},
                         {},
                         {},
                         fmt::format("buffer {} ({}) - {} bytes - 0 to {} are allowed", b, buffer.name,
                                     buffer.size.value, limits_.largest_size.value)};
      });
    }
  }

  void collect(std::uint32_t index) {
    const Instance& instance = plan_.instances[index];
    const Pattern& pattern = plan_.pattern(instance);
    const std::size_t first = uses_.size();
    for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
      const Step& step = pattern.steps[s];
      if (step.from != Buffer::staging && step.to != Buffer::staging) continue;
      for_each_rank(plan_, instance, step, [&](std::uint32_t rank) {
        const bool gather = step.kind == StepKind::all_gather;
        const bool sender = gather || global_rank(instance, step.source).value == rank;
        const bool receiver = is_collective(step.kind) || global_rank(instance, step.target).value == rank;
        const bool reads = step.from == Buffer::staging && sender;
        const bool writes = step.to == Buffer::staging && receiver;
        if (reads || writes) touch(use_of(rank, first), index, s, writes);
      });
    }
    // Where nothing is staged, nothing is read: ownership has seen to it.
    const auto tail = uses_.begin() + static_cast<std::ptrdiff_t>(first);
    uses_.erase(std::remove_if(tail, uses_.end(), [](const Use& use) { return !use.written; }), uses_.end());
    for (std::size_t i = first; i < uses_.size(); ++i) {
      uses_[i].buffer = instance.buffer;
      uses_[i].instance = index;
      place(uses_[i]);
    }
  }

  /// Of the present instance, whose uses begin at `first`.
  Use& use_of(std::uint32_t rank, std::size_t first) {
    std::size_t& known = use_of_rank_[rank];
    if (known < first || known >= uses_.size() || uses_[known].rank != rank) {
      known = uses_.size();
      uses_.emplace_back().rank = rank;
    }
    return uses_[known];
  }

  void touch(Use& use, std::uint32_t index, std::uint32_t step_index, bool writes) {
    const Instance& instance = plan_.instances[index];
    const Step& step = plan_.pattern(instance).steps[step_index];
    const std::uint32_t lane = lane_of(instance, step), group = plan_.group_of(instance, step_index);
    use.lane = use.box.dimensions == 0 || use.lane == lane ? lane : many_lanes;
    use.box = around(use.box, step.region);
    if (group >= use.last) use.last = group, use.last_step = step_index;
    if (!writes || (use.written && use.first_write <= group)) return;
    use.written = true;
    use.first_write = group;
    use.first_step = step_index;
  }

  void place(Use& use) {
    const Instance& instance = plan_.instances[use.instance];
    const Layout& layout = refit_.geometry(instance.tensor).source;
    const Bytes bytes = layout.bytes(use.box);
    use.begin = instance.offset;
    use.end =
        instance.offset + std::min(bytes, Bytes{std::numeric_limits<std::int64_t>::max()} - instance.offset);
    if (instance.offset.value % element_size(layout.dtype).value != 0) {
      add(Fault::not_aligned, use, use.begin,
          fmt::format("begins at byte {}; a multiple of the element size {} is needed", instance.offset.value,
                      element_size(layout.dtype).value));
    }
    const StagingBuffer& buffer = plan_.buffers[use.buffer];
    if (use.begin <= buffer.size && bytes <= buffer.size - use.begin) return;
    add(Fault::buffer_too_small, use, buffer.size,
        fmt::format("needs bytes {} to {} of buffer {}, which has {}", use.begin.value, use.end.value,
                    buffer.name, buffer.size.value));
  }

  void add(Fault fault, const Use& use, Bytes position, const std::string& detail) {
    report(proof_, limits_, [&] {
      const std::vector<std::int64_t> element = element_at(use, position);
      const std::uint32_t step = writer_of(use, element);
      return Violation{
          fault,
          plan_.instances[use.instance].tensor,
          element,
          {step},
          fmt::format("tensor {}, element ({}) on rank {}: step {} stages it, but the staging {}",
                      name(use.instance), fmt::join(element, ","), use.rank, step, detail)};
    });
  }

  /// The element of the box that lies at a byte of the buffer, or the nearest one.
  std::vector<std::int64_t> element_at(const Use& use, Bytes position) const {
    const Bytes size = element_size(refit_.geometry(plan_.instances[use.instance].tensor).source.dtype);
    std::int64_t index = position <= use.begin ? 0 : (position - use.begin).value / size.value;
    index = std::min(index, use.box.volume() - 1);
    std::vector<std::int64_t> element(use.box.dimensions);
    for (std::size_t d = element.size(); d-- > 0;) {
      const std::int64_t extent = use.box.end[d] - use.box.begin[d];
      element[d] = use.box.begin[d] + index % extent;
      index /= extent;
    }
    return element;
  }

  /// The step that stages the element; the first one that stages at all where the box has it in a gap.
  std::uint32_t writer_of(const Use& use, const std::vector<std::int64_t>& element) const {
    const Instance& instance = plan_.instances[use.instance];
    const Pattern& pattern = plan_.pattern(instance);
    for (std::uint32_t s = 0; s < pattern.steps.size(); ++s) {
      const Step& step = pattern.steps[s];
      bool writes = step.to == Buffer::staging;
      for (std::size_t d = 0; d < element.size(); ++d)
        writes &= step.region.begin[d] <= element[d] && element[d] < step.region.end[d];
      if (!is_collective(step.kind)) writes &= global_rank(instance, step.target).value == use.rank;
      if (!writes) continue;
      bool takes_part = false;
      for_each_rank(plan_, instance, step, [&](std::uint32_t rank) { takes_part |= rank == use.rank; });
      if (takes_part) return s;
    }
    return use.first_step;
  }

  /// Uses of one buffer on one rank, by first write.
  void check_reuse(std::span<const Use> uses) {
    for (std::size_t later = 1; later < uses.size(); ++later) {
      for (std::size_t earlier = later; earlier-- > 0;) {
        const Use& a = uses[earlier];
        const Use& b = uses[later];
        if (a.begin >= b.end || b.begin >= a.end) continue;
        const bool apart = a.lane == b.lane && a.lane != many_lanes && in_order(a, b);
        if (!apart) {
          report(proof_, limits_, [&] { return overwritten(a, b); });
          break;
        }
        // What lay there before `a` was over before `a` began, as far as `a` covers it.
        if (a.begin <= b.begin && b.end <= a.end) break;
      }
    }
  }

  bool in_order(const Use& a, const Use& b) {
    const std::uint32_t window = plan_.lanes[a.lane].window;
    if (a.last >= b.first_write) return false;
    if (window == 1) return true;
    const std::vector<std::uint32_t>& groups = groups_of(a.lane, a.rank);
    const auto ordinal = [&](std::uint32_t group) {
      return std::lower_bound(groups.begin(), groups.end(), group) - groups.begin();
    };
    return ordinal(b.first_write) - ordinal(a.last) >= static_cast<std::ptrdiff_t>(window);
  }

  /// The groups that a rank takes part in on a lane, ascending.
  const std::vector<std::uint32_t>& groups_of(std::uint32_t lane, std::uint32_t rank) {
    if (groups_.empty()) {
      for (const Instance& instance : plan_.instances) {
        const Pattern& pattern = plan_.pattern(instance);
        for (std::size_t s = 0; s < pattern.steps.size(); ++s) {
          const std::uint32_t group = plan_.group_of(instance, s);
          for_each_rank(plan_, instance, pattern.steps[s], [&](std::uint32_t member) {
            groups_[{lane_of(instance, pattern.steps[s]), member}].push_back(group);
          });
        }
      }
      for (auto& entry : groups_) {
        std::sort(entry.second.begin(), entry.second.end());
        entry.second.erase(std::unique(entry.second.begin(), entry.second.end()), entry.second.end());
      }
    }
    return groups_[{lane, rank}];
  }

  Violation overwritten(const Use& a, const Use& b) const {
    const bool one_lane = a.lane == b.lane && a.lane != many_lanes;
    const std::string found =
        one_lane ? fmt::format("groups {} to {} and from {} on", a.first_write, a.last, b.first_write)
                 : std::string("on lanes that do not order them");
    const std::vector<std::int64_t> element = element_at(b, a.begin);
    const std::uint32_t step = writer_of(b, element);
    return {Fault::overwritten,
            plan_.instances[b.instance].tensor,
            element,
            {step},
            fmt::format(
                "tensor {}, element ({}) on rank {}: step {} overwrites what tensor {} staged in bytes {} "
                "to {} of buffer {} until its step {}, {}; a lane must bring the second at least its "
                "window of groups after the first's last use",
                name(b.instance), fmt::join(element, ","), b.rank, step, name(a.instance),
                std::max(a.begin, b.begin).value, std::min(a.end, b.end).value, plan_.buffers[b.buffer].name,
                a.last_step, found)};
  }

  const Refit& refit_;
  const Plan& plan_;
  const Limits& limits_;
  Proof& proof_;
  std::vector<Use> uses_;
  std::vector<std::size_t> use_of_rank_;  // where in uses_, of the present instance or one before
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> groups_;  // by lane and rank
};

}  // namespace

void check_buffers(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  BufferCheck(refit, plan, limits, proof).run();
}

}  // namespace isthmus

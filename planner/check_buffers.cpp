#include "planner/check_buffers.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include "planner/check_order.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t many_lanes = 0xFFFFFFFF;

/// What one instance stages on one rank of a shared buffer.
struct Use {
  std::uint32_t buffer = 0, rank = 0, instance = 0;
  std::uint32_t lane = many_lanes;                   // of all its steps that touch the staging; or many_lanes
  std::uint32_t first_write = 0xFFFFFFFF, last = 0;  // groups
  Region box;                                        // around all that is staged
  Bytes begin, end;                                  // in the buffer
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
      : refit_(refit), plan_(plan), limits_(limits), proof_(proof) {}

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
    std::map<std::uint32_t, Use> by_rank;
    for (std::size_t s = 0; s < pattern.steps.size(); ++s) {
      const Step& step = pattern.steps[s];
      if (step.from != Buffer::staging && step.to != Buffer::staging) continue;
      for_each_rank(plan_, instance, step, [&](std::uint32_t rank) {
        const bool sender = !is_collective(step.kind) && global_rank(instance, step.source).value == rank;
        const bool receiver = is_collective(step.kind) || global_rank(instance, step.target).value == rank;
        const bool reads = step.from == Buffer::staging && (sender || is_collective(step.kind));
        const bool writes = step.to == Buffer::staging && receiver;
        if (reads || writes) touch(by_rank[rank], index, s, writes);
      });
    }
    for (auto& [rank, use] : by_rank) {
      use.buffer = instance.buffer;
      use.rank = rank;
      use.instance = index;
      place(use);
      uses_.push_back(use);
    }
  }

  void touch(Use& use, std::uint32_t index, std::size_t step_index, bool writes) {
    const Instance& instance = plan_.instances[index];
    const Step& step = plan_.pattern(instance).steps[step_index];
    const std::uint32_t lane = lane_of(instance, step), group = plan_.group_of(instance, step_index);
    use.lane = use.box.dimensions == 0 || use.lane == lane ? lane : many_lanes;
    use.box = around(use.box, step.region);
    use.last = std::max(use.last, group);
    if (writes) use.first_write = std::min(use.first_write, group);
  }

  void place(Use& use) {
    const Instance& instance = plan_.instances[use.instance];
    const Layout& layout = refit_.geometry(instance.tensor).source;
    use.begin = instance.offset;
    use.end = instance.offset + layout.bytes(use.box);
    if (instance.offset.value % element_size(layout.dtype).value != 0) {
      add(Fault::not_aligned, use,
          fmt::format("begins at byte {}; a multiple of the element size {} is needed", instance.offset.value,
                      element_size(layout.dtype).value));
    }
    const StagingBuffer& buffer = plan_.buffers[use.buffer];
    if (use.end <= buffer.size) return;
    add(Fault::buffer_too_small, use,
        fmt::format("needs bytes {} to {} of buffer {}, which has {}", use.begin.value, use.end.value,
                    buffer.name, buffer.size.value));
  }

  void add(Fault fault, const Use& use, const std::string& detail) {
    report(proof_, limits_, [&] {
      return Violation{
          fault,
          plan_.instances[use.instance].tensor,
          {},
          {},
          fmt::format("tensor {}: its staging on rank {} {}", name(use.instance), use.rank, detail)};
    });
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
    return {
        Fault::overwritten,
        plan_.instances[b.instance].tensor,
        {},
        {},
        fmt::format("tensor {}: overwrites on rank {} what tensor {} staged in bytes {} to {} of buffer {}, "
                    "{}; a lane must bring the second at least its window of groups after the first's last "
                    "use",
                    name(b.instance), b.rank, name(a.instance), std::max(a.begin, b.begin).value,
                    std::min(a.end, b.end).value, plan_.buffers[b.buffer].name, found)};
  }

  const Refit& refit_;
  const Plan& plan_;
  const Limits& limits_;
  Proof& proof_;
  std::vector<Use> uses_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> groups_;  // by lane and rank
};

}  // namespace

void check_buffers(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  BufferCheck(refit, plan, limits, proof).run();
}

void check_puts(const Refit& refit, const Plan& plan, const Limits& limits, Proof& proof) {
  std::vector<std::vector<std::uint32_t>> puts(plan.patterns.size());
  for (std::size_t p = 0; p < puts.size(); ++p)
    for (std::uint32_t s = 0; s < plan.patterns[p].steps.size(); ++s)
      if (plan.patterns[p].steps[s].kind == StepKind::put) puts[p].push_back(s);
  for (const Instance& instance : plan.instances) {
    for (const std::uint32_t s : puts[instance.pattern.index()]) {
      const Step& step = plan.pattern(instance).steps[s];
      const Rank source = global_rank(instance, step.source), target = global_rank(instance, step.target);
      if (refit.fabric.domain_of(refit.gpu(source)) == refit.fabric.domain_of(refit.gpu(target))) continue;
      report(proof, limits, [&] {
        return Violation{
            Fault::out_of_reach,
            instance.tensor,
            {},
            {s},
            fmt::format("tensor {}: step {} puts from rank {} into rank {}, which is in another "
                        "NVLink domain; send it",
                        refit.tensors[instance.tensor.index()].tensor.name, s, source.value, target.value)};
      });
    }
  }
}

}  // namespace isthmus

#include "planner/plan_identity.hpp"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

namespace isthmus {
namespace {

using TensorsByName = std::map<std::string_view, std::uint32_t>;

TensorsByName by_name(const Refit& refit) {
  TensorsByName names;
  for (std::uint32_t i = 0; i < refit.tensors.size(); ++i) names.emplace(refit.tensors[i].tensor.name, i);
  return names;
}

/// "0-1", "6, 4-5": in mesh order.
std::string ranks_text(const Layout& layout, Rank base) {
  constexpr std::size_t most_runs = 8;
  const std::vector<Rank>& ranks = layout.mesh.ranks;
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1].value == ranks[last].value + 1) ++last;
    if (runs.size() == most_runs) {
      runs.emplace_back("...");
      break;
    }
    const std::uint32_t begin = base.value + ranks[first].value, end = base.value + ranks[last].value;
    runs.push_back(begin == end ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(runs, ", "));
}

bool same_ranks(const Layout& a, Rank a_base, const Layout& b, Rank b_base) {
  return std::equal(a.mesh.ranks.begin(), a.mesh.ranks.end(), b.mesh.ranks.begin(), b.mesh.ranks.end(),
                    [&](Rank x, Rank y) { return a_base.value + x.value == b_base.value + y.value; });
}

std::string placements_text(const Layout& layout) {
  std::vector<std::string> texts;
  for (const Placement placement : layout.placements) texts.push_back(to_string(placement));
  return fmt::format("mesh [{}] with {}", fmt::join(layout.mesh.shape, ", "), fmt::join(texts, ", "));
}

std::string frame_text(const Layout& layout) {
  if (!layout.frame) return "no frame";
  return fmt::format("frame [{}] from [{}]", fmt::join(layout.frame->extent, ", "),
                     fmt::join(layout.frame->origin, ", "));
}

std::string layout_fault(std::string_view side, const Layout& made, const Layout& asked) {
  const auto differs = [&](const std::string& a, const std::string& b) {
    return fmt::format("plan is for {} {}; asked for {}", side, a, b);
  };
  if (made.mesh.shape != asked.mesh.shape || made.placements != asked.placements)
    return differs(placements_text(made), placements_text(asked));
  if (made.chunk_rule != asked.chunk_rule) {
    return differs(fmt::format("chunk rule {}", to_string(made.chunk_rule)),
                   std::string(to_string(asked.chunk_rule)));
  }
  if (made.frame != asked.frame) return differs(frame_text(made), frame_text(asked));
  return {};
}

/// Empty when both are the same.
std::string tensor_fault(const Refit& made_for, const RefitEntry& made, const Refit& asked_for,
                         const RefitEntry& asked) {
  const Geometry& a = made_for.geometries[made.geometry];
  const Geometry& b = asked_for.geometries[asked.geometry];
  if (a.source.shape != b.source.shape) {
    return fmt::format("plan is for shape [{}]; asked for [{}]", fmt::join(a.source.shape, ", "),
                       fmt::join(b.source.shape, ", "));
  }
  if (a.source.dtype != b.source.dtype) {
    return fmt::format("plan is for dtype {}; asked for {}", to_string(a.source.dtype),
                       to_string(b.source.dtype));
  }
  if (made.tensor.quantised != asked.tensor.quantised) {
    return fmt::format("plan is for {} quantised at the source; asked for {}",
                       to_string(made.tensor.quantised), to_string(asked.tensor.quantised));
  }
  if (!same_ranks(a.source, made.source_base, b.source, asked.source_base) ||
      !same_ranks(a.target, made.target_base, b.target, asked.target_base)) {
    return fmt::format("plan is for source ranks {}, target ranks {}; asked for {} -> {}",
                       ranks_text(a.source, made.source_base), ranks_text(a.target, made.target_base),
                       ranks_text(b.source, asked.source_base), ranks_text(b.target, asked.target_base));
  }
  const std::string fault = layout_fault("source", a.source, b.source);
  return fault.empty() ? layout_fault("target", a.target, b.target) : fault;
}

}  // namespace

std::vector<Violation> identity_faults(const Refit& made_for, const Refit& asked) {
  std::vector<Violation> faults;
  const auto add = [&](TensorId tensor, const std::string& name, const std::string& fault) {
    faults.push_back({Fault::other_refit, tensor, {}, {}, fmt::format("tensor {}: {}", name, fault)});
  };
  const TensorsByName made_names = by_name(made_for), asked_names = by_name(asked);
  for (std::uint32_t i = 0; i < asked.tensors.size(); ++i) {
    const RefitEntry& entry = asked.tensors[i];
    const auto made = made_names.find(entry.tensor.name);
    if (made == made_names.end()) {
      add({i}, entry.tensor.name,
          fmt::format("asked for; plan is for {} other tensors", made_for.tensors.size()));
    } else if (const std::string fault = tensor_fault(made_for, made_for.tensors[made->second], asked, entry);
               !fault.empty()) {
      add({i}, entry.tensor.name, fault);
    }
  }
  for (const RefitEntry& entry : made_for.tensors) {
    if (asked_names.contains(entry.tensor.name)) continue;
    const TensorId none{static_cast<std::uint32_t>(asked.tensors.size())};
    add(none, entry.tensor.name,
        fmt::format("plan is for it; it is none of the {} tensors asked for", asked.tensors.size()));
  }
  return faults;
}

Proof check_against(const Refit& made_for, const Plan& plan, const Refit& asked, const Limits& limits) {
  std::vector<Violation> faults = identity_faults(made_for, asked);
  if (!faults.empty()) {
    Proof proof;
    proof.violation_count = faults.size();
    faults.resize(std::min(faults.size(), limits.most_violations));
    proof.violations = std::move(faults);
    return proof;
  }
  const TensorsByName asked_names = by_name(asked);
  Plan moved = plan;
  for (Instance& instance : moved.instances) {
    if (instance.tensor.index() < made_for.tensors.size())
      instance.tensor = {asked_names.at(made_for.tensors[instance.tensor.index()].tensor.name)};
  }
  return check(asked, moved, limits);
}

}  // namespace isthmus

// tensor_faults() of bare_tensors.hpp: what a file may not say of bare tensors.

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "model/bare_tensors.hpp"
#include "model/scenario_model.hpp"
#include "model/scenario_reader.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

/// "rank 3", "ranks 0 and 1", "ranks 0 to 7", "ranks 0, 5 and 2 more"
std::string rank_text(std::vector<Rank> ranks) {
  std::sort(ranks.begin(), ranks.end());
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0].value);
  if (ranks.size() == 2) return fmt::format("ranks {} and {}", ranks[0].value, ranks[1].value);
  if (ranks.back().value - ranks.front().value + 1 == ranks.size())
    return fmt::format("ranks {} to {}", ranks.front().value, ranks.back().value);
  return fmt::format("ranks {}, {} and {} more", ranks[0].value, ranks[1].value, ranks.size() - 2);
}

class Judge {
 public:
  explicit Judge(const Scenario& scenario) : scenario_(scenario) {
    for (const TensorSpec& spec : scenario.tensors) by_name_.emplace(spec.name, &spec);
  }

  std::vector<InputFault> run() {
    for (item_ = 0; item_ < scenario_.tensors.size(); ++item_) {
      const TensorSpec& spec = scenario_.tensors[item_];
      judge_names(spec);
      judge_holders(spec);
      judge_source_form(spec);
      judge_local_shape(spec, "source", spec.source, spec.claims.source_shape);
      judge_local_shape(spec, "target", spec.target, spec.claims.target_shape);
      judge_slots(spec);
      judge_storage(spec);
    }
    for (InputFault& fault : view_faults(scenario_)) faults_.push_back(std::move(fault));
    return std::move(faults_);
  }

 private:
  void add(std::string_view key, std::string found, std::string allowed, std::string change) {
    faults_.push_back({scenario_.at(tensor_key(scenario_, item_, key)), std::move(found), std::move(allowed),
                       std::move(change)});
  }

  void judge_names(const TensorSpec& spec) {
    if (spec.target.mesh.ranks.empty()) {
      add("target",
          fmt::format("source tensor {} on {} has no target: nobody receives it", printable(spec.name),
                      rank_text(spec.source.mesh.ranks)),
          "a target for each tensor", "its target, or leave the tensor out");
      return;
    }
    if (!spec.claims.tied_to.empty()) return judge_tie(spec);
    if (!spec.source.mesh.ranks.empty()) return;
    const TensorSpec* like = tie_for(spec);
    add("source",
        fmt::format("target tensor {} on {} has no source of that name", printable(spec.name),
                    rank_text(spec.target.mesh.ranks)),
        like == nullptr ? "a source for each tensor"
                        : fmt::format("a source; if it is tied to {}, say so", printable(like->name)),
        like == nullptr ? "its source" : fmt::format("tied_to: {}", printable(like->name)));
  }

  /// The first tensor whose source this one could have.
  const TensorSpec* tie_for(const TensorSpec& spec) const {
    const auto like =
        std::find_if(scenario_.tensors.begin(), scenario_.tensors.end(), [&spec](const TensorSpec& other) {
          return !other.source.mesh.ranks.empty() && other.source.shape == spec.target.shape &&
                 other.source.dtype == spec.target.dtype;
        });
    return like == scenario_.tensors.end() ? nullptr : &*like;
  }

  void judge_tie(const TensorSpec& spec) {
    constexpr std::string_view key = "tensor.tied_to";
    const std::string tie = printable(spec.claims.tied_to), tensor = printable(spec.name);
    const TensorSpec* like = tie_for(spec);
    const std::string change = like == nullptr ? "leave it out, and give its source" : printable(like->name);
    const auto known = by_name_.find(spec.claims.tied_to);
    if (known == by_name_.end()) {
      return add(key, fmt::format("tensor {} tied to {}, which is not there", tensor, tie),
                 "a tensor of this file", change);
    }
    const TensorSpec& owner = *known->second;
    if (owner.source.mesh.ranks.empty()) {
      return add(key, fmt::format("tensor {} tied to {}, which has no source", tensor, tie),
                 "a tensor with a source", change);
    }
    if (owner.source.shape == spec.target.shape && owner.source.dtype == spec.target.dtype) return;
    add(key,
        fmt::format("tensor {} [{}] {} tied to {} [{}] {}", tensor, fmt::join(spec.target.shape, ","),
                    to_string(spec.target.dtype), tie, fmt::join(owner.source.shape, ","),
                    to_string(owner.source.dtype)),
        "a tensor of its shape and dtype", change);
  }

  void judge_holders(const TensorSpec& spec) {
    const std::vector<Layout>& others = spec.claims.other_sources;
    if (others.empty()) return;
    std::vector<Rank> ranks = spec.source.mesh.ranks;
    for (const Layout& other : others)
      ranks.insert(ranks.end(), other.mesh.ranks.begin(), other.mesh.ranks.end());
    const std::string held = fmt::format("tensor {}: held by {} sources ({})", printable(spec.name),
                                         others.size() + 1, rank_text(ranks));
    if (!spec.claims.replicas) {
      return add("source", held,
                 fmt::format("one owner; or declare the {} as replicas of one tensor",
                             others.size() == 1 ? "two" : fmt::format("{}", others.size() + 1)),
                 "replicas: true, or one source");
    }
    const auto differs = [&](const Layout& other) {
      return other.mesh.shape != spec.source.mesh.shape || other.placements != spec.source.placements ||
             other.chunk_rule != spec.source.chunk_rule || other.frame != spec.source.frame;
    };
    const auto different = std::find_if(others.begin(), others.end(), differs);
    if (different != others.end()) {
      add("source",
          fmt::format("{}, of which source {} is cut in another way than source 0", held,
                      different - others.begin() + 1),
          "replicas of equal mesh, placements, chunk rule and frame", "the same for all");
    }
    std::sort(ranks.begin(), ranks.end());
    const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
    if (twice != ranks.end()) {
      add("source", fmt::format("{}, rank {} twice", held, twice->value), "each rank in one source",
          "other ranks");
    }
  }

  void judge_source_form(const TensorSpec& spec) {
    if (!spec.claims.transformed) return;
    add("source.view",
        fmt::format("tensor {}: exported through a transformation that is no box and no strided block of the "
                    "target's index space",
                    printable(spec.name)),
        "a box, or strided blocks of a base",
        "strided blocks (view: {base, dimension, offset, block, stride, extent}), or send it by the misc "
        "path");
  }

  void judge_local_shape(const TensorSpec& spec, std::string_view side, const Layout& layout,
                         const std::vector<std::int64_t>& shape) {
    if (shape.empty() || layout.mesh.ranks.empty()) return;
    const std::string key = fmt::format("{}.local_shape", side);
    if (shape.size() != layout.shape.size()) {
      return add(key, fmt::format("{} dimensions", shape.size()),
                 fmt::format("{}, as the tensor has", layout.shape.size()), "");
    }
    Layout held = layout;
    if (side == "target" && !spec.claims.slots.empty())
      held.shape[0] = static_cast<std::int64_t>(spec.claims.slots.size());
    held = held_layout(held);
    const Region region = held.region(0);  // no other one is larger
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t needed = region.end.at(d) - region.begin.at(d);
      if (shape[d] != needed) add_size(spec, side, held, d, shape[d], needed);
    }
  }

  void add_size(const TensorSpec& spec, std::string_view side, const Layout& layout, std::size_t dimension,
                std::int64_t rows, std::int64_t needed) {
    std::int64_t shards = 1;
    for (std::size_t axis = 0; axis < layout.placements.size(); ++axis) {
      if (layout.placements[axis].dimension == static_cast<int>(dimension)) shards *= layout.mesh.shape[axis];
    }
    const std::string claim =
        shards == 1 ? "replicated" : fmt::format("shard({}) over {} ranks", dimension, shards);
    const bool sharded = rows < needed && needed % rows == 0;
    add(fmt::format("{}.local_shape", side),
        fmt::format("{}: {} claims {} with {} rows on dimension {}, {} needed: size not conserved",
                    printable(spec.name), side, claim, rows, dimension, needed),
        fmt::format("{} rows on dimension {}", needed, dimension),
        sharded ? fmt::format("shard({}) over {}: is the {} sharded on dimension {}?", dimension,
                              needed / rows * shards, side, dimension)
                : fmt::format("{}, or placements that leave {}", needed, rows));
  }

  void judge_slots(const TensorSpec& spec) {
    const std::vector<std::int64_t>& slots = spec.claims.slots;
    if (slots.empty()) return;
    const std::int64_t experts = spec.target.shape[0];
    if (to_size(experts) > slots.size()) {  // and nothing of their number is allocated
      return add(
          "target.slots",
          fmt::format("tensor {}: {} slots for {} experts", printable(spec.name), slots.size(), experts),
          "a slot for each expert", fmt::format("{} slots or more", experts));
    }
    std::vector<char> held(to_size(experts));
    std::vector<std::size_t> outside;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (slots[slot] < 0 || slots[slot] >= experts) {
        outside.push_back(slot);
      } else {
        held[to_size(slots[slot])] = 1;
      }
    }
    if (!outside.empty()) {
      const std::string others =
          outside.size() == 1 ? "" : fmt::format(" and {} more slots", outside.size() - 1);
      add("target.slots",
          fmt::format("tensor {}: slot {} holds expert {}{}", printable(spec.name), outside.front(),
                      slots[outside.front()], others),
          fmt::format("experts 0 to {}", experts - 1), "one of these");
    }
    const auto missing = std::find(held.begin(), held.end(), 0);
    if (missing != held.end()) {
      const auto others = std::count(missing + 1, held.end(), 0);
      add("target.slots",
          fmt::format("tensor {}: no slot for expert {}{}", printable(spec.name), missing - held.begin(),
                      others == 0 ? "" : fmt::format(" and {} more", others)),
          "a slot for each expert", fmt::format("{} slots or more", experts));
    }
    if (!outside.empty() || missing != held.end()) return;
    const auto positions = static_cast<std::int64_t>(spec.source.mesh.size() + spec.target.mesh.size());
    const auto runs = static_cast<std::int64_t>(slot_runs(slots, experts).size());
    if (runs > max_mesh_positions / std::max<std::int64_t>(positions, 1)) {
      add("target.slots", fmt::format("{} runs of slots over {} mesh positions", runs, positions),
          fmt::format("at most {} in all", max_mesh_positions), "experts in order, or smaller meshes");
    }
  }

  void judge_storage(const TensorSpec& spec) {
    const auto owner = by_name_.find(spec.claims.tied_to);
    const std::optional<FusedView>& source =
        owner == by_name_.end() ? spec.source_view : owner->second->source_view;
    const std::string from = source ? source->storage : "",
                      to = spec.target_view ? spec.target_view->storage : "";
    if (from == to || spec.target.mesh.ranks.empty()) return;
    const auto layout = [](const std::string& storage) {
      return storage.empty() ? std::string("canonical") : printable(storage);
    };
    const Region region = held_layout(spec.target).region(0);
    std::vector<std::int64_t> extents;
    for (std::size_t d = 0; d < region.dimensions; ++d)
      extents.push_back(region.end.at(d) - region.begin.at(d));
    add(spec.target_view ? "target.view" : "source.view",
        fmt::format("target {} on rank {} is in layout {}, the transfer writes {} [{}]", printable(spec.name),
                    spec.target.mesh.ranks.front().value, layout(to), layout(from), fmt::join(extents, ",")),
        "one storage layout on both sides",
        from.empty() ? "receive into a canonical buffer and repack, or plan the permuted layout"
                     : "unpack the source into a canonical buffer, or receive the permuted layout");
  }

  const Scenario& scenario_;
  std::map<std::string_view, const TensorSpec*> by_name_;
  std::size_t item_ = 0;
  std::vector<InputFault> faults_;
};

}  // namespace

std::vector<InputFault> tensor_faults(const Scenario& scenario) {
  std::vector<InputFault> faults = Judge(scenario).run();
  if (scenario.refit.quantise_at == QuantiseAt::source) faults.push_back(nothing_to_quantise(scenario));
  return faults;
}

}  // namespace isthmus

// What one rank's local map says, held against the description: names, regions, boxes. The buffers are judged
// in base_faults.cpp.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus::refit_info {
namespace {

std::string tensor_on(const LocalMap& map, std::string_view tensor) {
  return fmt::format("tensor {} on {}", printable(tensor, 200), rank_text(map.side, map.rank));
}

/// How many dimensions the base has more than the tensor: -1, 0 or 1, the leading (expert) one; nullopt when
/// the boxes cannot be the same elements.
std::optional<int> dimension_offset(const Region& before, const Region& after) {
  if (before.dimensions == after.dimensions) return 0;
  if (before.dimensions == after.dimensions + 1 && before.end[0] - before.begin[0] == 1) return -1;
  if (after.dimensions == before.dimensions + 1 && after.end[0] - after.begin[0] == 1) return 1;
  return std::nullopt;
}

bool same_extents(const Region& before, const Region& after, int offset) {
  for (std::size_t d = offset < 0 ? 1U : 0U; d < before.dimensions; ++d) {
    const std::size_t of_base = to_size(static_cast<int>(d) + offset);
    if (before.end[d] - before.begin[d] != after.end[of_base] - after.begin[of_base]) return false;
  }
  return true;
}

/// A dimension that the source claims whole and of which its buffer has but an even part.
struct Missing {
  std::size_t dimension;
  std::int64_t have, need;
};

std::optional<Missing> taken_for_replica(const Judged& judged, std::uint32_t tensor, const Region& region,
                                         const Region& box) {
  const Layout& layout = judged.info.tensors[tensor].source;
  if (box.dimensions != region.dimensions) return std::nullopt;
  for (std::size_t d = 0; d < region.dimensions; ++d) {
    const std::int64_t need = region.end[d] - region.begin[d], have = box.end[d] - box.begin[d];
    const bool sharded =
        std::any_of(layout.placements.begin(), layout.placements.end(),
                    [&](Placement placement) { return placement.dimension == static_cast<int>(d); });
    if (!sharded && have > 0 && have < need && need % have == 0) return Missing{d, have, need};
  }
  return std::nullopt;
}

/// Name of a replicated axis of the source mesh that could be the shard, the innermost one first; "tp" when
/// dim_map names none but replicas.
std::string shard_axis(const BulkTensor& tensor, std::int64_t parts) {
  for (std::size_t axis = tensor.source_axes.size(); axis-- > 0;) {
    const bool replicated = axis < tensor.source.placements.size() &&
                            tensor.source.placements[axis].dimension == Placement::replicated;
    const bool fits = replicated && tensor.source.mesh.shape[axis] % parts == 0;
    if (fits && !tensor.source_axes[axis].empty() && tensor.source_axes[axis] != "dp")
      return printable(tensor.source_axes[axis]);
  }
  return "tp";
}

void widen(Region& bounds, const Region& box) {
  for (std::size_t d = 0; d < bounds.dimensions; ++d) {
    bounds.begin[d] = std::min(bounds.begin[d], box.begin[d]);
    bounds.end[d] = std::max(bounds.end[d], box.end[d]);
  }
}

class MapJudge {
 public:
  MapJudge(Judged& judged, const LocalMap& map)
      : judged_(judged), map_(map), of_base_(map.bases.size()), skipped_(map.bases.size(), false) {
    for (const Tie& tie : map.ties) ties_.emplace(tie.name, tie.source);
  }

  void judge() {
    find_repeated_bases();
    for (std::size_t i = 0; i < map_.entries.size(); ++i) {
      if (!judge_entry(i)) skipped_[map_.entries[i].base] = true;
    }
    for (auto& [tensor, entries] : of_tensor_) judge_cover(tensor, entries);
    for (std::size_t base = 0; base < map_.bases.size(); ++base) {
      if (skipped_[base]) of_base_[base].clear();
      judge_layer(base);
      judge_base(judged_, map_, map_.bases[base], of_base_[base]);
    }
    judge_expert_slots(judged_, map_, of_base_);
  }

  /// Tensors that have an entry, sorted; also those whose entries are at fault.
  std::vector<std::uint32_t> take_named() {
    std::sort(named_.begin(), named_.end());
    return std::move(named_);
  }

 private:
  void add(std::size_t entry, std::string_view kind, std::string_view subject, std::string found,
           std::string allowed, std::string change = "") {
    judged_.faults.add(fmt::format("{} {} {}", kind, to_string(map_.side), subject),
                       {map_.at(entry), std::move(found), std::move(allowed), std::move(change)});
  }

  void find_repeated_bases() {
    std::map<std::string_view, std::uint32_t> first;
    std::vector<bool> twice(map_.bases.size(), false);
    for (std::uint32_t base = 0; base < map_.bases.size(); ++base) {
      const auto [known, added] = first.emplace(map_.bases[base].name, base);
      if (added) continue;
      twice[base] = true;
      skipped_[base] = skipped_[known->second] = true;
    }
    for (std::size_t i = 0; i < map_.entries.size(); ++i) {
      if (!twice[map_.entries[i].base]) continue;
      const std::string name = printable(map_.bases[map_.entries[i].base].name, 200);
      add(i, "base twice", name,
          fmt::format("base {} of {} with another shape, strides, dtype, storage or scale than before", name,
                      rank_text(map_.side, map_.rank)),
          "one description of each base");
    }
  }

  /// The tensor that an entry speaks of; nullopt, after saying why, when its base cannot be judged.
  std::optional<std::uint32_t> find_tensor(std::size_t index) {
    const LocalEntry& entry = map_.entries[index];
    std::string_view name = entry.tensor;
    if (const auto tie = ties_.find(name); tie != ties_.end()) name = tie->second;
    if (const auto found = judged_.tensor_of_name.find(name); found != judged_.tensor_of_name.end())
      return found->second;
    if (judged_.misc_of_name.contains(name)) {
      judged_.notes.add(
          "misc entries",
          fmt::format("misc tensors travel whole: the entry of {} is not judged", printable(name, 200)));
      return std::nullopt;
    }
    const std::string printed = printable(name, 200);
    const std::string tie = map_.side == Side::generate ? tied_to(name) : "";
    add(index, "unknown", printed,
        fmt::format("{}{} has no source of that name: neither per_layer_params nor misc_meta has it",
                    map_.side == Side::generate ? "target " : "", tensor_on(map_, name)),
        "the names of the description",
        tie.empty()
            ? closest(name)
            : fmt::format("if it is tied to {0}, say so: \"ties\": {{\"{1}\": \"{0}\"}}", tie, printed));
    return std::nullopt;
  }

  /// The embedding, for an output layer that has no source.
  std::string tied_to(std::string_view name) const {
    if (!name.ends_with("output_layer.weight") && !name.ends_with("lm_head.weight")) return {};
    for (const std::string_view suffix :
         {"word_embeddings.weight", "embed_tokens.weight", "embeddings.weight"}) {
      for (const MiscTensor& tensor : judged_.info.misc) {
        if (std::string_view(tensor.name).ends_with(suffix)) return printable(tensor.name, 200);
      }
      for (const BulkTensor& tensor : judged_.info.tensors) {
        if (std::string_view(tensor.name).ends_with(suffix)) return printable(tensor.name, 200);
      }
    }
    return {};
  }

  /// Of a description of usual size; edit distances to each name cost too much otherwise.
  std::string closest(std::string_view name) const {
    constexpr std::size_t most = 2'000;
    std::vector<std::string_view> names;
    for (const BulkTensor& tensor : judged_.info.tensors) {
      if (names.size() < most) names.push_back(tensor.name);
    }
    if (names.empty()) return {};
    return printable(closest_first(name, std::move(names)).front(), 200);
  }

  bool judge_entry(std::size_t index) {
    const std::optional<std::uint32_t> tensor = find_tensor(index);
    if (!tensor) return false;
    named_.push_back(*tensor);
    const LocalEntry& entry = map_.entries[index];
    const Holders& holders = judged_.holders(map_.side, *tensor);
    if (!holders.sound || !judge_owner(index, *tensor)) return false;
    const std::optional<Region> region =
        holders.region(judged_.layout(map_.side, *tensor), judged_.group_rank(map_.side, map_.rank));
    if (!region) {
      add(index, "outside", entry.tensor,
          fmt::format("{}, which is not in its mesh", tensor_on(map_, entry.tensor)), "ranks of the mesh");
      return false;
    }
    if (!judge_boxes(index, *tensor, *region)) return false;
    of_tensor_[*tensor].push_back(index);
    of_base_[entry.base].push_back({index, *tensor, *region});
    return true;
  }

  bool judge_owner(std::size_t index, std::uint32_t tensor) {
    if (map_.side == Side::generate) return true;
    const std::int64_t owner = judged_.stage(tensor), stage = map_.rank / judged_.info.stage_ranks();
    if (owner == stage) return true;
    const std::string& name = judged_.info.tensors[tensor].name;
    add(index, "stage", name,
        fmt::format("{} (stage {}) offers tensor {}", rank_text(map_.side, map_.rank), stage,
                    printable(name, 200)),
        fmt::format("tensors of its own stage; this one is on stage {}", owner));
    return false;
  }

  /// `before` within the region, as many dimensions and elements in `after`, and that within the base.
  bool judge_boxes(std::size_t index, std::uint32_t tensor, const Region& region) {
    const LocalEntry& entry = map_.entries[index];
    const LocalBase& base = map_.bases[entry.base];
    const std::optional<int> offset = dimension_offset(entry.before, entry.after);
    if (entry.before.dimensions == region.dimensions && region.contains(entry.before) && offset &&
        same_extents(entry.before, entry.after, *offset)) {
      return judge_place(index, base);
    }
    if (entry.before == region && judge_conservation(index, tensor, region, entry.after)) return false;
    if (entry.before.dimensions != region.dimensions || !region.contains(entry.before)) {
      add(index, "before", entry.tensor,
          fmt::format("{}: before {}", tensor_on(map_, entry.tensor), to_string(entry.before)),
          fmt::format("a part of {}, the region that mesh and placements give this rank", to_string(region)));
    } else if (!offset) {
      add(index, "dimensions", entry.tensor,
          fmt::format("{}: base {} has {} dimensions, the tensor {}", tensor_on(map_, entry.tensor),
                      printable(base.name, 200), entry.after.dimensions, entry.before.dimensions),
          "as many, but for a leading one of a single expert");
    } else {
      add(index, "extents", entry.tensor,
          fmt::format("{}: before {} goes to after {} of base {}", tensor_on(map_, entry.tensor),
                      to_string(entry.before), to_string(entry.after), printable(base.name, 200)),
          "boxes of equal extents: size not conserved");
    }
    return false;
  }

  /// True, after saying so, when a training rank has an even part of what a replica would have.
  bool judge_conservation(std::size_t index, std::uint32_t tensor, const Region& region, const Region& box) {
    if (map_.side == Side::generate) return false;
    const auto missing = taken_for_replica(judged_, tensor, region, box);
    if (!missing) return false;
    const BulkTensor& described = judged_.info.tensors[tensor];
    add(index, "size", described.name,
        fmt::format(
            "{}: source claims Replicated with {} rows on dim {}, target needs {}: size not conserved",
            tensor_on(map_, described.name), missing->have, missing->dimension, missing->need),
        fmt::format("{} on dim {}; is the source sharded on dim {} over {}?", missing->need,
                    missing->dimension, missing->dimension,
                    shard_axis(described, missing->need / missing->have)));
    return true;
  }

  bool judge_place(std::size_t index, const LocalBase& base) {
    const LocalEntry& entry = map_.entries[index];
    if (entry.after.dimensions != base.shape.size()) {
      add(index, "after", entry.tensor,
          fmt::format("{}: after {} in base {} of {} dimensions", tensor_on(map_, entry.tensor),
                      to_string(entry.after), printable(base.name, 200), base.shape.size()),
          "a box with the dimensions of the base");
      return false;
    }
    if (whole(base.shape).contains(entry.after)) return true;
    add(index, "after", entry.tensor,
        fmt::format("{}: after {}", tensor_on(map_, entry.tensor), to_string(entry.after)),
        fmt::format("a part of base {}, {}", printable(base.name, 200), to_string(whole(base.shape))));
    return false;
  }

  /// Engines number their layers as the names do; a training rank may count those of its stage from 0.
  void judge_layer(std::size_t base) {
    if (of_base_[base].empty()) return;
    const BaseBox& first = of_base_[base].front();
    const std::string& name = map_.entries[first.entry].tensor;
    const auto of_base = layer_of(map_.bases[base].name), of_tensor = layer_of(name);
    if (!of_base || !of_tensor) return;
    if (!layer_shift_) layer_shift_ = map_.side == Side::generate ? 0 : *of_tensor - *of_base;
    if (*of_tensor - *of_base == *layer_shift_) return;
    const std::string printed = printable(map_.bases[base].name, 200);
    add(first.entry, "layer", printed,
        fmt::format("base {} on {} {} {}", printed, rank_text(map_.side, map_.rank),
                    map_.side == Side::generate ? "receives" : "holds", printable(name, 200)),
        fmt::format("tensors of layer {}{}", *of_base + *layer_shift_,
                    *layer_shift_ == 0 ? "" : ", counted as in the other buffers of this rank"));
  }

  /// All entries of one tensor together: every element of the region, on the sending side once.
  void judge_cover(std::uint32_t tensor, const std::vector<std::size_t>& entries) {
    const std::string& name = judged_.info.tensors[tensor].name;
    const Region region =
        *judged_.holders(map_.side, tensor)
             .region(judged_.layout(map_.side, tensor), judged_.group_rank(map_.side, map_.rank));
    if (entries.size() == 1 && map_.entries[entries.front()].before == region) return;
    if (entries.size() > max_entries_per_base) {
      add(entries.front(), "many", name,
          fmt::format("{} entries of {}", entries.size(), tensor_on(map_, name)),
          fmt::format("at most {}", max_entries_per_base));
      return;
    }
    std::vector<Region> open{region};
    Region bounds = map_.entries[entries.front()].before;
    std::int64_t volume = 0;
    for (const std::size_t index : entries) {
      std::vector<Region> rest;
      for (const Region& part : open) {
        for (const Region& piece : subtract(part, map_.entries[index].before)) rest.push_back(piece);
      }
      open = std::move(rest);
      widen(bounds, map_.entries[index].before);
      volume += map_.entries[index].before.volume();
    }
    std::erase_if(open, [](const Region& part) { return part.empty(); });
    if (!open.empty() && judge_conservation(entries.front(), tensor, region, bounds)) {
      for (const std::size_t index : entries) skipped_[map_.entries[index].base] = true;
      return;
    }
    if (!open.empty()) {
      add(entries.front(), "cover", name,
          fmt::format("{}: {} of its region {} is in no entry", tensor_on(map_, name),
                      to_string(*std::min_element(open.begin(), open.end())), to_string(region)),
          "every element of the region");
    } else if (map_.side == Side::train && volume > region.volume()) {
      add(entries.front(), "offered", name,
          fmt::format("{}: entries offer {} elements for a region of {}", tensor_on(map_, name), volume,
                      region.volume()),
          "each element once");
    }
  }

  Judged& judged_;
  const LocalMap& map_;
  std::map<std::string_view, std::string_view> ties_;
  std::map<std::uint32_t, std::vector<std::size_t>> of_tensor_;
  std::vector<std::vector<BaseBox>> of_base_;
  std::vector<bool> skipped_;  // bases with an entry that is at fault or not judged
  std::vector<std::uint32_t> named_;
  std::optional<std::int64_t> layer_shift_;  // layer of a tensor - layer of its buffer, of this rank
};

}  // namespace

std::vector<std::uint32_t> judge_local_map(Judged& judged, const LocalMap& map) {
  MapJudge judge(judged, map);
  judge.judge();
  return judge.take_named();
}

}  // namespace isthmus::refit_info

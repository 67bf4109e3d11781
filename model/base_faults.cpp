// One live buffer of one rank: how it is stored, that its boxes tile it, and that each element is the one
// that belongs there.
#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus::refit_info {
namespace {

constexpr std::int64_t quantisation_block = 32;  // MXFP8: elements of the last dimension per scale

/// The projections that a buffer of vLLM or Megatron-LM holds by its name; none where the name does not tell.
std::vector<std::string_view> projections_named(std::string_view base) {
  std::vector<std::string_view> named;
  for (std::size_t begin = 0; begin <= base.size();) {
    const std::size_t end = std::min(base.find('.', begin), base.size());
    std::string_view part = base.substr(begin, end - begin);
    begin = end + 1;
    if (part.ends_with("_weight")) part.remove_suffix(7);
    if (part == "gate_up_proj" || part == "w13" || part == "linear_fc1") named = {"gate_proj", "up_proj"};
    if (part == "gate_proj" || part == "up_proj" || part == "down_proj") named = {part};
    if (part == "w2" || part == "linear_fc2") named = {"down_proj"};
  }
  return named;
}

class BaseJudge {
 public:
  BaseJudge(Judged& judged, const LocalMap& map, const LocalBase& base, const std::vector<BaseBox>& boxes)
      : judged_(judged), map_(map), base_(base), boxes_(boxes) {}

  void judge() {
    judge_strides();
    if (!judge_storage() || !judge_module()) return;
    judge_dtype();
    if (judge_tiling()) judge_order();
  }

 private:
  const LocalEntry& entry(const BaseBox& box) const { return map_.entries[box.entry]; }
  const BulkTensor& tensor(const BaseBox& box) const { return judged_.info.tensors[box.tensor]; }
  std::string name(const BaseBox& box) const { return printable(tensor(box).name, 200); }
  std::string base_on() const {
    return fmt::format("base {} on {}", printable(base_.name, 200), rank_text(map_.side, map_.rank));
  }

  void add(const BaseBox& box, std::string_view kind, std::string found, std::string allowed,
           std::string change = "") {
    judged_.faults.add(fmt::format("{} {} {}", kind, to_string(map_.side), base_.name),
                       {map_.at(box.entry), std::move(found), std::move(allowed), std::move(change)});
  }

  /// Each dimension steps over all that the dimensions of smaller strides span.
  void judge_strides() {
    std::vector<std::size_t> order(base_.shape.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(base_.strides[a], base_.shape[a]) < std::pair(base_.strides[b], base_.shape[b]);
    });
    std::int64_t span = 1;
    for (const std::size_t d : order) {
      if (base_.shape[d] < 2) continue;
      if (base_.strides[d] < span) {
        add(boxes_.front(), "strides",
            fmt::format(
                "{}: strides [{}] of shape [{}]: dimension {} steps {} elements, the dimensions inside "
                "it span {}",
                base_on(), fmt::join(base_.strides, ", "), fmt::join(base_.shape, ", "), d, base_.strides[d],
                span),
            "a strided view of which no two elements share memory");
        return;
      }
      span += (base_.shape[d] - 1) * base_.strides[d];
    }
  }

  /// Gate and up stacked in one buffer on their rows: where the second one begins; nullopt for other buffers.
  std::optional<std::int64_t> half(const BaseBox& box) const {
    const auto named = projection_of(tensor(box).name);
    if (!named || named->projection == "down_proj") return std::nullopt;
    const std::size_t rows = row_dimension(box);
    const std::int64_t of_tensor = box.region.end[rows] - box.region.begin[rows];
    const std::int64_t of_base = base_.shape[to_size(static_cast<int>(rows) + offset(box))];
    return of_base == 2 * of_tensor ? std::optional(of_tensor) : std::nullopt;
  }
  int offset(const BaseBox& box) const {
    return static_cast<int>(entry(box).after.dimensions) - static_cast<int>(entry(box).before.dimensions);
  }
  static std::size_t row_dimension(const BaseBox& box) {
    return box.region.dimensions < 2 ? 0 : box.region.dimensions - 2;
  }

  bool judge_storage() {
    if (base_.storage == "canonical") return true;
    const BaseBox& first = boxes_.front();
    if (base_.storage == "up_gate" && half(first)) return true;
    const bool target = map_.side == Side::generate;
    add(first, "storage",
        fmt::format("{} {} is in layout {}, the transfer {} canonical [{}]", target ? "target" : "source",
                    base_on(), printable(base_.storage), target ? "writes" : "reads",
                    fmt::join(base_.shape, ", ")),
        "canonical, or up_gate for gate and up in one buffer",
        target ? "receive into a canonical buffer and repack, or plan the permuted layout"
               : "send from a canonical buffer");
    return false;
  }

  /// One tensor, or gate and up of one module; of those that the buffer's name speaks of.
  bool judge_module() {
    const BaseBox& first = boxes_.front();
    const auto module = projection_of(tensor(first).name);
    const std::vector<std::string_view> named = projections_named(base_.name);
    for (const BaseBox& box : boxes_) {
      const auto other = projection_of(tensor(box).name);
      if (other && !named.empty() &&
          std::find(named.begin(), named.end(), other->projection) == named.end()) {
        add(box, "projection", fmt::format("{} holds {}", base_on(), name(box)),
            fmt::format("{}, as its name says", fmt::join(named, " and ")));
        return false;
      }
      if (box.tensor == first.tensor) continue;
      const bool pair = module && other && module->module == other->module &&
                        module->projection != "down_proj" && other->projection != "down_proj";
      if (pair) continue;
      add(box, "module", fmt::format("{} holds {} and {}", base_on(), name(first), name(box)),
          "one tensor, or gate and up of one module");
      return false;
    }
    return true;
  }

  void judge_dtype() {
    std::set<std::uint32_t> judged;
    for (const BaseBox& box : boxes_) {
      if (!judged.insert(box.tensor).second) continue;
      const Dtype wire = tensor(box).source.dtype, kept = base_.dtype.value_or(wire);
      if (wire == kept) continue;
      if (map_.side == Side::generate && wire == Dtype::bf16 && kept == Dtype::fp8_e4m3) {
        judge_quantisation(box);
        continue;
      }
      add(box, "dtype",
          fmt::format("{} is {}, {} {}", base_on(), to_string(kept), name(box), to_string(wire)),
          map_.side == Side::generate ? "the same dtype, or fp8_e4m3 that receives bf16 (MXFP8)"
                                      : "the same dtype");
    }
  }

  /// BF16 that the receiver quantises: whole blocks along the last dimension, one scale each.
  void judge_quantisation(const BaseBox& box) {
    const std::size_t last = base_.shape.size() - 1;
    const Region& after = entry(box).after;
    if (after.begin[last] % quantisation_block != 0 || after.end[last] % quantisation_block != 0) {
      add(box, "block",
          fmt::format("{}: {} elements of {} in the last dimension, {}", base_on(),
                      after.end[last] - after.begin[last], name(box), to_string(after)),
          fmt::format("multiples of {} to quantise to MXFP8", quantisation_block));
    }
    std::vector<std::int64_t> scales = base_.shape;
    scales[last] /= quantisation_block;
    const bool fits =
        base_.scale && base_.scale->shape == scales && base_.scale->dtype.value_or(Dtype::u8) == Dtype::u8;
    if (fits) return;
    const std::string found = base_.scale
                                  ? fmt::format("scales [{}] of {}", fmt::join(base_.scale->shape, ", "),
                                                to_string(base_.scale->dtype.value_or(Dtype::u8)))
                                  : "no scales";
    add(box, "scale", fmt::format("{} with {}", base_on(), found),
        fmt::format("scales [{}] of u8, one for {} elements", fmt::join(scales, ", "), quantisation_block));
  }

  /// True when the boxes tile the base.
  bool judge_tiling() {
    if (boxes_.size() > max_entries_per_base) {
      add(boxes_.front(), "many", fmt::format("{} entries of {}", boxes_.size(), base_on()),
          fmt::format("at most {}", max_entries_per_base));
      return false;
    }
    const bool apart = judge_overlaps();
    std::int64_t volume = 0;
    for (const BaseBox& box : boxes_) volume += entry(box).after.volume();
    if (apart && volume == whole(base_.shape).volume()) return true;
    judge_gaps();
    return false;
  }

  bool judge_overlaps() {
    std::vector<const BaseBox*> sorted;
    for (const BaseBox& box : boxes_) {
      if (!entry(box).after.empty()) sorted.push_back(&box);
    }
    std::stable_sort(sorted.begin(), sorted.end(), [&](const BaseBox* a, const BaseBox* b) {
      return entry(*a).after.begin[0] < entry(*b).after.begin[0];
    });
    bool apart = true;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const Region& box = entry(*sorted[i]).after;
      for (std::size_t k = i + 1; k < sorted.size() && entry(*sorted[k]).after.begin[0] < box.end[0]; ++k) {
        const Region common = intersect(box, entry(*sorted[k]).after);
        if (common.empty()) continue;
        apart = false;
        add(*sorted[k], "overlap",
            fmt::format("{}: element {} is {} twice, by {} and by {} ({})", base_on(), element_text(common),
                        map_.side == Side::generate ? "written" : "read", name(*sorted[i]), name(*sorted[k]),
                        to_string(common)),
            "each element once");
      }
    }
    return apart;
  }

  void judge_gaps() {
    std::vector<Region> open{whole(base_.shape)};
    for (const BaseBox& box : boxes_) {
      std::vector<Region> rest;
      for (const Region& part : open) {
        for (const Region& piece : subtract(part, entry(box).after)) rest.push_back(piece);
      }
      open = std::move(rest);
    }
    std::erase_if(open, [](const Region& part) { return part.empty(); });
    if (open.empty()) return;
    const Region gap = *std::min_element(open.begin(), open.end());
    const bool target = map_.side == Side::generate;
    const std::string_view never =
        target ? "never written; it would keep the previous version" : "never sent";
    const BaseBox& first = boxes_.front();
    if (target && is_expert(tensor(first).name) && is_slots(gap)) {
      std::vector<std::int64_t> slots(to_size(gap.end[0] - gap.begin[0]));
      std::iota(slots.begin(), slots.end(), gap.begin[0]);
      add(first, "gap",
          fmt::format("{}: slot{} {} of rank {} {} never written; {} would keep the previous version",
                      base_on(), slots.size() == 1 ? "" : "s", ranks_text(slots), map_.rank,
                      slots.size() == 1 ? "is" : "are", slots.size() == 1 ? "it" : "they"),
          "an entry for each slot, copies of experts included");
      return;
    }
    add(first, "gap",
        fmt::format("{}: element {} ({}) is {}", base_on(), element_text(gap), to_string(gap), never),
        fmt::format("entries that cover {}", to_string(whole(base_.shape))));
  }

  /// Whole leading indices of a buffer of experts.
  bool is_slots(const Region& gap) const {
    if (gap.dimensions < 3) return false;
    for (std::size_t d = 1; d < gap.dimensions; ++d) {
      if (gap.begin[d] != 0 || gap.end[d] != base_.shape[d]) return false;
    }
    return true;
  }

  /// The first element of each box where it belongs; of halves that are exchanged, the first one.
  void judge_order() {
    const BaseBox* exchanged = nullptr;
    for (const BaseBox& box : boxes_) {
      const auto misplaced = find_misplaced(box);
      if (!misplaced) continue;
      if (!misplaced->exchanged) {
        report_element(box, *misplaced);
        return;
      }
      if (exchanged == nullptr || entry(box).after < entry(*exchanged).after) exchanged = &box;
    }
    if (exchanged != nullptr) report_exchange(*exchanged);
  }

  struct Misplaced {
    std::size_t dimension;
    std::int64_t too_low;  // elements from where it is to where it belongs
    bool exchanged;        // it is in the other half
  };

  /// Rows belong by half, everything else as in the region. The leading dimension of experts is free, as
  /// engines place them in slots of their choice.
  std::optional<Misplaced> find_misplaced(const BaseBox& box) const {
    const Region &before = entry(box).before, &after = entry(box).after;
    if (before.empty()) return std::nullopt;
    const std::optional<std::int64_t> halves = half(box);
    const bool experts = is_expert(tensor(box).name) && before.dimensions > 2;
    for (std::size_t d = experts ? 1U : 0U; d < before.dimensions; ++d) {
      const int of_base = static_cast<int>(d) + offset(box);
      if (of_base < 0) continue;
      const bool rows = halves && d == row_dimension(box);
      const std::int64_t shift = rows && is_second(box) ? *halves : 0;
      const std::int64_t place = before.begin[d] - box.region.begin[d] + shift;
      const std::int64_t written = after.begin[to_size(of_base)];
      if (written != place)
        return Misplaced{d, place - written, rows && (written < *halves) == is_second(box)};
    }
    return std::nullopt;
  }

  bool is_second(const BaseBox& box) const {
    const bool up = projection_of(tensor(box).name)->projection == "up_proj";
    return up == (base_.storage != "up_gate");
  }

  void report_exchange(const BaseBox& box) {
    const std::string found(is_up(box) ? "up" : "gate"), expected(is_up(box) ? "gate" : "up");
    const std::string at = element_text(entry(box).before);
    add(box, "halves",
        fmt::format("{}: element {}: expected {} {}, found {} {}; the two halves are exchanged", base_on(),
                    element_text(entry(box).after), expected, at, found, at),
        base_.storage == "up_gate" ? "[up; gate], as the storage up_gate says"
                                   : "[gate; up], or the storage up_gate");
  }
  bool is_up(const BaseBox& box) const { return projection_of(tensor(box).name)->projection == "up_proj"; }

  void report_element(const BaseBox& box, const Misplaced& misplaced) {
    Region expected = entry(box).before;
    expected.begin[misplaced.dimension] -= misplaced.too_low;
    add(box, "element",
        fmt::format("{}: element {}: expected {} of {}, found {}", base_on(), element_text(entry(box).after),
                    element_text(expected), name(box), element_text(entry(box).before)),
        "the elements of a tensor in their order");
  }

  Judged& judged_;
  const LocalMap& map_;
  const LocalBase& base_;
  const std::vector<BaseBox>& boxes_;
};

}  // namespace

void judge_base(Judged& judged, const LocalMap& map, const LocalBase& base,
                const std::vector<BaseBox>& boxes) {
  if (!boxes.empty()) BaseJudge(judged, map, base, boxes).judge();
}

}  // namespace isthmus::refit_info

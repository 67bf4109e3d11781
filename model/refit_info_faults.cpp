#include "model/refit_info_faults.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "model/inventory.hpp"
#include "model/refit_info_judge.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace refit_info {
namespace {

constexpr std::string_view weight = ".weight";

std::string counted(const std::string& text, std::size_t count) {
  return count == 1 ? text : fmt::format("{} (and {} more like it)", text, count - 1);
}

bool is_number(std::string_view part) {
  return !part.empty() && part.size() <= 9 && part.find_first_not_of("0123456789") == std::string_view::npos;
}

/// By the published rule on exported names alone.
bool has_bulk_name(std::string_view name) {
  return role_of(name, std::numeric_limits<int>::max()) == Role::bulk;
}

}  // namespace

void FaultList::add(const std::string& group, InputFault fault) {
  const auto [known, added] = groups_.emplace(group, faults_.size());
  if (!added) {
    ++counts_[known->second];
    return;
  }
  faults_.push_back(std::move(fault));
  counts_.push_back(1);
}

std::vector<InputFault> FaultList::take() {
  for (std::size_t i = 0; i < faults_.size(); ++i) faults_[i].found = counted(faults_[i].found, counts_[i]);
  return std::move(faults_);
}

void NoteList::add(const std::string& group, std::string text) {
  const auto [known, added] = groups_.emplace(group, texts_.size());
  if (!added) {
    ++counts_[known->second];
    return;
  }
  texts_.push_back(std::move(text));
  counts_.push_back(1);
}

std::vector<std::string> NoteList::take() {
  for (std::size_t i = 0; i < texts_.size(); ++i) texts_[i] = counted(texts_[i], counts_[i]);
  return std::move(texts_);
}

std::optional<Region> Holders::region(const Layout& layout, Rank rank) const {
  const auto found = std::lower_bound(positions.begin(), positions.end(), std::pair(rank, std::uint32_t{0}));
  if (found == positions.end() || found->first != rank) return std::nullopt;
  return layout.region(found->second);
}

Rank Judged::group_rank(Side side, std::int64_t rank) const {
  const std::int64_t n = info.stage_ranks();
  return {static_cast<std::uint32_t>(side == Side::train ? rank % n : n + rank)};
}

std::optional<ProjectionName> projection_of(std::string_view name) {
  if (!name.ends_with(weight)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - weight.size());
  for (const std::string_view projection : {"gate_proj", "up_proj", "down_proj"}) {
    if (stem.ends_with(projection))
      return ProjectionName{stem.substr(0, stem.size() - projection.size()), projection};
  }
  return std::nullopt;
}

std::optional<std::int64_t> layer_of(std::string_view name) {
  std::optional<std::int64_t> layer;
  std::string_view previous;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (previous == "layers" && is_number(part)) {
      layer = 0;
      for (const char c : part) layer = *layer * 10 + (c - '0');
    }
    previous = part;
    begin = end + 1;
  }
  return layer;
}

bool is_expert(std::string_view name) { return name.find(".experts.") != std::string_view::npos; }

std::string element_text(const Region& box) {
  std::string text = "(";
  for (std::size_t d = 0; d < box.dimensions; ++d)
    text += fmt::format("{}{}", d == 0 ? "" : ",", box.begin[d]);
  return text + ")";
}

std::string rank_text(Side side, std::int64_t rank) {
  return fmt::format("{} rank {}", to_string(side), rank);
}

std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t most_runs = 6;
  std::string text;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < ranks.size(); ++runs) {
    if (runs == most_runs) return text + fmt::format(" and {} more", ranks.size() - i);
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += fmt::format("{}{}", runs == 0 ? "" : ", ", ranks[i]);
    if (last > i) text += fmt::format(" to {}", ranks[last]);
    i = last + 1;
  }
  return text;
}

void judge_names(Judged& judged) {
  const RefitInfo& info = judged.info;
  for (std::uint32_t i = 0; i < info.misc.size(); ++i) {
    const MiscTensor& tensor = info.misc[i];
    if (!judged.misc_of_name.emplace(tensor.name, i).second) {
      judged.faults.add("misc twice",
                        {tensor.where, fmt::format("'{}' a second time", printable(tensor.name)),
                         "each name once", "leave one out"});
    }
    if (judged.tensor_of_name.contains(tensor.name)) {
      judged.faults.add(
          "both paths",
          {tensor.where, fmt::format("'{}', which is a bulk tensor too", printable(tensor.name)),
           "each tensor on one path", "leave it out of misc_meta"});
    }
    if (has_bulk_name(tensor.name)) {
      judged.notes.add("misc named as bulk",
                       fmt::format("misc tensor {} has a name of the bulk path", printable(tensor.name)));
    }
  }
  for (const BulkTensor& tensor : info.tensors) {
    if (has_bulk_name(tensor.name)) continue;
    judged.notes.add("bulk named as misc",
                     fmt::format("bulk tensor {} has a name that NeMo RL's rule sends by "
                                 "the misc path",
                                 printable(tensor.name)));
  }
}

}  // namespace refit_info

RefitInfoProof prove(const RefitInfo& info) {
  refit_info::Judged judged{info, {}, {}, {}, {}, true, {}, {}};
  judge_sizes(judged);
  judge_tensor_layouts(judged);
  judge_stages(judged);
  judge_names(judged);
  if (info.local.maps.empty()) {
    judged.notes.add("no maps",
                     "no local maps are given (--local-maps): what the ranks do with their regions, and the "
                     "order of the misc tensors, are not judged");
  } else if (judged.sizes_sound) {
    judge_misc_orders(judged);
    judge_local_maps(judged);
  }
  RefitInfoProof proof{judged.faults.take(), info.notes};
  for (std::string& note : judged.notes.take()) proof.notes.push_back(std::move(note));
  return proof;
}

}  // namespace isthmus

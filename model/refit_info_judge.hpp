#pragma once
// Internal to the proof of refit descriptions: what its parts share. The description is judged first; only
// tensors whose layouts are sound take part in what is said about local maps, so that one mistake is not
// reported again by rules that follow from it.
// Invariant: equal groups of FaultList are reported once, in the order in which they were met first.

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/refit_info_faults.hpp"

namespace isthmus::refit_info {

/// Faults, of which those of one group are alike: the first stands for all, with their number.
class FaultList {
 public:
  void add(const std::string& group, InputFault fault);
  std::vector<InputFault> take();

 private:
  std::vector<InputFault> faults_;
  std::vector<std::size_t> counts_;
  std::map<std::string, std::size_t> groups_;
};

/// Notes, of which those of one group are counted in the same way.
class NoteList {
 public:
  void add(const std::string& group, std::string text);
  std::vector<std::string> take();

 private:
  std::vector<std::string> texts_;
  std::vector<std::size_t> counts_;
  std::map<std::string, std::size_t> groups_;
};

/// Where the ranks of one layout stand in its mesh.
struct Holders {
  std::vector<std::pair<Rank, std::uint32_t>> positions;  // sorted by rank
  bool sound = false;                                     // the layout is one, and its ranks are the side's
  /// nullopt for a rank outside the mesh.
  std::optional<Region> region(const Layout& layout, Rank rank) const;
};

struct Judged {
  const RefitInfo& info;
  std::unordered_map<std::string_view, std::uint32_t> tensor_of_name, misc_of_name;
  std::vector<Holders> sources, targets;  // per tensor
  bool sizes_sound = true;                // stages divide the training ranks, tp the generation ranks
  FaultList faults;
  NoteList notes;

  const Holders& holders(Side side, std::size_t tensor) const {
    return (side == Side::train ? sources : targets)[tensor];
  }
  const Layout& layout(Side side, std::size_t tensor) const {
    return side == Side::train ? info.tensors[tensor].source : info.tensors[tensor].target;
  }
  std::int64_t side_ranks(Side side) const {
    return side == Side::train ? info.train_ranks : info.generate_ranks;
  }
  /// Stage of a bulk tensor; 0 where there is but one.
  std::int64_t stage(std::size_t tensor) const { return info.tensors[tensor].stage.value_or(0); }
  /// Rank in the group of a stage.
  Rank group_rank(Side side, std::int64_t rank) const;
};

/// Projection of a feed-forward tensor by its name: what stands before it, and which of the three it is.
struct ProjectionName {
  std::string_view module, projection;  // "model.layers.0.mlp.", "up_proj"
};
std::optional<ProjectionName> projection_of(std::string_view name);
/// The number behind the last dotted part `layers` of a name.
std::optional<std::int64_t> layer_of(std::string_view name);
bool is_expert(std::string_view name);

/// "(4, 0, 0)"
std::string element_text(const Region& box);
/// "generation rank 3"
std::string rank_text(Side side, std::int64_t rank);
/// "0 to 5, 8 and 3 more"; requires sorted ranks.
std::string ranks_text(const std::vector<std::int64_t>& ranks);

// The parts of the proof, in order.
void judge_sizes(Judged& judged);
void judge_tensor_layouts(Judged& judged);
void judge_stages(Judged& judged);
void judge_names(Judged& judged);
void judge_misc_orders(Judged& judged);
void judge_local_maps(Judged& judged);

/// One map by itself; returns the tensors that have an entry, sorted.
std::vector<std::uint32_t> judge_local_map(Judged& judged, const LocalMap& map);

/// One box of a base, with what it holds: the input of judge_base.
struct BaseBox {
  std::size_t entry = 0;
  std::uint32_t tensor = 0;
  Region region;  // of the tensor on this rank
};
/// Tiling, order of the halves, memory and storage of one live buffer.
void judge_base(Judged& judged, const LocalMap& map, const LocalBase& base,
                const std::vector<BaseBox>& boxes);

/// Experts in the slots of all buffers of a map.
void judge_expert_slots(Judged& judged, const LocalMap& map,
                        const std::vector<std::vector<BaseBox>>& boxes_of_base);

}  // namespace isthmus::refit_info

#pragma once
// What has to move when the membership changes, at the version of the weights that is there: every rank of
// the new membership holds its shards in the end. What a host that stays already holds of a new shard stays
// where it is; only the rest moves, from holders that stay. The result is a refit of bare tensors, each a box
// of one tensor of the model, which any policy plans and the checker proves; catch_up_faults proves that
// these boxes and what is held make up the new shards.
// Whole replicas that join get whole tensors, from layout to layout; the rest goes box by box.
// Invariant: needed = kept + moved, and no rank gets an element that it holds.

#include <cstdint>
#include <string>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

/// Whose copies are taken first: of ranks on the same side as who needs them, or on the other. Where these
/// do not hold all of it, the others serve as well.
enum class CatchUpFrom : std::uint8_t { own_side, other_side };
std::string_view to_string(CatchUpFrom from);

/// What tensor k of the catch-up's refit is.
struct CatchUpPart {
  std::uint32_t tensor = 0;  // of the model
  Region box;                // of it
  bool train = false;        // the side that needs it
  bool from_train = false;   // the side that sends it
};

struct CatchUp {
  // Ranks: those of the new membership, then GPUs that stay without a rank and hold something.
  Refit refit;
  std::vector<CatchUpPart> parts;
  Bytes needed, kept, moved;  // of all shards of the new membership
  std::string refused;        // why it cannot be done; empty where it can

  bool nothing_moves() const { return refit.tensors.empty(); }
};

/// `before` and `after`: one model on one fabric (model/membership.hpp). `lost`: hosts whose copies are gone.
CatchUp catch_up(const Refit& before, const Refit& after, const std::vector<int>& lost, CatchUpFrom from);

/// Every rank and tensor for which it is not true that held parts and boxes tile the new shard, and every
/// sender that does not hold what it sends; one sentence each. Shares no code with catch_up.
std::vector<std::string> catch_up_faults(const Refit& before, const Refit& after,
                                         const std::vector<int>& lost, const CatchUp& catch_up);

}  // namespace isthmus

#pragma once
// The frame that NeMo RL's transports share: tensors in transfer order, each in groups of its own, pipeline
// stage i on stream i mod Q with Q = max(1, min(`refit.streams`, stages)). A stream takes one group at a
// time, so tensors of one stage follow each other, and at most Q stages are in flight.
// Its hybrid refit treats only bulk tensors so. Misc tensors follow as packed broadcasts on lanes of their
// own, once both sides have waited for their devices. That wait is a chain of one-element copies on each rank
// of the last bulk tensor: on every stream, then on every buffer's lane.
// Source: NeMo RL 7ea279ab, reshard refit.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

/// `build` is asked once per geometry and, where a tensor's sides share ranks, per distance of its bases.
using BuildPattern = std::function<Pattern(const Geometry&, const RefitEntry&)>;
/// All tensors on the streams.
Plan plan_on_stage_streams(std::string policy, const Refit& refit, const BuildPattern& build);
/// Bulk tensors on the streams, then the others in packets. Bare tensors: as above.
Plan plan_hybrid(std::string policy, const Refit& refit, const BuildPattern& build);
/// Appends the wait for the device: copies of one element, one after the other on lanes 0 to `lanes` - 1, on
/// each rank that holds a part of the tensor, after all steps of the pattern that it takes part in.
void wait_on_lanes(const Geometry& geometry, std::uint16_t lanes, Pattern& pattern);

/// Gives the operations of one phase their groups: as few as possible, none with more operations of one rank
/// than are safe.
class SafeGroups {
 public:
  explicit SafeGroups(std::uint32_t first) : first_(first), end_(first) {}
  /// The group of an operation between two global ranks, or on one rank.
  std::uint32_t place(std::uint32_t a, std::uint32_t b);
  /// One past the last group in use.
  std::uint32_t end() const { return end_; }

 private:
  struct Filled {
    std::uint32_t group = 0, operations = 0;
  };
  std::uint32_t first_ = 0, end_ = 0;
  std::vector<Filled> last_;  // by rank
};

/// A box of a message or copy in pieces whose sizes fit into 32 bits, cut along the outermost dimensions.
std::vector<Region> message_pieces(const Layout& layout, const Region& box);
/// The same in place of what `pieces` holds.
void find_message_pieces(const Layout& layout, const Region& box, std::vector<Region>& pieces);

}  // namespace isthmus

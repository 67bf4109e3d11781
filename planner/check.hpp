#pragma once
// The proof. check() takes a refit (layouts) and any plan and decides by exact box arithmetic:
//   coverage   every element of every target shard is written exactly once, and nothing outside a shard
//   ownership  each step reads only what its rank holds at that moment: its source shard, or what steps named
//              in `after` (directly or through others) have brought to it
//   order      no cycle of waits through lanes, groups and dependencies
//   buffers    staging fits into the buffer that an instance names, and no instance overwrites in it what an
//              earlier one still needs
//   limits     operations per group and rank (many thousands hang NCCL), puts in flight where the executor
//              counts them, bytes of one message and one buffer, ranks and indices in range
//   ranks      communicators that all ranks of their parent make, and that have all ranks of a step
//   install    tensors that an engine has to load or process are, after their last write
//   dtypes     what sources quantise travels quantised, in whole groups, from ranks that hold these in BF16
// It shares nothing with the policies but the value types of model/ and planner/plan.hpp.
// Equal (pattern, geometry, relative bases) are proven once; an instance adds only its binding.
// A plan is proven when no violation is found. Each violation names a tensor, an element, the steps involved.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

enum class Fault : std::uint8_t {
  malformed,         // an index, rank or region that does not exist
  tensor_missing,    // a tensor of the refit that no instance carries
  tensor_repeated,   // a tensor that two instances carry
  never_written,     // a target element that no step writes
  written_twice,     // a target element that two steps write
  outside_target,    // a write to elements that the rank's target shard does not have
  not_held,          // a read of elements that the rank does not hold at that moment
  wait_cycle,        // ranks that wait for each other
  group_too_large,   // more operations in one group of one rank than the executor allows
  too_many_bytes,    // a message or a buffer of a size that the executor cannot count
  not_aligned,       // staging that does not begin at a whole element
  buffer_too_small,  // staging that does not fit where it is said to lie
  overwritten,       // staging that another instance overwrites before its last use
  out_of_reach,      // a put into another NVLink domain
  wrong_version,     // an instance that moves another refit's weights
  other_refit,       // a plan that was made for other tensors, layouts or ranks (planner/plan_identity.hpp)
  not_installed,     // a tensor that the engine has to load or process, and does not
  too_many_puts,     // more puts between two ranks in flight than the executor allows
  never_made,        // a communicator that some rank of its parent does not help to make
  not_connected,     // a step whose ranks have no communicator in common
  wrong_dtype,       // a tensor that does not travel in its dtype: BF16 in place of MXFP8, or quantised twice
  group_cut,         // a scale, or a part of its group, from a rank that does not hold all of the group
};
std::string_view to_string(Fault fault);

struct Violation {
  Fault fault = Fault::malformed;
  TensorId tensor;
  std::vector<std::int64_t> element;  // global indices; empty where no single element is at fault
  std::vector<std::uint32_t> steps;   // step indices within the tensor's pattern
  std::string message;                // what (tensor, step, rank) - what was found - what is allowed
};

struct Limits {
  std::size_t operations_per_group = safe_group_size;
  Bytes largest_size{0xFFFFFFFF};         // of a message or a buffer: sizes of 2^32 are known to hang
  std::size_t most_violations = 20;       // further ones are counted, not listed
  std::size_t puts_in_flight = no_limit;  // from one rank to another; NCCL's proxy loses puts beyond 256

  static constexpr std::size_t no_limit = ~std::size_t{0};
};

struct Proof {
  std::vector<Violation> violations;
  std::size_t violation_count = 0;
  std::size_t steps_checked = 0;          // steps of all instances
  std::size_t patterns_proven = 0;        // distinct (pattern, geometry, relative bases)
  Bytes target_bytes;                     // bytes of all target shards
  bool full_tensor_materialised = false;  // some rank stages a whole sharded tensor
  bool proven() const { return violation_count == 0; }
};

[[nodiscard]] Proof check(const Refit& refit, const Plan& plan, const Limits& limits = {});

}  // namespace isthmus

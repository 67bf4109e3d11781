#pragma once
// Random small refits of bare tensors: 1-3 tensors (some share a geometry, at other ranks), 1-4 dimensions,
// 1-3 mesh axes per side, several axes on one dimension, uneven and empty shards, overlapping meshes,
// shuffled ranks, 1-16 ranks per side, shards in common live buffers. Prints as YAML that can be
// pasted into scenarios/, and shrinks towards one rank and one element.

#include <cstdint>
#include <iosfwd>
#include <vector>

#include <rapidcheck.h>

#include "model/refit.hpp"

namespace isthmus::test {

struct RefitCase {
  std::vector<TensorSpec> tensors;  // ranks are global
  std::size_t ranks = 0;
};
void showValue(const RefitCase& refit_case, std::ostream& stream);  // found by RapidCheck under this name

/// The refit of bare tensors, with ranks on GPUs of the same number.
Refit make_refit(const RefitCase& refit_case);

rc::Gen<RefitCase> refit_cases();
/// The same from a seed, for tests that count.
RefitCase sample_case(std::uint64_t seed);
/// The first tensor of such a case, three or four times: instances that follow each other on all its ranks.
RefitCase repeated_case(std::uint64_t seed);

/// What a case exercises, for coverage.
struct CaseTraits {
  bool two_sharded_axes = false;  // some layout shards over two axes of more than one rank
  bool uneven = false;            // some layout has shards of different volumes
  bool empty_shard = false;
  bool overlapping = false;  // some tensor has a rank on both sides
  bool shuffled = false;     // some mesh's ranks do not ascend
  bool shared_geometry = false;
  bool strided_view = false;  // some shard stands in a larger buffer in several pieces
};
CaseTraits traits_of(const RefitCase& refit_case);

}  // namespace isthmus::test

#pragma once
// Bytes that must cross into or out of each GPU, NVLink domain and set of sources: one pass over the classes
// (planner/byte_classes.hpp). A byte counts once per set, however many of its GPUs need or hold it, and not
// at all where a GPU on the needing side holds it.
// Invariant: every figure is in(S) = sum of w over classes with no holder in S and a receiver in S, for the
// set S or its complement; those over NVLink count only classes that one domain alone holds.

#include <vector>

#include "planner/byte_classes.hpp"

namespace isthmus {

struct Crossings {
  std::vector<Bytes> gpu_in, gpu_out;
  std::vector<Bytes> gpu_in_nvlink, gpu_out_nvlink;  // between GPUs of the domain that alone holds them
  std::vector<Bytes> gpu_holds;                      // needed elsewhere; other GPUs may hold them too
  std::vector<Bytes> domain_in, domain_out;
  std::vector<Bytes> stage_out;  // out of all domains that hold a part of the stage
  Bytes source_out;              // out of all domains that hold anything
  std::vector<std::vector<char>> stage_domains;
  std::vector<std::vector<std::uint32_t>> stage_gpus;  // that hold a part of it, ascending
  std::vector<char> source_domains;
};

Crossings count_crossings(const Refit& refit, const ByteClasses& classes);

/// in(S) of the GPUs that are marked.
Bytes bytes_into(const ByteClasses& classes, const std::vector<char>& inside);

}  // namespace isthmus

#pragma once
// Recorded plans of NCCL M2N: one tensor under one mode, with what its own planning code made of it. Read
// from files outside the repository; the boxes, ranks and bytes are theirs. The refit has a fabric whose
// NVLink domains hold as many ranks as the record says (ranks may share a GPU: plans do not care).
// Invariant: nothing here calls the rules that the records judge.

#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "model/m2n_rules.hpp"
#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus::test {

/// Phase, sender, receiver and box, in communicator ranks.
using M2nMove = std::tuple<std::string, std::int64_t, std::int64_t, Region>;

struct M2nLeader {
  std::string fed_by;
  std::set<std::int64_t> source_ranks, followers;
  std::int64_t chain_next = -1;
  friend bool operator==(const M2nLeader&, const M2nLeader&) = default;
};

/// What a plan does, and what a record says that it does.
struct M2nPicture {
  std::set<M2nMove> moves;
  std::map<M2nMove, std::int64_t> runs;  // of inject moves: contiguous runs at the sender
  std::map<std::int64_t, std::array<std::int64_t, 2>> received;  // by rank: bytes over network, NVLink
  std::map<std::int64_t, std::int64_t>
      sent;  // bytes of inject and chain, of all sources and of targets that forward
  std::map<std::int64_t, M2nLeader> leaders;
  std::set<std::int64_t> idle_sources;
  std::int64_t network_bytes = 0, nvlink_bytes = 0;
  double network_copies = 0;
};

struct M2nOracle {
  std::string name, verdict, balance_effective;
  M2nChoice choice;
  TensorSpec tensor;
  std::int64_t ranks = 0, domain_size = 1, anchor = 0;
  M2nPicture picture;  // empty unless accepted
};

std::vector<std::filesystem::path> m2n_oracle_files();
M2nOracle read_m2n_oracle(const std::filesystem::path& file);

/// Bare tensors with rank r in domain r / domain_size.
Refit m2n_refit(const TensorSpec& tensor, std::int64_t ranks, std::int64_t domain_size, const M2nSpec& spec);

/// The picture of a plan of one tensor: slices of one overlap count together, once they are complete.
M2nPicture picture_of(const Refit& refit, const Plan& plan, const M2nOracle& record);

}  // namespace isthmus::test

// m2n_notes() of m2n_limits.hpp: what NCCL M2N would do worse than it could, or needs a setting for.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "model/m2n_limits.hpp"
#include "model/text.hpp"

namespace isthmus {
namespace {

constexpr Bytes default_bucket{std::int64_t{2} << 30};

std::string and_more(std::size_t tensors) {
  return tensors == 1 ? "" : fmt::format(" (and {} more tensors)", tensors - 1);
}

/// A boundary of M2N's target domains that the fabric does not have.
struct Phantom {
  std::uint32_t rank = 0, communicator_rank = 0;
  std::size_t copies = 0, domains = 0;
};

/// M2N takes blocks of G communicator ranks for NVLink domains, counted from rank 0: sources first, then
/// targets. G is the largest number of ranks that really share one.
std::optional<Phantom> phantom_of(const Refit& refit, const RefitEntry& entry) {
  const Geometry& geometry = refit.geometries[entry.geometry];
  const auto domain = [&](Rank base, Rank local) {
    return refit.fabric.domain_of(refit.gpu({base.value + local.value}));
  };
  std::map<DomainId, std::size_t> ranks_in;
  for (const Rank rank : geometry.source.mesh.ranks) ++ranks_in[domain(entry.source_base, rank)];
  for (const Rank rank : geometry.target.mesh.ranks) ++ranks_in[domain(entry.target_base, rank)];
  std::size_t block = 1;
  for (const auto& [id, count] : ranks_in) block = std::max(block, count);
  const std::size_t start = geometry.source.mesh.size();
  const std::vector<Rank>& targets = geometry.target.mesh.ranks;
  std::optional<Phantom> first;
  std::set<DomainId> domains;
  std::set<std::size_t> blocks;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const DomainId at = domain(entry.target_base, targets[i]);
    domains.insert(at);
    blocks.insert((start + i) / block);
    const bool boundary = i > 0 && (start + i) % block == 0;
    if (first || !boundary || domain(entry.target_base, targets[i - 1]) != at) continue;
    first = Phantom{entry.target_base.value + targets[i].value, static_cast<std::uint32_t>(start + i)};
  }
  if (!first || blocks.size() <= domains.size()) return std::nullopt;
  first->copies = blocks.size();
  first->domains = domains.size();
  return first;
}

void note_buckets(const Refit& refit, std::vector<std::string>& notes) {
  std::string first;
  std::size_t tensors = 0;
  for (const RefitEntry& entry : refit.tensors) {
    if (entry.tensor.role != Role::bulk) continue;
    const Geometry& geometry = refit.geometries[entry.geometry];
    const Bytes largest = std::max(geometry.source.bytes(geometry.source.region(0)),
                                   geometry.target.bytes(geometry.target.region(0)));
    if (largest <= default_bucket || tensors++ > 0) continue;
    first =
        fmt::format("tensor {} has a shard of {:.2f} GB", printable(entry.tensor.name), gigabytes(largest));
  }
  if (tensors == 0) return;
  notes.push_back(fmt::format("{}{}, more than M2N's largest staging bucket by default (2 GiB): raise it",
                              first, and_more(tensors)));
}

void note_domains(const Refit& refit, std::vector<std::string>& notes) {
  std::map<std::tuple<std::uint32_t, Rank, Rank>, std::optional<Phantom>> judged;
  std::optional<Phantom> first;
  std::string first_tensor;
  std::size_t tensors = 0;
  for (const RefitEntry& entry : refit.tensors) {
    if (entry.tensor.role != Role::bulk) continue;
    const auto [known, is_new] = judged.try_emplace({entry.geometry, entry.source_base, entry.target_base});
    if (is_new) known->second = phantom_of(refit, entry);
    if (!known->second || tensors++ > 0) continue;
    first = known->second;
    first_tensor = printable(entry.tensor.name);
  }
  if (!first) return;
  notes.push_back(fmt::format(
      "tensor {}{}: target domain boundary at rank {} (communicator rank {}) is not one of the fabric's; {} "
      "network copies instead of {}, unless M2N splits its communicator",
      first_tensor, and_more(tensors), first->rank, first->communicator_rank, first->copies, first->domains));
}

}  // namespace

std::vector<std::string> m2n_notes(const Refit& refit) {
  std::vector<std::string> notes;
  note_buckets(refit, notes);
  note_domains(refit, notes);
  return notes;
}

}  // namespace isthmus

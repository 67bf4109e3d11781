#pragma once
// What can enter a set of GPUs S: sets of links that every transfer from outside S to a GPU in S crosses at
// least one of, and what those links carry together. Known sets, of which the narrowest counts:
//   the entries of S's GPUs; the exits of the GPUs outside; around a domain D that S splits, the entries of
//   S \ D with the exits outside of what is not D (the one NIC cut of Hall's kind that helps); and where S is
//   what stands behind a part of the network, the cables into that part.
// To each belongs the NVLink of every domain that S splits: the ports into S there, or out of the rest.
// Rules used: a transfer inside a domain leaves and arrives through NVLink ports; any other enters through
// its target's own NIC (or host port) and leaves through its sender's, or after NVLink a neighbour's (PXN).

#include <optional>
#include <span>
#include <vector>

#include "model/refit.hpp"
#include "planner/network_parts.hpp"

namespace isthmus {

struct Passage {
  Bandwidth capacity;         // nominal, of all links together
  std::vector<LinkId> links;  // ascending
};

class Passages {
 public:
  explicit Passages(const Refit& refit);

  /// Into the GPUs that are marked. `cables`: links that bring to them whatever comes through the network.
  Passage into(const std::vector<char>& inside, const std::vector<LinkId>* cables = nullptr);
  /// Into (out of) one GPU; the same link sets, without those that need a look at all GPUs.
  Passage into_gpu(std::size_t gpu) const { return around(gpu, false); }
  Passage out_of_gpu(std::size_t gpu) const { return around(gpu, true); }
  /// The NVLink port alone: the way of what its domain alone holds.
  Passage nvlink(std::size_t gpu, bool out) const;
  /// An estimate for sets of few GPUs, without looking at the others.
  Bandwidth roughly_out_of(std::span<const std::uint32_t> gpus) const;

  const std::vector<NetworkPart>& parts() const { return parts_; }
  std::size_t domain(std::size_t gpu) const { return domain_[gpu]; }

 private:
  struct Port {
    std::vector<LinkId> exits;
    std::optional<LinkId> nvlink;
    Bandwidth exit_rate, nvlink_rate;
  };
  Passage around(std::size_t gpu, bool out) const;
  Bandwidth add(const std::vector<LinkId>& links, std::vector<LinkId>& list);
  Passage entries(const std::vector<char>& inside, std::size_t except_domain, bool of_inside,
                  bool of_outside);
  void find_shared();
  Bandwidth rate_of_entries(const std::vector<char>& inside, std::size_t except_domain, bool of_inside,
                            bool of_outside);
  void add_nvlink(const std::vector<char>& inside, std::size_t domain, Passage& passage) const;
  Bandwidth rate(LinkId link) const { return refit_.fabric.links()[link.index()].nominal; }

  const Refit& refit_;
  std::vector<char> usable_;
  std::size_t usable_count_ = 0;
  std::vector<Port> in_, out_;              // per GPU
  std::vector<Bandwidth> enters_, leaves_;  // per GPU: exit rates, where it is usable
  bool shared_ = false;                     // some link is the exit of several
  std::vector<std::size_t> domain_;
  std::vector<std::vector<std::uint32_t>> gpus_of_domain_;
  std::vector<Bandwidth> domain_in_, domain_out_;  // NVLink ports of its usable GPUs
  Bandwidth all_entries_;
  std::vector<NetworkPart> parts_;
  std::vector<std::uint32_t> counted_;  // per link: the count that met it last
  std::uint32_t count_ = 0;
};

}  // namespace isthmus

#include "planner/passages.hpp"

#include <algorithm>
#include <utility>

#include "planner/byte_classes.hpp"

namespace isthmus {
namespace {

constexpr std::size_t no_domain = static_cast<std::size_t>(-1);

}  // namespace

Passages::Passages(const Refit& refit)
    : refit_(refit), usable_(taking_part(refit)), counted_(refit.fabric.links().size(), 0) {
  const Fabric& fabric = refit.fabric;
  // With PXN traffic leaves through the NICs of GPUs that take no part themselves.
  if (fabric.topology().routing.pxn) std::fill(usable_.begin(), usable_.end(), 1);
  gpus_of_domain_.resize(fabric.domain_count());
  domain_in_.resize(fabric.domain_count());
  domain_out_.resize(fabric.domain_count());
  for (std::uint32_t g = 0; g < usable_.size(); ++g) {
    const GpuId gpu{g};
    domain_.push_back(fabric.domain_of(gpu).index());
    for (const bool out : {false, true}) {
      Port port{fabric.exit_links(gpu, out), out ? fabric.nvlink_out(gpu) : fabric.nvlink_in(gpu), {}, {}};
      for (const LinkId link : port.exits) port.exit_rate += rate(link);
      if (port.nvlink) port.nvlink_rate = rate(*port.nvlink);
      (out ? out_ : in_).push_back(std::move(port));
    }
    if (usable_[g] == 0) continue;
    ++usable_count_;
    gpus_of_domain_[domain_[g]].push_back(g);
    domain_in_[domain_[g]] += in_[g].nvlink_rate;
    domain_out_[domain_[g]] += out_[g].nvlink_rate;
    all_entries_ += in_[g].exit_rate;
  }
  parts_ = network_parts(fabric);
  find_shared();
}

/// Whether GPUs share a link on their way in or out: then rates do not just add up.
void Passages::find_shared() {
  ++count_;
  for (std::size_t g = 0; g < usable_.size(); ++g) {
    enters_.push_back(usable_[g] == 0 ? Bandwidth{} : in_[g].exit_rate);
    leaves_.push_back(usable_[g] == 0 ? Bandwidth{} : out_[g].exit_rate);
    if (usable_[g] == 0) continue;
    for (const Port* port : {&in_[g], &out_[g]})
      for (const LinkId link : port->exits)
        shared_ |= std::exchange(counted_[link.index()], count_) == count_;
  }
}

Bandwidth Passages::add(const std::vector<LinkId>& links, std::vector<LinkId>& list) {
  Bandwidth sum;
  for (const LinkId link : links) {
    if (std::exchange(counted_[link.index()], count_) == count_) continue;  // GPUs may share a NIC
    sum += rate(link);
    list.push_back(link);
  }
  return sum;
}

/// Entries of the marked GPUs and exits of the others, as far as asked for; both sides without a domain.
Passage Passages::entries(const std::vector<char>& inside, std::size_t except_domain, bool of_inside,
                          bool of_outside) {
  Passage passage;
  ++count_;
  for (std::size_t g = 0; g < usable_.size(); ++g) {
    if (usable_[g] == 0 || domain_[g] == except_domain) continue;
    if (inside[g] != 0 && of_inside) passage.capacity += add(in_[g].exits, passage.links);
    if (inside[g] == 0 && of_outside) passage.capacity += add(out_[g].exits, passage.links);
  }
  return passage;
}

/// The capacity of the same entries and exits.
Bandwidth Passages::rate_of_entries(const std::vector<char>& inside, std::size_t except_domain,
                                    bool of_inside, bool of_outside) {
  if (shared_) return entries(inside, except_domain, of_inside, of_outside).capacity;
  Bandwidth sum;
  for (std::size_t g = 0; g < enters_.size(); ++g) {
    const bool within = inside[g] != 0;
    const bool counts = (within ? of_inside : of_outside) && domain_[g] != except_domain;
    const Bandwidth rate = within ? enters_[g] : leaves_[g];
    sum += counts ? rate : Bandwidth{};
  }
  return sum;
}

void Passages::add_nvlink(const std::vector<char>& inside, std::size_t domain, Passage& passage) const {
  Bandwidth in, out;
  for (const std::uint32_t g : gpus_of_domain_[domain]) {
    inside[g] != 0 ? in += in_[g].nvlink_rate : out += out_[g].nvlink_rate;
  }
  const bool by_entry = in <= out;
  passage.capacity += std::min(in, out);
  for (const std::uint32_t g : gpus_of_domain_[domain]) {
    if ((inside[g] != 0) != by_entry) continue;
    const std::optional<LinkId> link = by_entry ? in_[g].nvlink : out_[g].nvlink;
    if (link) passage.links.push_back(*link);
  }
}

Passage Passages::into(const std::vector<char>& inside, const std::vector<LinkId>* cables) {
  std::vector<std::size_t> split;
  for (std::size_t d = 0; d < gpus_of_domain_.size(); ++d) {
    const auto& gpus = gpus_of_domain_[d];
    const auto marked =
        std::count_if(gpus.begin(), gpus.end(), [&](std::uint32_t g) { return inside[g] != 0; });
    if (marked > 0 && to_size(marked) < gpus.size()) split.push_back(d);
  }
  struct Side {
    std::size_t except_domain;
    bool of_inside, of_outside;
  };
  Side best_side{no_domain, true, false};
  Bandwidth least = rate_of_entries(inside, no_domain, true, false);
  const auto try_side = [&](const Side& side) {
    const Bandwidth rate = rate_of_entries(inside, side.except_domain, side.of_inside, side.of_outside);
    if (rate < least) best_side = side;
    least = std::min(least, rate);
  };
  try_side({no_domain, false, true});
  for (const std::size_t d : split) try_side({d, true, true});
  Passage best = entries(inside, best_side.except_domain, best_side.of_inside, best_side.of_outside);
  if (cables != nullptr) {
    Passage through;
    ++count_;
    through.capacity = add(*cables, through.links);
    // A host may join its GPUs without NVLink and without the network.
    for (std::uint32_t g = 0; g < usable_.size(); ++g) {
      const std::optional<LinkId> nic = refit_.fabric.nic_in(GpuId{g});
      const bool by_nic = in_[g].exits.size() == 1 && nic == in_[g].exits.front();
      if (inside[g] != 0 && usable_[g] != 0 && !by_nic) through.capacity += add(in_[g].exits, through.links);
    }
    if (through.capacity < best.capacity) best = std::move(through);
  }
  for (const std::size_t d : split) add_nvlink(inside, d, best);
  std::sort(best.links.begin(), best.links.end());
  return best;
}

Passage Passages::around(std::size_t gpu, bool out) const {
  const Port& port = (out ? out_ : in_)[gpu];
  const std::size_t home = domain_[gpu];
  Passage passage;
  // Whatever goes through its exit comes from another domain: none, then no way.
  if (gpus_of_domain_[home].size() < usable_count_) passage = {port.exit_rate, port.exits};
  const Bandwidth others =
      out ? domain_in_[home] - in_[gpu].nvlink_rate : domain_out_[home] - out_[gpu].nvlink_rate;
  if (port.nvlink && port.nvlink_rate <= others) {
    passage.capacity += port.nvlink_rate;
    passage.links.push_back(*port.nvlink);
  } else {
    passage.capacity += others;
    for (const std::uint32_t other : gpus_of_domain_[home]) {
      const std::optional<LinkId> link = out ? in_[other].nvlink : out_[other].nvlink;
      if (other != gpu && link) passage.links.push_back(*link);
    }
  }
  std::sort(passage.links.begin(), passage.links.end());
  return passage;
}

Passage Passages::nvlink(std::size_t gpu, bool out) const {
  const Port& port = (out ? out_ : in_)[gpu];
  return port.nvlink ? Passage{port.nvlink_rate, {*port.nvlink}} : Passage{};
}

Bandwidth Passages::roughly_out_of(std::span<const std::uint32_t> gpus) const {
  Bandwidth exits, entries_inside, sum;
  for (std::size_t i = 0; i < gpus.size();) {
    const std::size_t home = domain_[gpus[i]];
    Bandwidth out, in;
    for (; i < gpus.size() && domain_[gpus[i]] == home; ++i) {
      exits += out_[gpus[i]].exit_rate;
      entries_inside += in_[gpus[i]].exit_rate;
      out += out_[gpus[i]].nvlink_rate;
      in += in_[gpus[i]].nvlink_rate;
    }
    sum += std::min(out, domain_in_[home] - in);
  }
  return sum + std::min(exits, all_entries_ - entries_inside);
}

}  // namespace isthmus

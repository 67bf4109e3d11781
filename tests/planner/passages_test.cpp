#include "planner/passages.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/fabric_generator.hpp"
#include "tests/support/sparse_refit.hpp"

namespace isthmus {
namespace {

/// Nobody holds or needs anything: every GPU may relay.
Refit bare_fabric(Fabric fabric) {
  Refit refit = test::sparse_refit({}, Relay::any);
  refit.fabric = std::move(fabric);
  refit.gpu_of_rank.clear();
  return refit;
}

std::int64_t rate(const Fabric& fabric, const std::set<LinkId>& links) {
  std::int64_t sum = 0;
  for (const LinkId link : links) sum += fabric.links()[link.index()].nominal.value;
  return sum;
}

/// Network ports into marked GPUs and out of the others, each once, but for one domain.
std::int64_t network_way(const Fabric& fabric, const std::vector<char>& inside, std::uint32_t except,
                         bool of_inside, bool of_outside) {
  std::set<LinkId> links;
  for (std::uint32_t g = 0; g < inside.size(); ++g) {
    if (fabric.domain_of(GpuId{g}).value == except || !(inside[g] != 0 ? of_inside : of_outside)) continue;
    for (const LinkId link : fabric.exit_links(GpuId{g}, inside[g] == 0)) links.insert(link);
  }
  return rate(fabric, links);
}

/// The least of all ways, and NVLink where a domain is divided.
std::int64_t least_way(const Fabric& fabric, const std::vector<char>& inside) {
  constexpr auto none = std::numeric_limits<std::uint32_t>::max();
  std::int64_t least = std::min(network_way(fabric, inside, none, true, false),
                                network_way(fabric, inside, none, false, true));
  std::int64_t nvlink = 0;
  for (std::uint32_t d = 0; d < fabric.domain_count(); ++d) {
    std::set<LinkId> in, out;
    bool some = false, others = false;
    for (std::uint32_t g = 0; g < inside.size(); ++g) {
      if (fabric.domain_of(GpuId{g}).value != d) continue;
      (inside[g] != 0 ? some : others) = true;
      const auto port = inside[g] != 0 ? fabric.nvlink_in(GpuId{g}) : fabric.nvlink_out(GpuId{g});
      if (port) (inside[g] != 0 ? in : out).insert(*port);
    }
    if (!some || !others) continue;
    least = std::min(least, network_way(fabric, inside, d, true, true));
    nvlink += std::min(rate(fabric, in), rate(fabric, out));
  }
  return least + nvlink;
}

RC_GTEST_PROP(Passages, are_the_least_of_all_ways_in_whether_or_not_gpus_share_links, ()) {
  const Refit refit = bare_fabric(Fabric(*arbitrary_fabric_spec(4)));
  Passages passages(refit);
  std::vector<char> inside(refit.fabric.gpu_count());
  for (char& each : inside) each = *rc::gen::arbitrary<bool>() ? 1 : 0;
  const Passage way = passages.into(inside);
  RC_ASSERT(way.capacity.value == least_way(refit.fabric, inside));
  const std::set<LinkId> links(way.links.begin(), way.links.end());
  RC_ASSERT(links.size() == way.links.size());
  RC_ASSERT(way.capacity.value == rate(refit.fabric, links));
}

}  // namespace
}  // namespace isthmus

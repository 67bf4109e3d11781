#include "sim/kernel_ports.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace isthmus::sim {
namespace {

constexpr std::uint32_t no_port = 0xFFFFFFFF;

}  // namespace

KernelPorts::KernelPorts(const Fabric& fabric, const Calibration& calibration, int ctas, Network& network) {
  const double channel = calibration.channel_bandwidth.value;
  if (ctas == 0 || !std::isfinite(channel)) return;
  rate_ = std::max<std::int64_t>(1, std::llround(ctas * channel));
  port_of_link_.assign(fabric.links().size(), no_port);
  for (const bool out : {true, false}) {
    std::vector<std::uint32_t> owners(port_of_link_.size(), 0);
    for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
      for (const LinkId link : fabric.exit_links({g}, out)) ++owners[link.index()];
    }
    for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
      const std::uint32_t port = network.add_resource(rate_);
      const auto nvlink = out ? fabric.nvlink_out({g}) : fabric.nvlink_in({g});
      if (nvlink) port_of_link_[nvlink->index()] = port;
      const std::vector<LinkId> exits = fabric.exit_links({g}, out);
      const auto own =
          std::find_if(exits.begin(), exits.end(), [&](LinkId link) { return owners[link.index()] == 1; });
      if (own != exits.end()) port_of_link_[own->index()] = port;
    }
  }
}

std::vector<Usage> KernelPorts::asked(const std::vector<Usage>& links) const {
  if (port_of_link_.empty()) return {};
  std::map<std::uint32_t, std::uint32_t> weights;
  for (const Usage& usage : links) {
    const std::uint32_t port = port_of_link_[usage.resource];
    if (port != no_port) weights[port] += usage.weight;
  }
  std::vector<Usage> result;
  for (const auto& [port, weight] : weights) result.push_back({port, weight});
  return result;
}

Int128 KernelPorts::most(const std::vector<Usage>& links) const {
  Int128 rate = std::numeric_limits<std::int64_t>::max();
  for (const Usage& usage : asked(links)) rate = std::min(rate, Int128{rate_} * Usage::one / usage.weight);
  return rate;
}

}  // namespace isthmus::sim

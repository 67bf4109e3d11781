#include "planner/policies/rounds_in_flight.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

#include "planner/policies/port_loads.hpp"

namespace isthmus {
namespace {

constexpr std::uint32_t least_rounds = 64;  // of small refits latencies count more than what drains
constexpr double lost_unevenness = 0.5;
constexpr double least_gain = 0.002;  // for it is an estimate

std::uint32_t count_of(const std::vector<std::uint32_t>& rounds) {
  return rounds.empty() ? 0 : 1 + *std::max_element(rounds.begin(), rounds.end());
}

/// Transfers stretch by stretch.
std::vector<std::uint32_t> in_order(const std::vector<std::uint32_t>& rounds, std::uint32_t stretch,
                                    std::vector<std::uint32_t>& begins) {
  begins.assign(count_of(rounds) / stretch + std::size_t{2}, 0);
  for (const std::uint32_t round : rounds) ++begins[round / stretch + std::size_t{1}];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<std::uint32_t> next = begins, order(rounds.size());
  for (std::uint32_t i = 0; i < rounds.size(); ++i) order[next[rounds[i] / stretch]++] = i;
  return order;
}

}  // namespace

double nvlink_share(const Refit& refit, const Plan& plan) {
  const PortLoads loads = port_loads(refit, plan);
  const Fabric& fabric = refit.fabric;
  Duration network, nvlink;
  const auto take = [&](Duration& longest, std::optional<LinkId> port, Bytes bytes) {
    if (port) longest = std::max(longest, bytes / fabric.links()[port->index()].nominal);
  };
  for (std::uint32_t gpu = 0; gpu < fabric.gpu_count(); ++gpu) {
    take(network, fabric.nic_out(GpuId{gpu}), loads.network_out[gpu]);
    take(network, fabric.nic_in(GpuId{gpu}), loads.network_in[gpu]);
    take(nvlink, fabric.nvlink_out(GpuId{gpu}), loads.nvlink_out[gpu]);
    take(nvlink, fabric.nvlink_in(GpuId{gpu}), loads.nvlink_in[gpu]);
  }
  return network.value == 0 ? 0 : seconds(nvlink) / seconds(network);
}

double unevenness(const std::vector<Transfer>& transfers, const std::vector<std::uint32_t>& rounds,
                  std::uint32_t stretch) {
  std::uint32_t ports = 0;
  for (const Transfer& transfer : transfers)
    ports = std::max({ports, transfer.source + 1, transfer.target + 1});
  std::vector<Bytes> all(std::size_t{2} * ports), here(all);
  std::vector<std::uint32_t> begins;
  const std::vector<std::uint32_t> order = in_order(rounds, stretch, begins);
  Bytes busiest, lockstep;
  for (std::size_t s = 0; s + 1 < begins.size(); ++s) {
    Bytes longest;
    for (std::uint32_t at = begins[s]; at < begins[s + 1]; ++at) {
      const Transfer& transfer = transfers[order[at]];
      for (const std::size_t port : {std::size_t{transfer.source}, std::size_t{ports} + transfer.target}) {
        longest = std::max(longest, here[port] += transfer.bytes);
        busiest = std::max(busiest, all[port] += transfer.bytes);
      }
    }
    for (std::uint32_t at = begins[s]; at < begins[s + 1]; ++at)
      here[transfers[order[at]].source] = here[std::size_t{ports} + transfers[order[at]].target] = Bytes{};
    lockstep += longest;
  }
  return busiest.value == 0 ? 0
                            : static_cast<double>(lockstep.value) / static_cast<double>(busiest.value) - 1;
}

std::uint32_t rounds_in_flight(const Refit& refit, const Plan& plan, const std::vector<Transfer>& transfers,
                               const std::vector<std::uint32_t>& rounds) {
  const std::uint32_t count = count_of(rounds);
  if (count < least_rounds) return many_in_flight;
  const double drained = (many_in_flight - few_in_flight) / (2.0 * count);
  if (drained <= least_gain) return many_in_flight;
  const double lost = lost_unevenness * (unevenness(transfers, rounds, few_in_flight) -
                                         unevenness(transfers, rounds, many_in_flight));
  if (drained <= lost + least_gain) return many_in_flight;
  return nvlink_share(refit, plan) * drained > lost + least_gain ? few_in_flight : many_in_flight;
}

}  // namespace isthmus

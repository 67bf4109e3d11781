#include "model/host_order.hpp"

#include <algorithm>

namespace isthmus {
namespace {

int hosts_for(int gpus, const Fabric& fabric) {
  const int per_host = std::max(1, static_cast<int>(fabric.gpus_on(HostId{0})));
  return (gpus + per_host - 1) / per_host;
}

/// One past the last host of the rack that host `first` begins.
int rack_end(const Fabric& fabric, int first, int hosts) {
  const auto leaf = [&fabric](int host) {
    return fabric.switch_of(fabric.gpu_at(HostId{static_cast<std::uint32_t>(host)}, 0));
  };
  int end = first + 1;
  const int known = std::min(hosts, static_cast<int>(fabric.host_count()));
  while (end < known && leaf(end) == leaf(first)) ++end;
  return end < known ? end : hosts;
}

}  // namespace

HostOrder host_order(PlacementKind kind, const Fabric& fabric, int train_gpus, int generate_gpus) {
  if (kind == PlacementKind::contiguous) return {};
  const int train = hosts_for(train_gpus, fabric), hosts = train + hosts_for(generate_gpus, fabric);
  HostOrder order{SideRanks{}, SideRanks{}};
  order.train->by_rail = order.generate->by_rail = kind == PlacementKind::rail_aligned;
  const auto training_among = [train, hosts](int first) {
    return static_cast<int>(std::int64_t{first} * train / hosts);
  };
  for (int begin = 0; begin < hosts;) {
    int end = begin + 1;
    if (kind == PlacementKind::co_racked) end = rack_end(fabric, begin, hosts);
    int trains = training_among(end) - training_among(begin);
    if (kind == PlacementKind::rail_aligned) trains = begin < train ? 1 : 0;
    for (int host = begin; host < end; ++host, --trains) {
      (trains > 0 ? order.train : order.generate)->hosts.push_back(host);
    }
    begin = end;
  }
  return order;
}

}  // namespace isthmus

#pragma once
// What a plan of `balanced` asks of the ports of each GPU, in bytes: of its NIC by the steps of the network
// lane, which all lead from one NVLink domain to another, of its NVLink port by the steps of other lanes,
// none of which does. The time of the busiest link counts whole routes, so that it also sees what the network
// itself carries; no order of the same transfers can be faster.

#include <vector>

#include "model/refit.hpp"
#include "planner/plan.hpp"

namespace isthmus {

struct PortLoads {
  std::vector<Bytes> network_out, network_in, nvlink_out, nvlink_in;  // by GPU
};

PortLoads port_loads(const Refit& refit, const Plan& plan);

/// Bytes of the busiest link at its nominal rate.
Duration busiest_link(const Refit& refit, const Plan& plan);

}  // namespace isthmus

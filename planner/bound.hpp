#pragma once
// A lower bound on the time of any plan for a refit. For a set S of GPUs, every byte that is needed in S and
// that no GPU of S holds must cross into S at least once, so
//     T >= (bytes needed in S and held only outside) / (capacity of the links into S).
// Sets tried: each GPU, NVLink domain and network part (planner/network_parts.hpp); what is not a GPU, a
// domain, or a part; a domain without the holders of a class; what is outside a class's holders, their
// domains, a stage's or all sources' GPUs, domains or parts. Capacities: planner/passages.hpp, nominal rates.
// Model: unicast, wire dtype = tensor dtype, every target GPU ends with its own regions and nothing more;
// whoever takes part may relay (RefitSpec::relay). Copies (ties, repeated experts) count no bytes.
// certified_bound (planner/certified_bound.hpp) adds a linear program and a certificate.

#include <string>
#include <vector>

#include "model/refit.hpp"

namespace isthmus {

struct LowerBound {
  Duration time;           // what one domain alone holds reaches its own GPUs over NVLink, as executors do it
  Duration any_route;      // the same bytes may also leave a domain and come back
  std::string binding;     // the cut that gives `time`, in words
  Bytes cut_bytes;         // bytes across that cut
  Bandwidth cut_capacity;  // nominal capacity across it
  std::vector<LinkId> links{}, any_route_links{};  // across the cuts that give `time` and `any_route`
};

LowerBound lower_bound(const Refit& refit);

}  // namespace isthmus

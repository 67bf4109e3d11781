#pragma once
// A lower bound on the time of any plan for a refit. For a set S of GPUs, every byte that is needed in S and
// that no GPU of S holds must cross into S at least once, so
//     T >= (bytes needed in S and held only outside) / (capacity of the ports into S),
// and likewise outwards. Sets tried: each GPU, each NVLink domain, the holders of each pipeline stage, all
// sources. Ports: nominal rates of NIC (one per GPU; joins different domains only) and NVLink (inside a
// domain). Model of the bound: unicast, wire dtype = tensor dtype, every target GPU ends with its own regions
// and nothing more; switches are not modelled (a bound stays a bound without them). Any GPU may relay. Copies
// (ties, repeated experts) count no bytes: a plan may take them from what has arrived already.

#include <string>

#include "model/refit.hpp"

namespace isthmus {

struct LowerBound {
  Duration time;           // traffic inside a domain over NVLink only, as executors route it
  Duration any_route;      // the same bytes may also leave a domain and come back
  std::string binding;     // the cut that gives `time`, in words
  Bytes cut_bytes;         // bytes across that cut
  Bandwidth cut_capacity;  // nominal capacity across it
};

LowerBound lower_bound(const Refit& refit);

}  // namespace isthmus

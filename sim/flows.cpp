#include "sim/flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace isthmus::sim {
namespace {

Duration duration(const Constant& seconds) { return {std::llround(seconds.value * 1e12)}; }

class Builder {
 public:
  Builder(const Refit& refit, const Operations& operations, const Routes& routes,
          const Calibration& calibration)
      : refit_(refit),
        operations_(operations),
        routes_(routes),
        calibration_(calibration),
        class_of_route_(routes.size(), Demand::none),
        rate_alone_(routes.size()),
        host_(refit.ranks(), Demand::none),
        memory_(refit.fabric.gpu_count(), Demand::none),
        host_work_(refit.ranks()),
        memory_bytes_(refit.fabric.gpu_count()) {}

  Flows run() {
    add_links();
    flows_.demands.reserve(operations_.list.size());
    for (const Operation& operation : operations_.list) flows_.demands.push_back(demand(operation));
    list_work();
    flows_.network = network_.merged();
    return std::move(flows_);
  }

 private:
  void add_links() {
    for (const Link& link : refit_.fabric.links()) capacities_.push_back(calibration_.achieved(link));
    const std::vector<char> binds = routes_.binding_links(capacities_);
    resource_of_link_.assign(binds.size(), Demand::none);
    for (std::size_t l = 0; l < binds.size(); ++l) {
      if (binds[l] != 0) resource_of_link_[l] = network_.add_resource(capacities_[l].value);
    }
  }

  void list_work() {
    for (std::size_t r = 0; r < host_work_.size(); ++r) {
      if (host_work_[r].value > 0)
        flows_.work.push_back({fmt::format("host thread of rank {}", r), host_work_[r]});
    }
    for (std::size_t g = 0; g < memory_bytes_.size(); ++g) {
      if (memory_bytes_[g].value == 0) continue;
      const Bandwidth rate{std::llround(calibration_.memory_bandwidth.value)};
      flows_.work.push_back({fmt::format("memory of GPU {}", g), memory_bytes_[g] / rate});
    }
    for (std::uint32_t route = 0; route < routes_.size(); ++route) {
      if (!capped(route)) continue;
      const Bandwidth rate{std::llround(calibration_.collective_bandwidth.value)};
      flows_.work.push_back({"channels of one communicator's collectives", routes_.bytes(route) / rate});
    }
  }

  bool capped(std::uint32_t route) const {
    return routes_.collective(route) && routes_.leaves_domain(route) &&
           std::isfinite(calibration_.collective_bandwidth.value);
  }

  /// The class of a route, made on first use. A collective's route has a cap of its own.
  std::uint32_t class_of(std::uint32_t route) {
    std::uint32_t& known = class_of_route_[route];
    if (known != Demand::none) return known;
    std::vector<Usage> usages;
    for (const Usage& usage : routes_.usages(route)) {
      const std::uint32_t resource = resource_of_link_[usage.resource];
      if (resource != Demand::none) usages.push_back({resource, usage.weight});
    }
    if (capped(route)) {
      const std::int64_t limit = std::llround(calibration_.collective_bandwidth.value);
      usages.push_back({network_.add_resource(limit), Usage::one});
    }
    return known = network_.add_class(std::move(usages));
  }

  /// Rate of a transfer that has its route to itself.
  Bandwidth rate_alone(std::uint32_t route) {
    Bandwidth& least = rate_alone_[route];
    if (least.value > 0) return least;
    Int128 rate = std::numeric_limits<std::int64_t>::max();
    for (const Usage& usage : routes_.usages(route)) {
      rate = std::min(rate, Int128{capacities_[usage.resource].value} * Usage::one / usage.weight);
    }
    if (capped(route)) rate = std::min(rate, Int128{std::llround(calibration_.collective_bandwidth.value)});
    return least = {static_cast<std::int64_t>(rate)};
  }

  Demand demand(const Operation& operation) {
    Demand result;
    if (operation.kind == StepKind::load) {
      add_host(result, 0, operation.source, operation.parts, calibration_.load_time_per_tensor);
      add_memory(result, 1, refit_.gpu(operation.source), operation.bytes);
      return result;
    }
    const std::uint32_t route = routes_.of(operation);
    if (route == Routes::local) {
      result.delay = duration(calibration_.nvlink_latency);
      add_memory(result, 0, refit_.gpu(operation.source), operation.bytes);
      return result;
    }
    const bool network = routes_.leaves_domain(route);
    result.delay = duration(network ? calibration_.network_latency : calibration_.nvlink_latency);
    if (operation.call_of > 0) {
      result.delay += duration(calibration_.export_time_per_tensor) * operation.exports;
      add_call(result, operation);
    }
    if (operation.kind == StepKind::broadcast && operation.parts > 0) {
      add_host(result, 0, operation.source, operation.parts, calibration_.export_time_per_tensor);
    }
    const Constant& occupied =
        network ? calibration_.network_operation_time : calibration_.nvlink_operation_time;
    const Bytes overhead = rate_alone(route) * duration(occupied);
    result.phases[1] = {class_of(route), operation.bytes.value + overhead.value};
    return result;
  }

  void add_host(Demand& result, std::size_t phase, Rank rank, std::uint32_t parts, const Constant& per_part) {
    occupy_host(result, phase, rank, duration(per_part) * parts);
  }

  /// Its share of the call that it is part of, on the receiver's host thread.
  void add_call(Demand& result, const Operation& operation) {
    const Duration call = duration(operations_.program == Program::python ? calibration_.python_call_time
                                                                          : calibration_.native_call_time);
    occupy_host(result, 0, operation.caller, {call.value * operation.call_steps / operation.call_of});
  }

  void occupy_host(Demand& result, std::size_t phase, Rank rank, Duration work) {
    if (work.value == 0) return;
    std::uint32_t& known = host_[rank.index()];
    if (known == Demand::none) known = own_class(picoseconds_per_second);
    result.phases[phase] = {known, work.value, Demand::Use::host};
    host_work_[rank.index()] += work;
  }

  void add_memory(Demand& result, std::size_t phase, GpuId gpu, Bytes bytes) {
    if (!std::isfinite(calibration_.memory_bandwidth.value)) return;
    std::uint32_t& known = memory_[gpu.index()];
    if (known == Demand::none) known = own_class(std::llround(calibration_.memory_bandwidth.value));
    const Bytes moved = bytes * 2;  // read and write
    result.phases[phase] = {known, moved.value, Demand::Use::memory};
    memory_bytes_[gpu.index()] += moved;
  }

  std::uint32_t own_class(std::int64_t capacity) {
    return network_.add_class({{network_.add_resource(capacity), Usage::one}});
  }

  const Refit& refit_;
  const Operations& operations_;
  const Routes& routes_;
  const Calibration& calibration_;
  Network network_;
  Flows flows_;
  std::vector<Bandwidth> capacities_;            // by link
  std::vector<std::uint32_t> resource_of_link_;  // none: cannot bind
  std::vector<std::uint32_t> class_of_route_;
  std::vector<Bandwidth> rate_alone_;         // by route; 0 until asked for
  std::vector<std::uint32_t> host_, memory_;  // classes, by rank and GPU
  std::vector<Duration> host_work_;
  std::vector<Bytes> memory_bytes_;
};

}  // namespace

Flows build_flows(const Refit& refit, const Operations& operations, const Routes& routes,
                  const Calibration& calibration) {
  return Builder(refit, operations, routes, calibration).run();
}

}  // namespace isthmus::sim

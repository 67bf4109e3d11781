#include "sim/flows.hpp"

#include <algorithm>
#include <cmath>

#include "sim/network.hpp"

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
        slowest_(routes.size()),
        host_(refit.ranks(), Demand::none),
        memory_(refit.fabric.gpu_count(), Demand::none),
        host_work_(refit.ranks()) {}

  Flows run() {
    add_links();
    flows_.demands.reserve(operations_.list.size());
    for (const Operation& operation : operations_.list) flows_.demands.push_back(demand(operation));
    for (std::uint32_t r = 0; r < host_work_.size(); ++r) {
      if (host_work_[r].value > 0) flows_.host_work.push_back({Rank{r}, host_work_[r]});
    }
    flows_.fluid = network_.merged();
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

  /// The class of a route, made on first use. A collective's route has a cap of its own.
  std::uint32_t class_of(std::uint32_t route) {
    std::uint32_t& known = class_of_route_[route];
    if (known != Demand::none) return known;
    std::vector<Usage> usages;
    for (const Usage& usage : routes_.usages(route)) {
      const std::uint32_t resource = resource_of_link_[usage.resource];
      if (resource != Demand::none) usages.push_back({resource, usage.weight});
    }
    const double limit = calibration_.collective_bandwidth.value;
    if (routes_.collective(route) && routes_.leaves_domain(route) && std::isfinite(limit)) {
      usages.push_back({network_.add_resource(std::llround(limit)), Usage::one});
    }
    return known = network_.add_class(std::move(usages));
  }

  /// Achieved rate of the route's slowest link, for one transfer alone.
  Bandwidth slowest(std::uint32_t route) {
    Bandwidth& least = slowest_[route];
    if (least.value > 0) return least;
    least = capacities_[routes_.usages(route).front().resource];
    for (const Usage& usage : routes_.usages(route)) least = std::min(least, capacities_[usage.resource]);
    return least;
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
    if (operation.kind == StepKind::broadcast) {
      add_host(result, 0, operation.source, operation.parts, calibration_.export_time_per_tensor);
    }
    const Constant& occupied =
        network ? calibration_.network_operation_time : calibration_.nvlink_operation_time;
    const Bytes overhead = slowest(route) * duration(occupied);
    result.phases[1] = {class_of(route), operation.bytes.value + overhead.value};
    return result;
  }

  void add_host(Demand& result, std::size_t phase, Rank rank, std::uint32_t parts, const Constant& per_part) {
    const Duration work = duration(per_part) * parts;
    if (work.value == 0) return;
    std::uint32_t& known = host_[rank.index()];
    if (known == Demand::none) known = own_class(picoseconds_per_second);
    result.phases[phase] = {known, work.value};
    host_work_[rank.index()] += work;
  }

  void add_memory(Demand& result, std::size_t phase, GpuId gpu, Bytes bytes) {
    if (!std::isfinite(calibration_.memory_bandwidth.value)) return;
    std::uint32_t& known = memory_[gpu.index()];
    if (known == Demand::none) known = own_class(std::llround(calibration_.memory_bandwidth.value));
    result.phases[phase] = {known, 2 * bytes.value};  // read and write
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
  std::vector<Bandwidth> slowest_;            // by route; 0 until asked for
  std::vector<std::uint32_t> host_, memory_;  // classes, by rank and GPU
  std::vector<Duration> host_work_;
};

}  // namespace

Flows build_flows(const Refit& refit, const Operations& operations, const Routes& routes,
                  const Calibration& calibration) {
  return Builder(refit, operations, routes, calibration).run();
}

}  // namespace isthmus::sim

#include "sim/flows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

namespace isthmus::sim {
namespace {

Duration duration(const Constant& seconds) { return {std::llround(seconds.value * 1e12)}; }

/// The calibration's times: asked for by each operation, of which there may be millions.
struct OperationTimes {
  explicit OperationTimes(const Calibration& calibration, Program program)
      : network_latency(duration(calibration.network_latency)),
        nvlink_latency(duration(calibration.nvlink_latency)),
        network_operation(duration(calibration.network_operation_time)),
        nvlink_operation(duration(calibration.nvlink_operation_time)),
        put(calibration.replay ? duration(calibration.replay->kernel_time) : nvlink_operation),
        export_per_tensor(duration(calibration.export_time_per_tensor)),
        load_per_tensor(duration(calibration.load_time_per_tensor)),
        call(duration(program == Program::python ? calibration.python_call_time
                                                 : calibration.native_call_time)) {}

  Duration network_latency, nvlink_latency, network_operation, nvlink_operation, put;
  Duration export_per_tensor, load_per_tensor, call;
};

class Builder {
 public:
  Builder(const Refit& refit, const Operations& operations, const Routes& routes,
          const Calibration& calibration, const Interference& interference)
      : interference_(interference),
        refit_(refit),
        operations_(operations),
        routes_(routes),
        calibration_(calibration),
        times_(calibration, operations.program),
        class_of_route_(routes.size(), Demand::none),
        operation_bytes_(routes.size(), Bytes{-1}),
        host_(refit.ranks(), Demand::none),
        memory_(refit.fabric.gpu_count(), Demand::none),
        host_work_(refit.ranks()),
        memory_bytes_(refit.fabric.gpu_count()),
        kernels_left_(refit.fabric.links().size(), Interference::whole),
        memory_left_(refit.fabric.gpu_count(), Interference::whole) {}

  Flows run() {
    add_links();
    flows_.demands.reserve(operations_.list.size());
    for (const Operation& operation : operations_.list) flows_.demands.push_back(demand(operation));
    list_work();
    if (!interference_.none()) disturb();
    std::vector<std::uint32_t> number;
    flows_.network = network_.merged(apart_, number);
    for (Schedule::Period& period : flows_.schedule.periods) {
      for (Schedule::Capacity& change : period.capacities) change.resource = number[change.resource];
    }
    return std::move(flows_);
  }

 private:
  void add_links() {
    for (const Link& link : refit_.fabric.links()) capacities_.push_back(calibration_.achieved(link));
    std::vector<char> binds = routes_.binding_links(capacities_);
    keep_disturbed(binds);
    resource_of_link_.assign(binds.size(), Demand::none);
    for (std::size_t l = 0; l < binds.size(); ++l) {
      if (binds[l] == 0) continue;
      resource_of_link_[l] = network_.add_resource(left_of(capacities_[l].value, kernels_left_[l]));
    }
    kernel_ports_ = KernelPorts(refit_.fabric, calibration_, interference_.ctas, network_);
  }

  /// Links whose capacity changes, or that others load, may bind where they did not; detours bring routes
  /// that the rule on links does not know.
  void keep_disturbed(std::vector<char>& binds) {
    for (const auto& [gpu, left] : interference_.kernels) {
      memory_left_[gpu.index()] = left;
      for (const auto link : {refit_.fabric.nvlink_out(gpu), refit_.fabric.nvlink_in(gpu)}) {
        if (!link) continue;
        kernels_left_[link->index()] = left;
        binds[link->index()] = 1;
      }
    }
    for (const Interference::Load& load : interference_.loads) {
      if (!load.on_memory) binds[load.where] = 1;
    }
    for (const Interference::Period& period : interference_.periods) {
      for (const auto& [link, share] : period.links) binds[link.index()] = 1;
      if (!period.detours.empty()) binds.assign(binds.size(), 1);
    }
  }

  /// Background, detours and capacities over time.
  void disturb() {
    Schedule& schedule = flows_.schedule;
    schedule.rule = interference_.rule;
    for (const Interference::Load& load : interference_.loads) add_background(load);
    apart_.assign(network_.capacities().size(), 0);
    for (const Interference::Period& period : interference_.periods) {
      schedule.periods.push_back({period.begins, changes_of(period), {}, {}});
      for (const auto& [route, detour] : period.detours) class_of(detour);
    }
    const std::size_t classes = network_.classes().size();
    apart_.resize(network_.capacities().size(), 0);
    flows_.route_of_class.assign(classes, Routes::local);
    for (std::uint32_t route = 0; route < routes_.size(); ++route) {
      if (class_of_route_[route] != Demand::none) flows_.route_of_class[class_of_route_[route]] = route;
    }
    std::vector<std::int64_t> present = network_.capacities();
    for (std::size_t p = 0; p < schedule.periods.size(); ++p) {
      Schedule::Period& period = schedule.periods[p];
      for (const Schedule::Capacity& change : period.capacities) present[change.resource] = change.capacity;
      period.detours.assign(classes, Demand::none);
      for (const auto& [route, detour] : interference_.periods[p].detours) {
        period.detours[class_of(route)] = class_of(detour);
      }
      for (const std::vector<Usage>& usages : network_.classes()) {
        period.down.push_back(std::any_of(usages.begin(), usages.end(),
                                          [&](const Usage& usage) { return present[usage.resource] == 0; }));
      }
    }
  }

  void add_background(const Interference::Load& load) {
    std::uint32_t resource = Demand::none;
    if (!load.on_memory) {
      resource = resource_of_link_[load.where];
    } else if (memory_[load.where] != Demand::none) {
      resource = resource_of_class(memory_[load.where]);
    }
    if (resource == Demand::none) return;  // unlimited, or nothing of the refit goes there
    const std::int64_t rate =
        load.rate > 0 ? load.rate : left_of(network_.capacities()[resource], load.share);
    const std::int64_t cap = std::max<std::int64_t>(1, rate / load.flows);
    const std::uint32_t index = network_.add_class({{resource, Usage::one}}, {1, cap});
    const auto number = static_cast<std::uint32_t>(&load - interference_.loads.data());
    flows_.schedule.background.push_back({index, load.flows, number, cap * load.flows});
  }

  std::vector<Schedule::Capacity> changes_of(const Interference::Period& period) {
    std::vector<Schedule::Capacity> changes;
    const auto change = [&](std::uint32_t resource, std::int64_t share) {
      apart_[resource] = 1;
      changes.push_back({resource, left_of(network_.capacities()[resource], share)});
    };
    std::map<GpuId, std::int64_t> of_gpu(period.gpus.begin(), period.gpus.end());
    for (const auto& [link, share] : period.links) change(resource_of_link_[link.index()], share);
    for (const auto& [gpu, share] : of_gpu) {
      if (memory_[gpu.index()] != Demand::none) change(resource_of_class(memory_[gpu.index()]), share);
    }
    for (std::uint32_t rank = 0; rank < host_.size(); ++rank) {
      const auto known = of_gpu.find(refit_.gpu({rank}));
      if (known != of_gpu.end() && host_[rank] != Demand::none) {
        change(resource_of_class(host_[rank]), known->second);
      }
    }
    return changes;
  }

  std::uint32_t resource_of_class(std::uint32_t own) const {
    return network_.classes()[own].front().resource;
  }

  /// Kernels of all members carry a collective: the one that has the least left sets the pace.
  std::int64_t collective_limit(std::uint32_t route) const {
    std::int64_t left = Interference::whole;
    for (const Usage& usage : routes_.usages(route)) left = std::min(left, kernels_left_[usage.resource]);
    return left_of(std::llround(calibration_.collective_bandwidth.value), left);
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
    for (std::uint32_t route = 0; route < routes_.planned(); ++route) {
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
      usages.push_back({network_.add_resource(collective_limit(route)), Usage::one});
    }
    const std::vector<Usage> kernels = kernel_ports_.asked(routes_.usages(route));
    usages.insert(usages.end(), kernels.begin(), kernels.end());
    return known = network_.add_class(std::move(usages));
  }

  /// Rate of a transfer that has its route to itself.
  Bandwidth rate_alone(std::uint32_t route) const {
    Int128 rate = std::numeric_limits<std::int64_t>::max();
    for (const Usage& usage : routes_.usages(route)) {
      rate = std::min(rate, Int128{capacities_[usage.resource].value} * Usage::one / usage.weight);
    }
    if (capped(route)) rate = std::min(rate, Int128{std::llround(calibration_.collective_bandwidth.value)});
    rate = std::min(rate, kernel_ports_.most(routes_.usages(route)));
    return {static_cast<std::int64_t>(rate)};
  }

  /// What an operation holds its route for beyond its bytes, as bytes at that rate.
  Bytes operation_bytes(std::uint32_t route) {
    Bytes& known = operation_bytes_[route];
    if (known.value >= 0) return known;
    const bool network = routes_.leaves_domain(route);
    return known = rate_alone(route) * (network ? times_.network_operation : times_.nvlink_operation);
  }

  Demand demand(const Operation& operation) {
    Demand result;
    if (operation.kind == StepKind::load) {
      occupy_host(result, 0, operation.source, times_.load_per_tensor * operation.parts);
      add_memory(result, 1, refit_.gpu(operation.source), operation.bytes * 2);
      return result;
    }
    const std::uint32_t route = routes_.of(operation);
    if (route == Routes::local) {
      result.delay = times_.nvlink_latency;
      const bool quantises = operation.kind == StepKind::quantize;
      add_memory(result, 0, refit_.gpu(operation.source),
                 quantises ? operation.quantising : operation.bytes * 2);
      return result;
    }
    result.delay = routes_.leaves_domain(route) ? times_.network_latency : times_.nvlink_latency;
    if (operation.call_of > 0) {
      result.delay += times_.export_per_tensor * operation.exports;
      add_call(result, operation);
    }
    if (operation.kind == StepKind::broadcast && operation.parts > 0) {
      occupy_host(result, 0, operation.source, times_.export_per_tensor * operation.parts);
    }
    const bool put = operation.kind == StepKind::put;
    const Bytes held = put ? rate_alone(route) * times_.put : operation_bytes(route);
    result.phases[1] = Demand::Phase{operation.bytes.value + held.value, class_of(route)};
    return result;
  }

  /// Its share of the call that it is part of, on the receiver's host thread.
  void add_call(Demand& result, const Operation& operation) {
    const std::int64_t call = times_.call.value;
    occupy_host(result, 0, operation.caller, {call * operation.call_steps / operation.call_of});
  }

  void occupy_host(Demand& result, std::size_t phase, Rank rank, Duration work) {
    if (work.value == 0) return;
    std::uint32_t& known = host_[rank.index()];
    if (known == Demand::none) known = own_class(picoseconds_per_second);
    result.phases[phase] = Demand::Phase{work.value, known, 1, Demand::Use::host};
    host_work_[rank.index()] += work;
  }

  /// `moved`: read and written together.
  void add_memory(Demand& result, std::size_t phase, GpuId gpu, Bytes moved) {
    if (!std::isfinite(calibration_.memory_bandwidth.value)) return;
    std::uint32_t& known = memory_[gpu.index()];
    if (known == Demand::none) {
      const std::int64_t bandwidth = std::llround(calibration_.memory_bandwidth.value);
      known = own_class(left_of(bandwidth, memory_left_[gpu.index()]));
    }
    result.phases[phase] = Demand::Phase{moved.value, known, 1, Demand::Use::memory};
    memory_bytes_[gpu.index()] += moved;
  }

  std::uint32_t own_class(std::int64_t capacity) {
    return network_.add_class({{network_.add_resource(capacity), Usage::one}});
  }

  const Interference& interference_;
  const Refit& refit_;
  const Operations& operations_;
  const Routes& routes_;
  const Calibration& calibration_;
  const OperationTimes times_;
  Network network_;
  KernelPorts kernel_ports_;
  Flows flows_;
  std::vector<Bandwidth> capacities_;            // by link
  std::vector<std::uint32_t> resource_of_link_;  // none: cannot bind
  std::vector<std::uint32_t> class_of_route_;
  std::vector<Bytes> operation_bytes_;        // by route; negative until asked for
  std::vector<std::uint32_t> host_, memory_;  // classes, by rank and GPU
  std::vector<Duration> host_work_;
  std::vector<Bytes> memory_bytes_;
  std::vector<std::int64_t> kernels_left_, memory_left_;  // what kernels beside the refit leave: by link, GPU
  std::vector<char> apart_;                               // resources whose capacity changes
};

}  // namespace

Flows build_flows(const Refit& refit, const Operations& operations, const Routes& routes,
                  const Calibration& calibration, const Interference& interference) {
  return Builder(refit, operations, routes, calibration, interference).run();
}

}  // namespace isthmus::sim

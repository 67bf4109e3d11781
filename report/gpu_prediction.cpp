#include "report/gpu_prediction.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include <fmt/format.h>

#include "hw/device_move.hpp"
#include "model/error.hpp"
#include "model/text.hpp"

namespace isthmus::report {
namespace {

constexpr double unit_bytes = 16, large_message = 1 << 20, ramp_bytes = 16 << 20;

Duration duration(double seconds) {
  return {std::llround(seconds * static_cast<double>(picoseconds_per_second))};
}

std::int64_t rate(double bytes_per_second) {
  return std::max<std::int64_t>(1, std::llround(std::min(bytes_per_second, 1e15)));
}

double move_seconds(const hw::Move& move, double again, const ReplayConstants& constants) {
  const auto bytes = static_cast<double>(move.bytes());
  const double units = bytes / hw::unit_width(move);
  const Constant& side = move.runs() == 1 ? constants.contiguous_bandwidth : constants.strided_bandwidth;
  return std::max(units * unit_bytes / side.value, (2 - again) * bytes / constants.copy_bandwidth.value);
}

/// Of moves within the GPU, one after the other.
double copy_seconds(std::span<const hw::GpuMove> moves, std::uint32_t gpu, const ReplayConstants& constants) {
  double total = 0;
  const hw::Move* last = nullptr;
  for (const hw::GpuMove& each : moves) {
    if (each.target_gpu != gpu) continue;
    const bool same =
        last != nullptr && last->source == each.move.source && last->bytes() == each.move.bytes();
    const double room = 1 - 2 * static_cast<double>(each.move.bytes()) / constants.cache.value;
    total += move_seconds(each.move, same ? std::max(0.0, room) : 0, constants);
    last = &each.move;
  }
  return total;
}

double start_seconds(std::span<const hw::Message> messages, std::uint32_t gpus,
                     const ReplayConstants& constants) {
  std::vector<double> sent(gpus, 0.0);
  double largest = 0;
  for (const hw::Message& message : messages) {
    const auto bytes = static_cast<double>(message.bytes);
    largest = std::max(largest, bytes);
    sent[message.from] += constants.message_time.value +
                          constants.large_message_time.value * std::min(1.0, bytes / large_message);
  }
  return constants.exchange_latency.value + *std::max_element(sent.begin(), sent.end()) +
         constants.ramp_time.value * largest / (largest + ramp_bytes);
}

/// Links between GPUs; a class for each ordered pair, of messages and of puts.
class GpuLinks {
 public:
  GpuLinks(std::uint32_t gpus, const ReplayConstants& constants) : gpus_(gpus) {
    const double one = constants.exchange_bandwidth.value;
    for (std::uint32_t g = 0; g < gpus; ++g) {
      fluid_.add_resource(rate(one));                                        // out: 3 g
      fluid_.add_resource(rate(one));                                        // in: 3 g + 1
      fluid_.add_resource(rate(2 * constants.both_ways_share.value * one));  // both: 3 g + 2
    }
    const double put = std::clamp(one / constants.put_bandwidth.value, 1e-3, 1e3);
    for (const double share : {1.0, put}) {
      const auto weight = static_cast<std::uint32_t>(std::lround(share * sim::Usage::one));
      for (std::uint32_t from = 0; from < gpus; ++from) {
        for (std::uint32_t to = 0; to < gpus; ++to) add_pair(from, to, weight);
      }
    }
  }

  std::uint32_t messages(std::uint32_t from, std::uint32_t to) const { return from * gpus_ + to; }
  std::uint32_t puts(std::uint32_t from, std::uint32_t to) const { return (gpus_ + from) * gpus_ + to; }
  const sim::Fluid& fluid() const { return fluid_; }

 private:
  void add_pair(std::uint32_t from, std::uint32_t to, std::uint32_t weight) {
    std::vector<sim::Usage> usages{{3 * from, weight}, {3 * to + 1, weight}, {3 * from + 2, weight}};
    if (from != to) usages.push_back({3 * to + 2, weight});
    fluid_.add_class(usages);
  }

  std::uint32_t gpus_;
  sim::Fluid fluid_;
};

/// The launches of a schedule as work: an exchange is one for the GPUs that take part, else one for each GPU.
class LaunchLowering {
 public:
  LaunchLowering(const hw::GpuSchedule& schedule, const ReplayConstants& constants)
      : schedule_(schedule),
        constants_(constants),
        gpus_(schedule.folding.gpus),
        links_(gpus_, constants),
        last_(std::size_t{schedule.streams()} * gpus_, none) {}

  GpuPrediction run() {
    for (std::size_t l = 0; l < schedule_.launches.size(); ++l) lower(l);
    const std::vector<sim::LaunchSpan> spans = sim::run_launches(work_, gpus_, links_.fluid());
    GpuPrediction result;
    result.issued = {duration(host_).value};
    for (std::size_t l = 0; l < schedule_.launches.size(); ++l) {
      sim::LaunchSpan whole = spans[work_of(l, 0)];
      for (std::uint32_t g = 1; g < gpus_; ++g) {
        const sim::LaunchSpan& span = spans[work_of(l, g)];
        whole = {std::min(whole.begin, span.begin), std::max(whole.end, span.end)};
      }
      result.end = std::max(result.end, whole.end);
      result.launches.push_back(whole);
    }
    return result;
  }

 private:
  static constexpr std::uint32_t none = 0xFFFFFFFF;

  std::uint32_t work_of(std::size_t launch, std::uint32_t gpu) const {
    return works_of_[launch * gpus_ + gpu];
  }

  void lower(std::size_t index) {
    const hw::Launch& launch = schedule_.launches[index];
    std::uint32_t exchange = none;
    for (std::uint32_t g = 0; g < gpus_; ++g) {
      host_ += wait_calls(launch) * constants_.wait_host_time.value;
      if (launch.kind == hw::LaunchKind::exchange && takes_part(launch, g)) {
        if (exchange == none) exchange = add_work();
        work_[exchange].devices.push_back(g);
        works_of_.push_back(exchange);
      } else {
        works_of_.push_back(add_work());
        lower_moves(index, g);
      }
    }
    if (exchange != none) lower_exchange(launch, exchange);
    for (std::uint32_t g = 0; g < gpus_; ++g) order(launch, index, g);
    host_ += gpus_ * constants_.record_host_time.value;
  }

  /// Events of the same stream and GPU need no call.
  double wait_calls(const hw::Launch& launch) const {
    double calls = 0;
    for (const std::uint32_t earlier : schedule_.waits_of(launch))
      calls += schedule_.launches[earlier].stream == launch.stream ? gpus_ - 1 : gpus_;
    return calls;
  }

  bool takes_part(const hw::Launch& launch, std::uint32_t gpu) const {
    const std::span<const hw::Message> messages = schedule_.messages_of(launch);
    return std::any_of(messages.begin(), messages.end(), [gpu](const hw::Message& message) {
      return message.from == gpu || message.to == gpu;
    });
  }

  std::uint32_t add_work() {
    work_.emplace_back();
    return static_cast<std::uint32_t>(work_.size() - 1);
  }

  Instant issued() const { return Instant{} + duration(host_ + constants_.issue_latency.value); }

  void lower_moves(std::size_t index, std::uint32_t gpu) {
    const std::span<const hw::GpuMove> moves = schedule_.moves_of(gpu, index);
    sim::LaunchWork& work = work_.back();
    work.devices = {gpu};
    if (!moves.empty()) {
      host_ += constants_.kernel_host_time.value;
      work.latency = duration(constants_.kernel_time.value);
      work.copy = duration(copy_seconds(moves, gpu, constants_));
      std::vector<std::int64_t> bytes(gpus_, 0);
      for (const hw::GpuMove& move : moves) bytes[move.target_gpu] += move.move.bytes();
      for (std::uint32_t to = 0; to < gpus_; ++to)
        if (to != gpu && bytes[to] > 0) work.flows.push_back({links_.puts(gpu, to), bytes[to]});
    }
    work.issued = issued();
  }

  void lower_exchange(const hw::Launch& launch, std::uint32_t index) {
    const std::span<const hw::Message> messages = schedule_.messages_of(launch);
    host_ += constants_.exchange_host_time.value +
             static_cast<double>(messages.size()) * constants_.message_host_time.value;
    sim::LaunchWork& work = work_[index];
    work.issued = issued();
    work.turn = duration(constants_.turn_time.value);
    work.latency = duration(start_seconds(messages, gpus_, constants_));
    std::vector<std::int64_t> bytes(std::size_t{gpus_} * gpus_, 0);
    for (const hw::Message& message : messages)
      bytes[std::size_t{message.from} * gpus_ + message.to] += message.bytes;
    for (std::uint32_t from = 0; from < gpus_; ++from) {
      for (std::uint32_t to = 0; to < gpus_; ++to) {
        const std::int64_t sum = bytes[std::size_t{from} * gpus_ + to];
        if (sum > 0) work.flows.push_back({links_.messages(from, to), sum});
      }
    }
  }

  /// After what is before it in its stream, and what it waits for.
  void order(const hw::Launch& launch, std::size_t index, std::uint32_t gpu) {
    const std::uint32_t own = work_of(index, gpu);
    std::vector<sim::LaunchAfter>& after = work_[own].after;
    std::uint32_t& last = last_[std::size_t{launch.stream} * gpus_ + gpu];
    const auto add = [&after](std::uint32_t earlier, Duration delay) {
      const auto known = std::find_if(after.begin(), after.end(), [earlier](const sim::LaunchAfter& each) {
        return each.launch == earlier;
      });
      if (known == after.end()) {
        after.push_back({earlier, delay});
      } else {
        known->delay = std::min(known->delay, delay);
      }
    };
    if (last != none) add(last, {});
    for (const std::uint32_t earlier : schedule_.waits_of(launch)) {
      for (std::uint32_t g = 0; g < gpus_; ++g)
        add(work_of(earlier, g), duration(constants_.dispatch_time.value));
    }
    last = own;
  }

  const hw::GpuSchedule& schedule_;
  const ReplayConstants& constants_;
  std::uint32_t gpus_;
  GpuLinks links_;
  std::vector<std::uint32_t> last_;      // by stream and GPU
  std::vector<std::uint32_t> works_of_;  // by launch and GPU
  std::vector<sim::LaunchWork> work_;
  double host_ = 0;
};

}  // namespace

std::vector<Instant> GpuPrediction::ends() const {
  std::vector<Instant> result;
  for (const sim::LaunchSpan& span : launches) result.push_back(span.end);
  return result;
}

GpuPrediction predict_on_gpus(const hw::GpuSchedule& schedule, const ReplayConstants& constants) {
  return LaunchLowering(schedule, constants).run();
}

ReplayConstants without_host(ReplayConstants constants) {
  for (Constant* const time :
       {&constants.kernel_host_time, &constants.exchange_host_time, &constants.message_host_time,
        &constants.wait_host_time, &constants.record_host_time})
    time->value = 0;
  return constants;
}

const ReplayConstants& replay_constants(const Calibration& calibration, const Location& where) {
  if (calibration.replay) return *calibration.replay;
  throw InputError(
      where, fmt::format("'{}', which has no constants of replays on GPUs", printable(calibration.name)),
      "to predict those: a calibration with the mapping replay, such as h200-nvlink or what "
      "isthmus calibrate -o FILE --base h200-nvlink writes (docs/calibration.md)");
}

}  // namespace isthmus::report

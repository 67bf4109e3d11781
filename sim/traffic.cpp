#include "sim/traffic.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "model/traffic_channels.hpp"
#include "sim/fluid.hpp"

namespace isthmus::sim {
namespace {

constexpr std::uint32_t most_crossings = 2048;  // Usage::weight holds 4095 times one

struct Resource {
  std::string name;
  Bandwidth capacity;
  double carried = 0;  // bytes
};

/// The streams as flows of a Fluid: resources are the links in use, and a cap per stream.
class TrafficRun {
 public:
  TrafficRun(const Fabric& fabric, const Calibration& calibration, std::optional<std::uint32_t> channels)
      : fabric_(fabric), calibration_(calibration), channels_(channels) {}

  /// Adds all streams, then runs them to the end.
  void run(const std::vector<TrafficStream>& streams) {
    crossings_.reserve(streams.size());
    for (const TrafficStream& stream : streams) add(stream);
    for (const Resource& resource : resources_) fluid_.add_resource(resource.capacity.value);
    std::vector<std::int64_t> scale;
    for (const Crossings& crossings : crossings_) scale.push_back(add_class(crossings));
    for (std::uint32_t i = 0; i < streams.size(); ++i) fluid_.start(i, streams[i].bytes.value * scale[i], i);
    ends_.resize(streams.size());
    fluid_.solve();
    std::vector<std::uint32_t> ended;
    for (Instant when; fluid_.next_end(when); fluid_.solve()) {
      ended.clear();
      fluid_.advance(when, ended);
      for (const std::uint32_t stream : ended) ends_[stream] = when;
    }
  }

  Instant end(std::size_t stream) const { return ends_[stream]; }

  /// The busiest resource on the way of a stream: its name and its share of `time`.
  std::pair<std::string, double> busiest(std::size_t stream, Duration time) const {
    std::pair<std::string, double> best{"", -1};
    for (const auto& [resource, count] : crossings_[stream]) {
      const Resource& each = resources_[resource];
      const double busy = each.carried / (static_cast<double>(each.capacity.value) * seconds(time));
      if (busy > best.second * (1 + 1e-9)) best = {each.name, busy};
    }
    return best;
  }

 private:
  using Crossings = std::map<std::uint32_t, std::uint32_t>;  // resource -> times

  void add(const TrafficStream& stream) {
    Crossings crossings;
    for (const LinkId link : stream.links) {
      const auto [known, is_new] =
          resource_of_.try_emplace(link.value, static_cast<std::uint32_t>(resources_.size()));
      const Link& each = fabric_.links()[link.index()];
      if (is_new) resources_.push_back({each.name, calibration_.achieved(each)});
      ++crossings[known->second];
    }
    if (stream.network && channels_ && std::isfinite(calibration_.channel_bandwidth.value)) {
      const double rate = *channels_ * calibration_.channel_bandwidth.value;
      crossings[static_cast<std::uint32_t>(resources_.size())] = 1;
      resources_.push_back(
          {fmt::format("{} channel{} of {}", *channels_, *channels_ == 1 ? "" : "s", stream.name),
           Bandwidth{std::max<std::int64_t>(std::llround(rate), 1)}});
    }
    for (const auto& [resource, count] : crossings) {
      resources_[resource].carried += static_cast<double>(stream.bytes.value) * count;
    }
    crossings_.push_back(std::move(crossings));
  }

  /// Returns by how much the class counts slower than its stream, so that weights stay in range.
  std::int64_t add_class(const Crossings& crossings) {
    std::uint32_t most = 1;
    for (const auto& [resource, count] : crossings) most = std::max(most, count);
    const std::uint32_t scale = (most + most_crossings - 1) / most_crossings;
    std::vector<Usage> usages;
    for (const auto& [resource, count] : crossings) {
      const std::uint64_t weight = std::uint64_t{count} * Usage::one;
      usages.push_back({resource, static_cast<std::uint32_t>((weight + scale - 1) / scale)});
    }
    fluid_.add_class(usages);
    return scale;
  }

  const Fabric& fabric_;
  const Calibration& calibration_;
  std::optional<std::uint32_t> channels_;
  std::map<std::uint32_t, std::uint32_t> resource_of_;  // by link
  std::vector<Resource> resources_;
  std::vector<Crossings> crossings_;  // per stream
  Fluid fluid_;
  std::vector<Instant> ends_;
};

Bandwidth rate_of(double bytes, Duration time) { return {std::llround(bytes / seconds(time))}; }

std::optional<Bandwidth> bus_bandwidth(const TrafficSpec& spec, Duration time) {
  const auto gpus = static_cast<double>(traffic_gpus(spec).size());
  const auto bytes = static_cast<double>(spec.bytes.value);
  switch (spec.pattern) {
    case TrafficPattern::all_reduce:
    case TrafficPattern::rings: return rate_of(bytes * 2 * (gpus - 1) / gpus, time);
    case TrafficPattern::all_to_all: return rate_of(bytes * (gpus - 1), time);
    case TrafficPattern::shift: return rate_of(bytes, time);
    case TrafficPattern::pair:
    case TrafficPattern::flows: break;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> channel_count(const Fabric& fabric, const TrafficSpec& spec) {
  if (spec.channels) return static_cast<std::uint32_t>(*spec.channels);
  if (!spec.nccl_channels) return std::nullopt;
  return nccl_channels_per_peer(fabric, traffic_gpus(spec), nccl_settings_of(spec));
}

}  // namespace

TrafficPrediction predict_traffic(const Fabric& fabric, const TrafficSpec& spec,
                                  const Calibration& calibration) {
  const std::vector<TrafficStream> streams = traffic_streams(fabric, spec);
  TrafficPrediction result;
  result.channels = channel_count(fabric, spec);
  result.streams = streams.size();
  TrafficRun run(fabric, calibration, result.channels);
  run.run(streams);
  std::size_t last = 0;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (run.end(i) > run.end(last)) last = i;
    result.carried += streams[i].bytes * streams[i].hops;
  }
  result.time = run.end(last) - Instant{};
  result.aggregate = rate_of(static_cast<double>(result.carried.value), result.time);
  result.bus = bus_bandwidth(spec, result.time);
  std::tie(result.binding, result.busy) = run.busiest(last, result.time);
  result.slowest = streams[last].name;
  result.slowest_rate = rate_of(static_cast<double>(streams[last].bytes.value), result.time);
  return result;
}

}  // namespace isthmus::sim

#include "report/trace.hpp"

#include <algorithm>
#include <map>
#include <queue>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/timeline_view.hpp"
#include "sim/activity.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t path_process = 1, load_process = 2, first_domain = 3;

/// Microseconds, exactly.
std::string microseconds(std::int64_t picoseconds) {
  return fmt::format("{}.{:06}", picoseconds / 1'000'000, picoseconds % 1'000'000);
}

/// One event after the other, a line each.
class EventStream {
 public:
  explicit EventStream(const TraceSink& write) : write_(write) {
    buffer_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  }
  void add(std::string_view event) {
    if (events_++ > 0) buffer_ += ",\n";
    buffer_ += event;
    if (buffer_.size() >= 64'000) flush();
  }
  void finish(const Json& other_data) {
    buffer_ += fmt::format("\n],\"otherData\":{}}}\n", other_data.dump());
    flush();
  }

 private:
  void flush() {
    write_(buffer_);
    buffer_.clear();
  }
  const TraceSink& write_;
  std::string buffer_;
  std::size_t events_ = 0;
};

/// Something that takes time on a lane.
struct LaneEvent {
  std::uint32_t operation = 0;
  Instant begin, end;
};

/// Lanes in the order in which they are shown. Each becomes as many rows as events overlap on it.
struct LaneKey {
  std::uint64_t process = 0;
  std::uint64_t place = 0;  // GPU and NIC by GPU number; the domain's NVLink last
  friend auto operator<=>(const LaneKey&, const LaneKey&) = default;
};
struct TraceLane {
  std::string name;
  bool flow = false;  // counts bytes a second time
  std::vector<LaneEvent> events;
};

class TraceWriter {
 public:
  TraceWriter(const TracedRun& run, std::size_t limit, const TraceSink& write)
      : run_(run), stream_(write), view_(keep_operations(run.operations, run.timeline, limit)) {
    summary_.operations = view_.kept.size();
    summary_.dropped_operations = run.timeline.spans.size() - view_.kept.size();
    summary_.dropped_bytes = view_.dropped_bytes;
  }

  TraceSummary write() {
    name_processes();
    add_path();
    add_loads();
    sort_into_lanes();
    for (auto& [key, lane] : lanes_) write_lane(key, lane);
    stream_.finish({{"policy", run_.policy},
                    {"scenario", run_.refit.name},
                    {"timeline", run_.what},
                    {"seconds", seconds(run_.timeline.end)},
                    {"operations", summary_.operations},
                    {"dropped_operations", summary_.dropped_operations},
                    {"dropped_bytes", summary_.dropped_bytes.value},
                    {"links", summary_.links},
                    {"dropped_links", summary_.dropped_links}});
    return summary_;
  }

 private:
  const Operation& operation(std::uint32_t index) const { return run_.operations.list[index]; }
  Instant flow_begin(std::uint32_t index) const {
    return run_.flow_begins.empty() ? run_.timeline.spans[index].ready : run_.flow_begins[index];
  }

  void name_process(std::uint64_t process, const std::string& name) {
    stream_.add(fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"args":{{"name":{}}}}})",
                            process, Json(name).dump()));
    stream_.add(fmt::format(
        R"({{"ph":"M","name":"process_sort_index","pid":{0},"tid":0,"args":{{"sort_index":{0}}}}})",
        process));
  }

  void name_row(std::uint64_t process, std::uint64_t row, const std::string& name) {
    stream_.add(fmt::format(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
                            process, row, Json(name).dump()));
    stream_.add(fmt::format(
        R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})", process,
        row));
  }

  void name_processes() {
    name_process(path_process, fmt::format("critical path of {} ({})", run_.policy, run_.what));
    name_process(load_process, "load of links");
  }

  void write_span(std::uint64_t process, std::uint64_t row, const LaneEvent& event,
                  std::string_view category) {
    const Operation& what = operation(event.operation);
    stream_.add(fmt::format(
        R"({{"ph":"X","cat":"{}","name":"{}","pid":{},"tid":{},"ts":{},"dur":{},"args":{{"operation":{},)"
        R"("lane":{},"group":{},"bytes":{},"bulk_bytes":{},"tensors":{}}}}})",
        category, operation_name(run_.operations, what), process, row, microseconds(event.begin.value),
        microseconds((event.end - event.begin).value), event.operation,
        Json(run_.operations.lanes[what.lane.index()].name).dump(), what.group, what.bytes.value,
        what.bulk_bytes.value, what.parts));
  }

  void add_path() {
    name_row(path_process, 1, "critical path");
    for (const std::uint32_t i : view_.path) {
      const Span& span = run_.timeline.spans[i];
      if (view_.is_kept[i] != 0) write_span(path_process, 1, {i, span.ready, span.end}, "path");
    }
  }

  /// Counters of the links that are loaded most.
  void add_loads() {
    sim::Activity activity = sim::activity(run_.refit, run_.operations, run_.timeline, run_.flow_begins,
                                           run_.calibration, trace_steps);
    std::vector<sim::LinkActivity>& links = activity.links;
    std::stable_sort(links.begin(), links.end(),
                     [](const auto& a, const auto& b) { return a.busy > b.busy; });
    summary_.links = std::min(links.size(), trace_most_links);
    summary_.dropped_links = links.size() - summary_.links;
    links.resize(summary_.links);
    for (const sim::LinkActivity& link : links) {
      const std::string name = Json(run_.refit.fabric.links()[link.link.index()].name).dump();
      for (std::size_t s = 0; s <= link.load.size(); ++s) {
        const double percent = s == link.load.size() ? 0 : 100 * link.load[s];
        stream_.add(fmt::format(
            R"({{"ph":"C","name":{},"pid":{},"tid":0,"ts":{},"args":{{"percent":{:.3f}}}}})", name,
            load_process, microseconds(activity.step.value * static_cast<std::int64_t>(s)), percent));
      }
    }
  }

  TraceLane& lane(std::uint64_t domain, std::uint64_t place, const std::string& name, bool flow) {
    TraceLane& found = lanes_[{first_domain + domain, place}];
    found.name = name;
    found.flow = flow;
    return found;
  }

  void sort_into_lanes() {
    const Fabric& fabric = run_.refit.fabric;
    for (const std::uint32_t i : view_.kept) {
      const Operation& what = operation(i);
      const Span& span = run_.timeline.spans[i];
      const GpuId gpu = run_.refit.gpu(what.source);
      const std::uint64_t domain = fabric.domain_of(gpu).value;
      const std::string name = fmt::format("GPU {}", gpu.value);
      lane(domain, 2 * gpu.index(), name, false).events.push_back({i, span.ready, span.end});
      const LaneEvent flow{i, flow_begin(i), span.end};
      if (leaves_domain(run_.refit, run_.operations, what)) {
        lane(domain, 2 * gpu.index() + 1, "NIC of " + name, true).events.push_back(flow);
      } else if (leaves_gpu(run_.refit, run_.operations, what)) {
        const std::uint64_t place = 2 * fabric.gpu_count();
        lane(domain, place, fmt::format("NVLink of domain {}", domain), true).events.push_back(flow);
      }
    }
  }

  /// The first row that is free takes an event.
  void write_lane(const LaneKey& key, TraceLane& lane) {
    if (key.process != last_process_) {
      name_process(key.process, fmt::format("NVLink domain {}", key.process - first_domain));
      last_process_ = key.process;
      rows_ = 0;
    }
    std::stable_sort(lane.events.begin(), lane.events.end(),
                     [](const LaneEvent& a, const LaneEvent& b) { return a.begin < b.begin; });
    std::vector<std::vector<LaneEvent>> rows;
    using FreeRow = std::pair<Instant, std::size_t>;  // free from, number
    std::priority_queue<FreeRow, std::vector<FreeRow>, std::greater<>> free;
    for (const LaneEvent& event : lane.events) {
      if (free.empty() || free.top().first > event.begin) {
        rows.emplace_back();
        rows.back().push_back(event);
        free.emplace(event.end, rows.size() - 1);
        continue;
      }
      const std::size_t row = free.top().second;
      free.pop();
      rows[row].push_back(event);
      free.emplace(event.end, row);
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
      name_row(key.process, ++rows_, r == 0 ? lane.name : fmt::format("{} ({})", lane.name, r + 1));
      for (const LaneEvent& event : rows[r])
        write_span(key.process, rows_, event, lane.flow ? "flow" : "operation");
    }
  }

  const TracedRun& run_;
  EventStream stream_;
  TraceSummary summary_;
  KeptOperations view_;
  std::map<LaneKey, TraceLane> lanes_;
  std::uint64_t last_process_ = 0, rows_ = 0;
};

}  // namespace

TraceSummary write_trace(const TracedRun& run, std::size_t limit, const TraceSink& write) {
  return TraceWriter(run, limit, write).write();
}

TraceSummary trace_prediction(const Refit& refit, const Plan& plan, const Calibration& calibration,
                              std::size_t limit, const TraceSink& write) {
  const Operations operations = expand(refit, plan);
  sim::Prediction prediction = sim::simulate(refit, operations, calibration, sim::Detail::terms);
  return write_trace({refit, operations, prediction.timeline, plan.policy,
                      "predicted under " + calibration.name, std::move(prediction.flow_begins), &calibration},
                     limit, write);
}

TraceSummary trace_measurement(const Refit& refit, const Plan& plan, const hw::Measurement& measurement,
                               std::size_t limit, const TraceSink& write) {
  const Operations operations = expand(refit, plan);
  const std::string what = fmt::format("measured on {} ({})", measurement.backend, measurement.device);
  return write_trace({refit, operations, measurement.timeline, plan.policy, what}, limit, write);
}

}  // namespace isthmus::report

#include "report/page_data.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "planner/check.hpp"
#include "planner/operations.hpp"
#include "planner/policies/local_puts.hpp"
#include "report/explain.hpp"
#include "report/page_traffic.hpp"
#include "report/timeline_view.hpp"
#include "sim/activity.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t most_path_segments = 24;

/// Six digits are more than any of these shares is true to, and keep the page small.
double rounded(double share) { return std::round(share * 1e6) / 1e6; }

class PageWriter {
 public:
  PageWriter(const Refit& refit, const Operations& operations, const Calibration& calibration,
             const PageLimits& limits)
      : refit_(refit),
        operations_(operations),
        calibration_(calibration),
        limits_(limits),
        run_(sim::simulate(refit, operations, calibration, sim::Detail::terms)) {}

  double seconds() const { return isthmus::seconds(run_.time); }

  Json timeline() const {
    const KeptOperations view = keep_operations(operations_, run_.timeline, limits_.events);
    std::map<StepKind, std::size_t> kinds;
    Json events = Json::array(), names = Json::array(), gpus = Json::array();
    for (const GpuId gpu : refit_.gpu_of_rank) gpus.push_back(gpu.value);
    for (const std::uint32_t i : view.kept) {
      const auto found = kinds.try_emplace(operations_.list[i].kind, kinds.size());
      if (found.second) names.push_back(to_string(operations_.list[i].kind));
      events.push_back(event(i, found.first->second, view.is_critical[i] != 0));
    }
    return {{"operations", operations_.list.size()},
            {"dropped_operations", operations_.list.size() - view.kept.size()},
            {"dropped_bytes", view.dropped_bytes.value},
            {"critical_operations", view.path.size()},
            {"gpu_of_rank", std::move(gpus)},
            {"kinds", std::move(names)},
            {"events", std::move(events)},
            {"step_seconds", seconds() / static_cast<double>(limits_.steps)},
            {"domains", domain_loads()}};
  }

  Json traffic() const {
    const TrafficMatrix matrix = traffic_matrix(refit_, operations_, limits_.rows);
    Json cells = Json::array();
    std::int64_t sum = 0, largest = 0;
    for (std::size_t i = 0; i < matrix.bytes.size(); ++i) {
      if (matrix.bytes[i] == 0) continue;
      cells.push_back({i / matrix.size(), i % matrix.size(), matrix.bytes[i]});
      sum += matrix.bytes[i];
      largest = std::max(largest, matrix.bytes[i]);
    }
    return {{"unit", matrix.unit},      {"ranks", refit_.ranks()}, {"bytes", sum},
            {"largest_bytes", largest}, {"names", matrix.names},   {"cells", std::move(cells)}};
  }

  Json fabric() const {
    const Fabric& fabric = refit_.fabric;
    std::map<std::uint32_t, std::map<std::uint32_t, std::vector<GpuId>>> machines;  // domain, host
    for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
      machines[fabric.domain_of({g}).value][fabric.host_of({g}).value].push_back({g});
    }
    Json domains = Json::array();
    for (const auto& [domain, hosts] : machines) {
      Json list = Json::array();
      for (const auto& [host, gpus] : hosts) list.push_back(host_json(host, gpus));
      domains.push_back({{"domain", domain}, {"hosts", std::move(list)}});
    }
    return {{"gpus", fabric.gpu_count()},    {"gpus_drawn", fabric.gpu_count() <= limits_.gpus},
            {"domains", std::move(domains)}, {"leaves", leaves()},
            {"classes", classes()},          {"links", busiest_links()}};
  }

  Json path() const {
    Json list = Json::array();
    for (const PathSegment& each :
         critical_segments(refit_, operations_, run_.timeline, most_path_segments)) {
      list.push_back({{"begin_seconds", isthmus::seconds(each.begin)},
                      {"end_seconds", isthmus::seconds(each.end)},
                      {"what", each.what},
                      {"operations", each.operations},
                      {"bytes", each.bytes.value},
                      {"mostly", each.mostly}});
    }
    return list;
  }

 private:
  /// GPU, ready, begin of the flow, end (nanoseconds), kind, source, target, bytes, flags: 1 critical, 2
  /// leaves its domain, 4 leaves its GPU. Target of a collective: minus its members.
  Json event(std::uint32_t index, std::size_t kind, bool critical) const {
    const Operation& what = operations_.list[index];
    const Span& span = run_.timeline.spans[index];
    const Instant flow = run_.flow_begins.empty() ? span.ready : run_.flow_begins[index];
    std::int64_t target = what.target.value;
    if (operations_.collective(what))
      target = -static_cast<std::int64_t>(operations_.members[what.members].size());
    const int flags = (critical ? 1 : 0) + (leaves_domain(refit_, operations_, what) ? 2 : 0) +
                      (leaves_gpu(refit_, operations_, what) ? 4 : 0);
    return {refit_.gpu(what.source).value,
            span.ready.value / 1000,
            flow.value / 1000,
            span.end.value / 1000,
            kind,
            what.source.value,
            target,
            what.bytes.value,
            flags};
  }

  /// Links of one kind of the GPUs of a domain together, by step, in thousandths.
  Json load(const std::vector<const sim::LinkActivity*>& by_link, const std::set<LinkId>& links) const {
    double rates = 0;
    std::vector<double> carried(limits_.steps, 0);
    for (const LinkId link : links) {
      rates += static_cast<double>(calibration_.achieved(refit_.fabric.links()[link.index()]).value);
      const sim::LinkActivity* activity = by_link[link.index()];
      if (activity == nullptr) continue;
      for (std::size_t s = 0; s < limits_.steps; ++s)
        carried[s] += activity->load[s] * static_cast<double>(activity->rate.value);
    }
    if (rates == 0) return nullptr;
    Json list = Json::array();
    for (const double each : carried) list.push_back(std::lround(1000 * each / rates));
    return list;
  }

  Json domain_loads() const {
    const Fabric& fabric = refit_.fabric;
    const sim::Activity activity =
        sim::activity(refit_, operations_, run_.timeline, run_.flow_begins, &calibration_, limits_.steps);
    std::vector<const sim::LinkActivity*> by_link(fabric.links().size(), nullptr);
    for (const sim::LinkActivity& each : activity.links) by_link[each.link.index()] = &each;
    std::map<std::uint32_t, std::set<std::uint32_t>> domains;  // those with ranks, and all of their GPUs
    for (const GpuId gpu : refit_.gpu_of_rank) domains[fabric.domain_of(gpu).value] = {};
    for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
      const auto found = domains.find(fabric.domain_of({g}).value);
      if (found != domains.end()) found->second.insert(g);
    }
    Json list = Json::array();
    for (const auto& [domain, gpus] : domains) {
      if (list.size() == limits_.rows) break;
      std::set<LinkId> nvlink, out, in;
      for (const std::uint32_t gpu : gpus) {
        if (const auto link = fabric.nvlink_out({gpu})) nvlink.insert(*link);
        if (const auto link = fabric.nic_out({gpu})) out.insert(*link);
        if (const auto link = fabric.nic_in({gpu})) in.insert(*link);
      }
      list.push_back({{"domain", domain},
                      {"gpus", gpus},
                      {"nvlink", load(by_link, nvlink)},
                      {"network_out", load(by_link, out)},
                      {"network_in", load(by_link, in)}});
    }
    return list;
  }

  double use(LinkId link) const {
    if (run_.time.value == 0) return 0;
    const Bytes bytes = run_.timeline.link_bytes[link.index()];
    const Duration busy = bytes / calibration_.achieved(refit_.fabric.links()[link.index()]);
    return rounded(isthmus::seconds(busy) / seconds());
  }
  Json use(std::optional<LinkId> link) const { return link ? Json(use(*link)) : Json(); }

  Json host_json(std::uint32_t host, const std::vector<GpuId>& gpus) const {
    const Fabric& fabric = refit_.fabric;
    Json list = Json::array();
    double nvlink = 0, nic = 0;
    for (const GpuId gpu : gpus) {
      const auto nvlink_out = fabric.nvlink_out(gpu), nvlink_in = fabric.nvlink_in(gpu);
      const auto nic_out = fabric.nic_out(gpu), nic_in = fabric.nic_in(gpu);
      for (const auto& link : {nvlink_out, nvlink_in}) nvlink = std::max(nvlink, link ? use(*link) : 0);
      for (const auto& link : {nic_out, nic_in}) nic = std::max(nic, link ? use(*link) : 0);
      if (fabric.gpu_count() > limits_.gpus) continue;
      list.push_back({{"gpu", gpu.value},
                      {"nvlink_out", use(nvlink_out)},
                      {"nvlink_in", use(nvlink_in)},
                      {"nic_out", use(nic_out)},
                      {"nic_in", use(nic_in)}});
    }
    return {{"host", host}, {"nvlink_most", nvlink}, {"nic_most", nic}, {"gpus", std::move(list)}};
  }

  /// Up-links go by the name of their leaf; a network of wires has none of that name.
  Json leaves() const {
    const Fabric& fabric = refit_.fabric;
    std::map<std::string, LinkId> by_name;
    for (std::uint32_t l = 0; l < fabric.links().size(); ++l) {
      if (fabric.links()[l].link_class == LinkClass::switch_uplink)
        by_name.emplace(fabric.links()[l].name, LinkId{l});
    }
    std::set<std::uint32_t> switches;
    for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
      if (const auto found = fabric.switch_of({g})) switches.insert(*found);
    }
    const auto use_of = [&](const std::string& name) {
      const auto found = by_name.find(name);
      return found == by_name.end() ? Json() : Json(use(found->second));
    };
    Json list = Json::array();
    for (const std::uint32_t each : switches) {
      const std::string& name = fabric.topology().network.switches[each].name;
      list.push_back(
          {{"leaf", name}, {"up", use_of(name + " up-links")}, {"down", use_of(name + " down-links")}});
    }
    return list;
  }

  Json classes() const {
    struct ClassUse {
      std::size_t links = 0, used = 0;
      double sum = 0, most = 0;
    };
    std::map<LinkClass, ClassUse> classes;
    for (std::uint32_t l = 0; l < refit_.fabric.links().size(); ++l) {
      ClassUse& each = classes[refit_.fabric.links()[l].link_class];
      const double share = use(LinkId{l});
      ++each.links;
      if (share > 0) ++each.used;
      each.sum += share;
      each.most = std::max(each.most, share);
    }
    Json list = Json::array();
    for (const auto& [link_class, each] : classes) {
      list.push_back({{"class", to_string(link_class)},
                      {"links", each.links},
                      {"used", each.used},
                      {"mean_use", rounded(each.sum / static_cast<double>(each.links))},
                      {"most_use", each.most}});
    }
    return list;
  }

  Json busiest_links() const {
    std::vector<std::pair<double, std::uint32_t>> order;
    for (std::uint32_t l = 0; l < refit_.fabric.links().size(); ++l) {
      if (run_.timeline.link_bytes[l].value > 0) order.emplace_back(-use(LinkId{l}), l);
    }
    std::sort(order.begin(), order.end());
    order.resize(std::min(order.size(), limits_.links));
    Json list = Json::array();
    for (const auto& [negative, l] : order) {
      const Link& link = refit_.fabric.links()[l];
      list.push_back({{"link", link.name},
                      {"class", to_string(link.link_class)},
                      {"bytes", run_.timeline.link_bytes[l].value},
                      {"bytes_per_second", calibration_.achieved(link).value},
                      {"use", -negative}});
    }
    return list;
  }

  const Refit& refit_;
  const Operations& operations_;
  const Calibration& calibration_;
  const PageLimits& limits_;
  sim::Prediction run_;
};

Json constants_json(const Calibration& calibration) {
  Json list = Json::array();
  const auto number = [](double value) { return std::isfinite(value) ? Json(value) : Json(); };
  for (const ConstantField& field : calibration_fields()) {
    const Constant& constant = calibration.*field.member;
    list.push_back({{"constant", field.key},
                    {"unit", field.unit},
                    {"value", number(constant.value)},
                    {"low", number(constant.low)},
                    {"high", number(constant.high)},
                    {"provenance", to_string(constant.provenance)},
                    {"source", constant.source}});
  }
  return list;
}

Json settings_json(const Refit& refit) {
  const RefitSpec& spec = refit.settings;
  const std::string_view bulk = spec.bulk.kind == BulkRule::Kind::ffn   ? "ffn"
                                : spec.bulk.kind == BulkRule::Kind::all ? "all"
                                                                        : "match";
  return {{"training_ranks", refit.train_ranks},
          {"generation_ranks", refit.generate_ranks},
          {"relay_ranks", refit.relay_ranks},
          {"hosts", refit.fabric.host_count()},
          {"gpus", refit.fabric.gpu_count()},
          {"tensors", refit.tensors.size()},
          {"bulk", bulk},
          {"streams", spec.streams},
          {"buffers", spec.buffers},
          {"packet_bytes", spec.packet_bytes.value},
          {"relay", spec.relay == Relay::any ? "any" : "members"}};
}

}  // namespace

std::string page_data(const Refit& refit, const Policy& policy, const Calibration& calibration,
                      const std::vector<std::string>& assumed, const PageLimits& limits) {
  const PlanResult made = plan_under(policy, refit, calibration);
  const Operations operations = expand(refit, std::get<Plan>(made));
  const PageWriter writer(refit, operations, calibration, limits);
  const Json document{{"policy", policy.name},
                      {"seconds", writer.seconds()},
                      {"timeline", writer.timeline()},
                      {"traffic", writer.traffic()},
                      {"fabric", writer.fabric()},
                      {"path", writer.path()},
                      {"settings", settings_json(refit)},
                      {"assumed", assumed},
                      {"calibration", calibration.name},
                      {"constants", constants_json(calibration)}};
  return document.dump();
}

}  // namespace isthmus::report

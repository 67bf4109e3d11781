#include "report/refit_cost.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <variant>

#include "model/error.hpp"
#include "planner/check.hpp"
#include "sim/simulation.hpp"

namespace isthmus::report {
namespace {

constexpr std::int64_t whole_speed = 1'000'000'000;

Disturbances with_decoding(Disturbances disturbances, const DecodeSpec& decode) {
  const auto add = [&](BackgroundLoad::On on, double share) {
    if (share == 0) return;
    BackgroundLoad load;
    load.on = on;
    load.side = BackgroundLoad::Side::generate;
    load.share = share;
    load.flows = decode.flows;
    disturbances.background.push_back(load);
  };
  add(BackgroundLoad::On::nvlink, decode.nvlink);
  add(BackgroundLoad::On::nic, decode.nic);
  add(BackgroundLoad::On::memory, decode.memory);
  return disturbances;
}

std::int64_t share_of(const sim::BackgroundShare& got, Duration time) {
  const Int128 wanted = Int128{got.wanted.value} * time.value;
  if (wanted == 0) return whole_speed;
  const Int128 moved = Int128{got.moved.value} * picoseconds_per_second;
  return std::min(whole_speed, static_cast<std::int64_t>((moved * whole_speed + wanted / 2) / wanted));
}

std::int64_t kept_by_sms(const DecodeSpec& decode, int ctas) {
  if (decode.sm == 0) return whole_speed;
  const double left = std::max(0, decode.sms - ctas) / (decode.sms * decode.sm);
  return std::min<std::int64_t>(whole_speed, std::llround(left * static_cast<double>(whole_speed)));
}

/// The least that loads got, by port.
struct PortShares {
  std::map<std::uint32_t, std::int64_t> links, memories;

  static std::int64_t at(const std::map<std::uint32_t, std::int64_t>& shares, std::uint32_t where) {
    const auto known = shares.find(where);
    return known == shares.end() ? whole_speed : known->second;
  }
  std::int64_t of(const Fabric& fabric, GpuId gpu) const {
    std::int64_t least = at(memories, gpu.value);
    for (const auto link :
         {fabric.nvlink_out(gpu), fabric.nvlink_in(gpu), fabric.nic_out(gpu), fabric.nic_in(gpu)}) {
      if (link) least = std::min(least, at(links, link->value));
    }
    return least;
  }
};

}  // namespace

RefitCosts::RefitCosts(const Refit& refit, const Calibration& calibration, std::size_t engine_ranks,
                       const Policy& policy)
    : refit_(refit), calibration_(calibration), engine_ranks_(engine_ranks) {
  const PlanResult made = policy.make(refit);
  if (const Refused* refused = std::get_if<Refused>(&made)) {
    refused_ = refused->reason;
    return;
  }
  const Plan& plan = std::get<Plan>(made);
  if (const Proof proof = check(refit, plan); !proof.proven()) {
    refused_ = "not proven: " + proof.violations.front().message;
    return;
  }
  operations_ = expand(refit, plan);
}

RefitCost RefitCosts::run(const DecodeSpec& decode, int ctas, bool beside) const {
  RefitCost cost;
  const sim::Prediction alone =
      sim::Simulator(refit_, *operations_, refit_.disturbances, ctas).run(calibration_);
  if (alone.outcome.stopped()) {
    throw InputError({{}, 0, "faults"}, "faults that stop the refit", "failed_steps: {policy: retry}");
  }
  cost.alone = cost.beside = alone.time;
  cost.loading = alone.other;
  cost.binding_alone = cost.binding_beside = alone.binding_resource;
  if (!beside) return cost;
  cost.decoding = kept_by_sms(decode, ctas);
  const Disturbances disturbances = with_decoding(refit_.disturbances, decode);
  if (disturbances.background.size() > refit_.disturbances.background.size()) {
    cost.decoding = std::min(cost.decoding, kept_by_ports(disturbances, ctas, cost));
  }
  return cost;
}

/// Runs the refit beside decoding.
std::int64_t RefitCosts::kept_by_ports(const Disturbances& disturbances, int ctas, RefitCost& cost) const {
  const sim::Prediction loaded = sim::Simulator(refit_, *operations_, disturbances, ctas).run(calibration_);
  cost.beside = loaded.time;
  cost.binding_beside = loaded.binding_resource;
  PortShares ports;
  for (const sim::BackgroundShare& got : loaded.background) {
    if (got.load < refit_.disturbances.background.size()) continue;
    auto& shares = got.on_memory ? ports.memories : ports.links;
    std::int64_t& least = shares.try_emplace(got.where, whole_speed).first->second;
    least = std::min(least, share_of(got, loaded.time));
  }
  std::vector<std::int64_t> engines((refit_.generate_ranks + engine_ranks_ - 1) / engine_ranks_, whole_speed);
  for (std::size_t r = 0; r < refit_.generate_ranks; ++r) {
    const Rank rank{static_cast<std::uint32_t>(refit_.train_ranks + r)};
    std::int64_t& least = engines[r / engine_ranks_];
    least = std::min(least, ports.of(refit_.fabric, refit_.gpu(rank)));
  }
  std::int64_t sum = 0;
  for (const std::int64_t kept : engines) sum += kept;
  return engines.empty() ? whole_speed : sum / static_cast<std::int64_t>(engines.size());
}

}  // namespace isthmus::report

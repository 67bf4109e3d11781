#include "tests/sim/fault_case.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "planner/queues.hpp"
#include "tests/support/refit_generator.hpp"

namespace isthmus::sim::cases {
namespace {

constexpr long double ps_per_second = 1e12L;

class NaiveFaults {
 public:
  NaiveFaults(const Refit& refit, const Operations& operations, const Disturbances& disturbances)
      : refit_(refit),
        disturbances_(disturbances),
        plan_(operations),
        queues_(plan_),
        flows_(operations.list.size()) {
    for (std::size_t i = 0; i < flows_.size(); ++i) {
      const Operation& operation = operations.list[i];
      flows_[i].bytes = static_cast<long double>(operation.bytes.value);
      flows_[i].route = refit.fabric.route(refit.gpu(operation.source), refit.gpu(operation.target));
    }
    for (const MachineFault& fault : disturbances.faults) {
      affected_.push_back(affected(refit.fabric, fault.what).links);
    }
  }

  NaiveFaultRun run() {
    std::vector<std::uint32_t> ready;
    queues_.begin(ready);
    start(ready);
    while (true) {
      fail_and_retry();
      fill();
      const long double next = next_event();
      if (std::isinf(next)) break;
      drain(next);
    }
    NaiveFaultRun result;
    for (const NaiveFlow& flow : flows_) result.ends.push_back(flow.end);
    return result;
  }

 private:
  struct NaiveFlow {
    std::vector<LinkId> route;
    long double bytes = 0, left = 0, rate = 0, end = -1, again = -1;
    bool active = false, fixed = false;
  };

  void start(const std::vector<std::uint32_t>& ready) {
    std::vector<std::uint32_t> next, now = ready;
    while (!now.empty()) {
      next.clear();
      for (const std::uint32_t i : now) {
        flows_[i].left = flows_[i].bytes;
        flows_[i].active = true;
        if (!flows_[i].route.empty() && flows_[i].bytes > 0) continue;
        complete(i, next);  // within one GPU: memory takes no time
      }
      now = next;
    }
  }

  void complete(std::uint32_t i, std::vector<std::uint32_t>& ready) {
    flows_[i].active = false;
    flows_[i].end = now_;
    queues_.complete(i, ready);
  }

  long double share(LinkId link) const {
    long double least = 1;
    for (std::size_t f = 0; f < affected_.size(); ++f) {
      const MachineFault& fault = disturbances_.faults[f];
      const bool on = static_cast<long double>(fault.at.value) <= now_ &&
                      (!fault.until || now_ < static_cast<long double>(fault.until->value));
      const std::vector<LinkId>& links = affected_[f];
      if (on && std::find(links.begin(), links.end(), link) != links.end()) {
        least = std::min(least, static_cast<long double>(fault.share));
      }
    }
    return least;
  }

  bool down(const NaiveFlow& flow) const {
    return std::any_of(flow.route.begin(), flow.route.end(),
                       [this](LinkId link) { return share(link) == 0; });
  }

  void fail_and_retry() {
    const auto timeout = static_cast<long double>(disturbances_.failed_steps.timeout.value);
    for (NaiveFlow& flow : flows_) {
      if (flow.again >= 0 && flow.again <= now_) {
        flow.active = true;
        flow.left = flow.bytes;
        flow.again = -1;
      }
      if (!flow.active || !down(flow)) continue;
      flow.active = false;
      if (disturbances_.failed_steps.policy == FailedSteps::retry) flow.again = now_ + timeout;
    }
  }

  void fill() {
    const std::vector<Link>& links = refit_.fabric.links();
    std::vector<long double> left(links.size()), users(links.size());
    for (std::uint32_t l = 0; l < links.size(); ++l) {
      left[l] = static_cast<long double>(links[l].nominal.value) * share({l});
    }
    for (NaiveFlow& flow : flows_) flow.fixed = !flow.active;
    while (true) {
      std::fill(users.begin(), users.end(), 0);
      for (const NaiveFlow& flow : flows_) {
        if (flow.fixed) continue;
        for (const LinkId link : flow.route) users[link.index()] += 1;
      }
      long double level = INFINITY;
      for (std::size_t l = 0; l < links.size(); ++l) {
        if (users[l] > 0) level = std::min(level, left[l] / users[l]);
      }
      if (std::isinf(level)) return;
      std::vector<char> full(links.size(), 0);
      for (std::size_t l = 0; l < links.size(); ++l) {
        full[l] = users[l] > 0 && left[l] / users[l] <= level * (1 + 1e-15L) ? 1 : 0;
      }
      for (NaiveFlow& flow : flows_) {
        const bool stays = !flow.fixed && std::any_of(flow.route.begin(), flow.route.end(),
                                                      [&](LinkId link) { return full[link.index()] != 0; });
        if (!stays) continue;
        flow.fixed = true;
        flow.rate = level;
        for (const LinkId link : flow.route) left[link.index()] -= level;
      }
    }
  }

  long double next_event() const {
    long double next = INFINITY;
    bool alive = false;
    for (const NaiveFlow& flow : flows_) {
      if (flow.active) next = std::min(next, now_ + flow.left / flow.rate * ps_per_second);
      if (flow.again >= 0) next = std::min(next, flow.again);
      alive = alive || flow.active || (flow.again >= 0 && may_return(flow));
    }
    if (!alive) return INFINITY;
    const auto consider = [&](Duration when) {
      if (static_cast<long double>(when.value) > now_)
        next = std::min(next, static_cast<long double>(when.value));
    };
    for (const MachineFault& fault : disturbances_.faults) {
      consider(fault.at);
      if (fault.until) consider(*fault.until);
    }
    return next;
  }

  /// Whether what is down on its way ever ends.
  bool may_return(const NaiveFlow& flow) const {
    for (std::size_t f = 0; f < affected_.size(); ++f) {
      const MachineFault& fault = disturbances_.faults[f];
      const bool now = static_cast<long double>(fault.at.value) <= now_;
      if (!now || fault.share > 0 || fault.until) continue;
      for (const LinkId link : flow.route) {
        if (std::find(affected_[f].begin(), affected_[f].end(), link) != affected_[f].end()) return false;
      }
    }
    return true;
  }

  void drain(long double next) {
    std::vector<std::uint32_t> ready;
    const long double passed = next - now_;
    const long double before = now_;
    now_ = next;
    for (std::uint32_t i = 0; i < flows_.size(); ++i) {
      NaiveFlow& flow = flows_[i];
      if (!flow.active) continue;
      const bool ends = before + flow.left / flow.rate * ps_per_second <= next + 1e-3L;
      flow.left -= flow.rate * passed / ps_per_second;
      if (ends) complete(i, ready);
    }
    start(ready);
  }

  const Refit& refit_;
  const Disturbances& disturbances_;
  QueuePlan plan_;
  Queues queues_;
  std::vector<NaiveFlow> flows_;
  std::vector<std::vector<LinkId>> affected_;  // by fault
  long double now_ = 0;
};

}  // namespace

Refit fault_refit(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto power = [&](std::uint32_t most) { return std::int64_t{1} << (random() % (most + 1)); };
  std::vector<TensorSpec> tensors;
  for (std::uint32_t t = 0; t < 2; ++t) {
    TensorSpec spec;
    spec.name = "weight" + std::to_string(t);
    const std::vector<std::int64_t> shape{512 + static_cast<std::int64_t>(random() % 3), 4096};
    const auto side = [&](std::int64_t many, std::int64_t shards, std::uint32_t first) {
      const int dimension = static_cast<int>(random() % 2);
      return Layout{shape,
                    Dtype::bf16,
                    contiguous_mesh({many, shards}, Rank{first}),
                    {{}, {dimension}},
                    ChunkRule::balanced};
    };
    const std::int64_t source = power(3), target = power(3);
    spec.source = side(power(1), source, 0);
    spec.target = side(power(1), target, 16);
    tensors.push_back(std::move(spec));
  }
  Refit refit = isthmus::test::make_refit({tensors, 32});
  refit.fabric = Fabric({"dgx-h100", 4, std::nullopt, std::nullopt});
  return refit;
}

std::vector<MachineFault> random_faults(std::uint64_t seed, Duration healthy) {
  std::mt19937_64 random(seed + 1'000'000);
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random() % bound); };
  std::vector<MachineFault> faults;
  for (std::uint32_t n = below(2) + 1; n > 0; --n) {
    MachineFault fault;
    const std::int64_t step = std::max<std::int64_t>(1, healthy.value / 16);
    fault.at = {step * below(17) + 1};
    const auto kinds = std::vector{FaultSubject::Kind::nic, FaultSubject::Kind::nic, FaultSubject::Kind::gpu,
                                   FaultSubject::Kind::host};
    fault.what.kind = kinds[below(4)];
    // Mostly where the first ranks of a side are: small meshes leave the rest of the machine idle.
    fault.what.number = below(3) == 0 ? below(4) : 2 * below(2);
    if (fault.what.kind != FaultSubject::Kind::host && below(3) == 0) fault.what.gpu = below(8);
    if (below(3) == 0) fault.share = 0.25 * (1 + below(3));
    if (below(2) == 0) fault.until = fault.at + Duration{step * (1 + below(8)) + 3};
    faults.push_back(fault);
  }
  return faults;
}

NaiveFaultRun naive_fault_run(const Refit& refit, const Operations& operations,
                              const Disturbances& disturbances) {
  return NaiveFaults(refit, operations, disturbances).run();
}

}  // namespace isthmus::sim::cases

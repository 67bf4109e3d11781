#include "planner/policies/nic_loans.hpp"

#include <algorithm>
#include <map>

#include "planner/byte_classes.hpp"

namespace isthmus {
namespace {

constexpr double smallest_loan = 16e6;  // bytes
constexpr int halvings = 40;            // of the interval in which the level lies

/// A GPU's ports, in bytes and bytes per second.
struct PortState {
  GpuId gpu;
  double load = 0, nic = 0;          // of its NIC: its own bytes; the rate, none where it has no NIC
  double nic_load = 0, sharers = 1;  // of all GPUs on the NIC; how many of them may lend it
  double detour = 0, lent = 0;       // bytes on its NVLink in the direction that borrowing (lending) takes
  double detour_rate = 0, lent_rate = 0;
  bool lends = false;

  double wants(double time) const {
    const double excess = nic_load - time * nic;
    return excess > 0 && load > 0 ? excess * load / nic_load : 0;
  }
  double offers(double time) const {
    if (!lends) return 0;
    return std::max(0.0, std::min((time * nic - nic_load) / sharers, time * lent_rate - lent));
  }
};

class Level {
 public:
  Level(const Refit& refit, const PortLoads& loads, NicSide side) {
    const bool out = side == NicSide::out;
    const Fabric& fabric = refit.fabric;
    std::vector<char> lends = taking_part(refit), has_rank(fabric.gpu_count());
    for (const GpuId gpu : refit.gpu_of_rank) has_rank[gpu.index()] = 1;
    domains_.resize(fabric.domain_count());
    for (std::uint32_t g = 0; g < fabric.gpu_count(); ++g) {
      PortState port{{g}};
      const auto nic = out ? fabric.nic_out({g}) : fabric.nic_in({g});
      const auto borrowing = out ? fabric.nvlink_out({g}) : fabric.nvlink_in({g});
      const auto lending = out ? fabric.nvlink_in({g}) : fabric.nvlink_out({g});
      if (has_rank[g] == 0 || !nic || !borrowing || !lending) continue;
      const auto rate = [&](LinkId link) { return real(fabric.links()[link.index()].nominal.value); };
      port.load = real((out ? loads.network_out : loads.network_in)[g].value);
      port.detour = real((out ? loads.nvlink_out : loads.nvlink_in)[g].value);
      port.lent = real((out ? loads.nvlink_in : loads.nvlink_out)[g].value);
      port.nic = rate(*nic);
      port.detour_rate = rate(*borrowing);
      port.lent_rate = rate(*lending);
      port.lends = lends[g] != 0;
      nics_.push_back(*nic);
      ports_.push_back(port);
      domains_[fabric.domain_of({g}).index()].push_back(ports_.size() - 1);
    }
    share_nics();
  }

  std::vector<NicLoan> loans(double least) const {
    double highest = least;
    for (const PortState& port : ports_) highest = std::max(highest, port.nic_load / port.nic);
    double low = least, high = highest;
    for (int i = 0; i < halvings && high > least; ++i) {
      const double middle = i == 0 ? least : (low + high) / 2;
      (feasible(middle) ? high : low) = middle;
    }
    std::vector<NicLoan> loans;
    if (!worthwhile_loan(highest, high)) return loans;
    for (const std::vector<std::size_t>& domain : domains_) place(domain, high, loans);
    return loans;
  }

 private:
  static double real(std::int64_t value) { return static_cast<double>(value); }

  /// GPUs may share a NIC: its load and its room are theirs together.
  void share_nics() {
    std::map<LinkId, std::pair<double, double>> sums;  // load, lenders
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      sums[nics_[i]].first += ports_[i].load;
      sums[nics_[i]].second += ports_[i].lends ? 1 : 0;
    }
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      ports_[i].nic_load = sums[nics_[i]].first;
      ports_[i].sharers = std::max(1.0, sums[nics_[i]].second);
    }
  }

  bool feasible(double time) const {
    return std::all_of(domains_.begin(), domains_.end(), [&](const std::vector<std::size_t>& domain) {
      double wanted = 0, offered = 0;
      for (const std::size_t i : domain) {
        const PortState& port = ports_[i];
        const double wants = port.wants(time);
        if (wants > 0 && port.detour + wants > time * port.detour_rate) return false;
        wanted += wants;
        offered += port.offers(time);
      }
      return wanted <= offered;
    });
  }

  /// Borrowers in order, each from the lenders in order until it has enough.
  void place(const std::vector<std::size_t>& domain, double time, std::vector<NicLoan>& loans) const {
    double wanted = 0;
    for (const std::size_t i : domain) wanted += ports_[i].wants(time);
    if (wanted < 1) return;
    std::vector<Offer> lenders = choose(domain, time, wanted);
    std::size_t at = 0;
    for (const std::size_t i : domain) {
      for (double open = ports_[i].wants(time); open >= 1 && at < lenders.size();) {
        const double given = std::min(open, lenders[at].bytes);
        loans.push_back({ports_[i].gpu, lenders[at].gpu, {static_cast<std::int64_t>(given)}});
        open -= given;
        lenders[at].bytes -= given;
        if (lenders[at].bytes < 1) ++at;
      }
    }
  }

  struct Offer {
    GpuId gpu;
    double bytes = 0;
  };

  /// Those with most room, as few as give loans of some size, all in proportion.
  std::vector<Offer> choose(const std::vector<std::size_t>& domain, double time, double wanted) const {
    std::vector<Offer> offers;
    for (const std::size_t i : domain)
      if (const double bytes = ports_[i].offers(time); bytes >= 1) offers.push_back({ports_[i].gpu, bytes});
    std::stable_sort(offers.begin(), offers.end(),
                     [](const Offer& a, const Offer& b) { return a.bytes > b.bytes; });
    double offered = 0;
    std::size_t count = 0;
    while (count < offers.size() &&
           (offered < wanted || smallest_loan * static_cast<double>(count + 1) <= wanted))
      offered += offers[count++].bytes;
    offers.resize(count);
    for (Offer& offer : offers) offer.bytes *= std::min(1.0, wanted / offered);
    std::sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) { return a.gpu < b.gpu; });
    return offers;
  }

  std::vector<PortState> ports_;
  std::vector<LinkId> nics_;                       // by port
  std::vector<std::vector<std::size_t>> domains_;  // ports
};

}  // namespace

std::vector<NicLoan> nic_loans(const Refit& refit, const PortLoads& loads, Duration least, NicSide side) {
  return Level(refit, loads, side).loans(std::max(1e-12, seconds(least)));
}

}  // namespace isthmus

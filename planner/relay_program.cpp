#include "planner/relay_program.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <coin/ClpSimplex.hpp>

#include "planner/byte_classes.hpp"
#include "planner/relay_graph.hpp"
#include "planner/relay_symmetry.hpp"

namespace isthmus {
namespace {

constexpr double tolerance = 1e-5, creep = 1e-7;
constexpr int max_rounds = 60;
constexpr double price_scale = 1 << 20;  // of the dearest link, before rounding down

/// A row of the program: a set of vertices that a class has to enter.
struct EntryRow {
  std::size_t demand = 0;
  std::vector<std::uint32_t> edges;
};

class RelayProgram {
 public:
  RelayProgram(const Refit& refit, const ByteClasses& classes, bool detours, Duration near)
      : refit_(refit),
        sets_(classes.sets),
        classes_(without_stages(classes)),
        graph_(relay_graph(refit.fabric, taking_part(refit))),
        near_(std::max(1e-12, seconds(near))) {
    for (std::size_t a = 0; a < classes_.size(); ++a) add_demands(a, detours);
  }

  /// False where the program is too large, merged or not.
  bool prepare(Merging merging) {
    const bool small = merging == Merging::where_large && acting() <= max_program_gpus &&
                       classes_.size() * graph_.edges.size() <= max_plain_variables;
    if (small || merging == Merging::never) {
      symmetry_ = without_symmetry(classes_.size(), graph_.edges.size(), demands_.size());
    } else {
      colours_.emplace(refit_.fabric, sets_, classes_, graph_);
      if (colours_->work(0) > max_colour_work) return false;
      symmetry_ = colours_->symmetry(demands_);
    }
    return symmetry_.variables <= max_program_variables;
  }

  /// Per link its price and per class the shares of its receivers, in reals; false where Clp fails.
  bool solve() {
    load();
    for (const std::uint32_t d : symmetry_.demands.first)
      add_set(demands_[d], {graph_.vertex_of_gpu[demands_[d].gpu]});
    for (int round = 0; round < max_rounds; ++round) {
      model_.dual();
      if (model_.status() != 0) return false;
      if (round + 1 == max_rounds || !add_violated()) break;
    }
    return model_.status() == 0;
  }

  /// Where a merged program gives no more than `near`, its prices are not worth their time; nullopt where
  /// they take too much of it.
  std::optional<BoundCertificate> certificate(BoundCertificate start, Merging merging) const {
    const bool wanted = merging == Merging::always || model_.objectiveValue() > 1 + tolerance;
    if (colours_ && !wanted) return start;
    if (colours_ && colours_->work(demands_.size()) > max_colour_work) return std::nullopt;
    const double* dual = model_.dualRowSolution();
    const auto first = static_cast<int>(symmetry_.edges.first.size());
    RelayShares shares;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const double value = dual[first + static_cast<int>(r)];
      if (value <= 0) continue;
      const std::size_t a = demands_[rows_[r].demand].of_class;
      const double price = value / static_cast<double>(classes_[a].bytes.value);
      for (const std::uint32_t edge : rows_[r].edges) shares[rows_[r].demand][edge] += price;
    }
    if (colours_) shares = colours_->lifted(symmetry_, demands_, shares);
    double dearest = 0;
    std::map<std::pair<std::size_t, std::uint32_t>, double> of_class;
    for (const auto& [demand, edges] : shares) {
      for (const auto& [edge, price] : edges)
        dearest = std::max(dearest, of_class[{demands_[demand].of_class, edge}] += price);
    }
    if (dearest > 0) add_prices(shares, price_scale / dearest, start);
    return start;
  }

 private:
  void add_demands(std::size_t a, bool detours) {
    std::set<DomainId> domains;
    for (const std::uint32_t gpu : sets_[classes_[a].holders]) domains.insert(refit_.fabric.domain_of({gpu}));
    for (const std::uint32_t gpu : sets_[classes_[a].receivers]) {
      const DomainId home = refit_.fabric.domain_of({gpu});
      const bool inside = !detours && domains.size() == 1 && *domains.begin() == home;
      demands_.push_back({a, gpu, inside ? &graph_.inside_domain.at(home) : nullptr});
    }
  }

  std::size_t acting() const {
    const std::vector<char> part = taking_part(refit_);
    return static_cast<std::size_t>(std::count(part.begin(), part.end(), 1));
  }

  int column(std::size_t a, std::size_t edge) const {
    return 1 + static_cast<int>(symmetry_.variable[a * graph_.edges.size() + edge]);
  }

  /// Column 0 is T in units of `near`; rows are the links of a kind, on the average.
  void load() {
    const Kinds& kinds = symmetry_.edges;
    model_.setLogLevel(0);
    model_.resize(static_cast<int>(kinds.first.size()), 0);
    std::vector<int> all;
    for (std::size_t k = 0; k < kinds.first.size(); ++k) {
      all.push_back(static_cast<int>(k));
      model_.setRowBounds(static_cast<int>(k), -COIN_DBL_MAX, 0);
    }
    const std::vector<double> minus(all.size(), -1);
    model_.addColumn(static_cast<int>(all.size()), all.data(), minus.data(), 0, COIN_DBL_MAX, 1);
    std::vector<double> loads(symmetry_.variables);
    std::vector<int> row(symmetry_.variables);
    for (std::size_t a = 0; a < classes_.size(); ++a) {
      for (std::size_t e = 0; e < graph_.edges.size(); ++e) {
        const auto rate =
            static_cast<double>(refit_.fabric.links()[graph_.edges[e].link.index()].nominal.value);
        const std::size_t variable = to_size(column(a, e) - 1);
        loads[variable] +=
            static_cast<double>(classes_[a].bytes.value) / (rate * near_ * kinds.count[kinds.of[e]]);
        row[variable] = static_cast<int>(kinds.of[e]);
      }
    }
    for (std::size_t variable = 0; variable < loads.size(); ++variable)
      model_.addColumn(1, &row[variable], &loads[variable], 0, COIN_DBL_MAX, 0);
  }

  /// The row of the set that is not marked in `outside`.
  void add_row(std::size_t demand, const std::vector<char>& outside) {
    const RelayDemand& each = demands_[demand];
    EntryRow row{demand, {}};
    std::map<int, double> entries;
    for (std::uint32_t e = 0; e < graph_.edges.size(); ++e) {
      const RelayGraph::Edge& edge = graph_.edges[e];
      if (outside[edge.from] == 0 || outside[edge.to] != 0) continue;
      if (each.allowed != nullptr && (*each.allowed)[e] == 0) continue;
      row.edges.push_back(e);
      entries[column(each.of_class, e)] += 1;
    }
    // No edge: nothing leads there, and no plan exists.
    if (entries.empty() || !known_.insert({each.of_class, row.edges}).second) return;
    std::vector<int> columns;
    std::vector<double> values;
    for (const auto& [column_index, edges] : entries) {
      columns.push_back(column_index);
      values.push_back(edges);
    }
    model_.addRow(static_cast<int>(columns.size()), columns.data(), values.data(), 1, COIN_DBL_MAX);
    rows_.push_back(std::move(row));
  }

  void add_set(const RelayDemand& demand, const std::vector<std::uint32_t>& inside) {
    std::vector<char> outside(graph_.vertices, 1);
    for (const std::uint32_t vertex : inside) outside[vertex] = 0;
    add_row(static_cast<std::size_t>(&demand - demands_.data()), outside);
  }

  /// One minimum cut, then others beyond it, as if it were wide enough: a chain of sets in one round. The
  /// little that is added makes cuts of few edges win.
  void add_cuts(std::size_t demand, const std::vector<std::uint32_t>& sources,
                std::vector<double> capacities) {
    const std::uint32_t target = graph_.vertex_of_gpu[demands_[demand].gpu];
    const std::vector<char>* allowed = demands_[demand].allowed;
    for (std::size_t e = 0; e < capacities.size(); ++e) {
      if (allowed == nullptr || (*allowed)[e] != 0) capacities[e] += creep;
    }
    while (true) {
      const Separation cut = separate(graph_, capacities, sources, target, 1);
      if (cut.flow >= 1 - tolerance) return;
      add_row(demand, cut.reached);
      bool wider = false;
      for (std::size_t e = 0; e < capacities.size(); ++e) {
        const RelayGraph::Edge& edge = graph_.edges[e];
        if (capacities[e] <= 0 || cut.reached[edge.from] == 0 || cut.reached[edge.to] != 0) continue;
        capacities[e] = 1;
        wider = true;
      }
      if (!wider) return;
    }
  }

  bool add_violated() {
    const std::size_t before = rows_.size();
    const std::vector<double> usage(model_.primalColumnSolution(),
                                    model_.primalColumnSolution() + model_.numberColumns());
    std::vector<double> capacities(graph_.edges.size());
    for (const std::uint32_t d : symmetry_.demands.first) {
      const RelayDemand& each = demands_[d];
      for (std::size_t e = 0; e < capacities.size(); ++e) {
        const bool open = each.allowed == nullptr || (*each.allowed)[e] != 0;
        capacities[e] = open ? usage[to_size(column(each.of_class, e))] : 0;
      }
      std::vector<std::uint32_t> sources;
      for (const std::uint32_t gpu : sets_[classes_[each.of_class].holders]) {
        sources.push_back(graph_.vertex_of_gpu[gpu]);
      }
      add_cuts(d, sources, capacities);
    }
    return rows_.size() > before;
  }

  /// Rounded down per share; a link costs what the class that pays most for it pays.
  void add_prices(const RelayShares& share, double scale, BoundCertificate& certificate) const {
    std::map<LinkId, std::int64_t> price;
    std::map<std::size_t, PriceSplit> split_of;
    std::map<std::pair<std::size_t, LinkId>, std::int64_t> paid;
    for (const auto& [demand, edges] : share) {
      const std::size_t a = demands_[demand].of_class;
      PriceSplit::Share rounded{GpuId{demands_[demand].gpu}, {}};
      for (const auto& [edge, amount] : edges) {
        const auto whole = static_cast<std::int64_t>(std::floor(amount * scale));
        const LinkId link = graph_.edges[edge].link;
        if (whole == 0) continue;
        rounded.prices.push_back({link, whole});
        price[link] = std::max(price[link], paid[{a, link}] += whole);
      }
      if (!rounded.prices.empty()) split_of[a].shares.push_back(std::move(rounded));
    }
    for (const auto& [link, amount] : price) {
      certificate.prices.push_back({link, amount});
      certificate.priced_capacity += Int128{refit_.fabric.links()[link.index()].nominal.value} * amount;
    }
    for (auto& [a, split] : split_of) {
      if (split.shares.size() < 2) continue;  // all for one receiver: that is the rule without a split
      for (const std::uint32_t gpu : sets_[classes_[a].holders]) split.holders.push_back({gpu});
      for (const std::uint32_t gpu : sets_[classes_[a].receivers]) split.receivers.push_back({gpu});
      certificate.splits.push_back(std::move(split));
    }
  }

  const Refit& refit_;
  const GpuSets& sets_;
  std::vector<ByteClass> classes_;
  RelayGraph graph_;
  double near_;
  std::vector<RelayDemand> demands_;     // by class
  std::optional<RelayColours> colours_;  // where variables are merged
  RelaySymmetry symmetry_;
  std::vector<EntryRow> rows_;
  std::set<std::pair<std::size_t, std::vector<std::uint32_t>>> known_;
  ClpSimplex model_;
};

BoundCertificate without_prices(const Refit& refit, const ByteClasses& classes, bool detours) {
  BoundCertificate certificate;
  certificate.model = bound_model(refit, detours);
  for (const ByteClass& each : without_stages(classes)) {
    ++certificate.classes;
    certificate.bytes += each.bytes;
  }
  return certificate;
}

}  // namespace

std::optional<BoundCertificate> relay_certificate(const Refit& refit, bool detours, Duration near,
                                                  Merging merging) {
  const std::vector<char> part = taking_part(refit);
  const auto acting = static_cast<std::size_t>(std::count(part.begin(), part.end(), 1));
  const std::size_t most = merging == Merging::never ? max_program_gpus : max_merged_gpus;
  if (near.value == 0 || acting > most) return std::nullopt;
  const ByteClasses classes = byte_classes(refit);
  RelayProgram program(refit, classes, detours, near);
  if (!program.prepare(merging) || !program.solve()) return std::nullopt;
  return program.certificate(without_prices(refit, classes, detours), merging);
}

BoundCertificate cut_certificate(const Refit& refit, bool detours, const std::vector<LinkId>& links) {
  BoundCertificate certificate = without_prices(refit, byte_classes(refit), detours);
  for (const LinkId link : links) {
    certificate.prices.push_back({link, 1});
    certificate.priced_capacity += refit.fabric.links()[link.index()].nominal.value;
  }
  return certificate;
}

}  // namespace isthmus
